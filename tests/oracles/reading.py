"""Text formats, read literally: what a file says, one sign after the other. None where the format forbids it."""

from __future__ import annotations

import json
from typing import Any


def csv_records(raw: bytes, delimiter: str, quote: str = '"') -> list[list[str]] | None:
    """Records of a CSV file by RFC 4180, the header included; empty lines are none, and doubtful in one column. None if it is malformed."""
    try:
        text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    records: list[list[str]] = []
    fields: list[str] = []
    field, state, started, ending, blank = "", "start", False, "", False
    at = 0
    while at <= len(text):
        sign = text[at] if at < len(text) else ""
        if state == "quoted":
            if sign == "":
                return None
            if sign == quote and text[at + 1 : at + 2] == quote:
                field, at = field + quote, at + 1
            elif sign == quote:
                state = "closed"
            else:
                field += sign
            at += 1
            continue
        stop = "\r\n" if text[at : at + 2] == "\r\n" else "\n" if sign == "\n" else ""
        if stop:
            ending = ending or stop
            if stop != ending:
                return None
        elif sign == "\r":
            return None
        if stop or sign == "":
            if started:
                records.append([*fields, field])
            elif stop:
                blank = True
            fields, field, state, started = [], "", "start", False
            at += max(len(stop), 1)
            continue
        started = True
        if sign == delimiter:
            fields, field, state = [*fields, field], "", "start"
        elif sign == quote:
            if state != "start":
                return None
            state = "quoted"
        elif state == "closed":
            return None
        else:
            field, state = field + sign, "plain"
        at += 1
    if any(len(record) != len(records[0]) for record in records):
        return None
    if blank and records and len(records[0]) == 1:
        return None
    return records


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("twice")
    return dict(pairs)


def json_lines(raw: bytes) -> list[dict[str, Any]] | None:
    """Records of a file with one JSON object on each line; blank lines are none. None if it is malformed."""
    records = []
    for line in raw.split(b"\n"):
        if not line.strip(b" \t\r"):
            continue
        try:
            record = json.loads(line.decode("utf-8"), object_pairs_hook=_object)
            json.dumps(record, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, dict):
            return None
        records.append(record)
    return records


def json_first_wrong_line(raw: bytes) -> int | None:
    """Number of the first line that is no record, from 1."""
    for number, line in enumerate(raw.split(b"\n"), 1):
        if json_lines(line) is None:
            return number
    return None


def json_array(raw: bytes) -> list[dict[str, Any]] | None:
    """Records of a file that is one JSON array of objects. None if it is malformed."""
    try:
        records = json.loads(raw.decode("utf-8"), object_pairs_hook=_object)
        json.dumps(records, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        return None
    return records
