"""From what pydantic found to problems in our words. Owns ``check_shape``."""

from __future__ import annotations

from typing import Any

from policygraph.files.problems import Problems, inside, near, shown

__all__ = ["check_shape"]


def check_shape(given: dict[str, Any], problems: Problems) -> None:
    """Note everything whose shape is wrong."""
    from pydantic import ValidationError

    from policygraph.files.schema import File

    try:
        File.model_validate(given)
    except ValidationError as cause:
        for error in cause.errors(include_url=False):
            path = tuple(error["loc"])
            problems.add(_trim(given, path), _message(error, path))


def _trim(given: Any, path: tuple[Any, ...]) -> tuple[Any, ...]:
    """Leave out the parts of a pydantic path that are not in the file, such as names of alternatives."""
    out: list[Any] = []
    value = given
    for at, part in enumerate(path):
        found, below = inside(value, part)
        value = below if found else value
        # The last part may be a key that is missing; names of alternatives contain brackets.
        if not found and (at < len(path) - 1 or not isinstance(part, str) or "[" in part):
            continue
        out.append(part)
    return tuple(out)


def _message(error: Any, path: tuple[Any, ...]) -> str:
    kind, value = error["type"], error["input"]
    if path in (("public",), ("release",)) and isinstance(value, dict):
        return f"[{path[0]}] is a single table: write [[{path[0]}]], with two brackets; there can be several of them."
    if kind == "extra_forbidden":
        known = _known_keys(path[:-1])
        return f"this key is not known: expected {', '.join(known)}.{near(path[-1], known)}"
    if kind == "missing":
        return "this key is missing."
    if kind == "expected":
        text = error["ctx"]["what"]
    elif kind == "literal_error":
        text = error["ctx"]["expected"]
        options = [option.strip("' ") for option in text.replace(" or ", ", ").split(",")]
        return f"{shown(value)}: expected {text}.{near(value, options)}"
    else:
        text = error["msg"].replace("Input should be ", "").replace("a valid ", "a ")
        words = {
            "string": "text",
            "dictionary": "table",
            "boolean": "true or false",
            "a integer": "a whole number",
        }
        text = {
            "string_type": "text",
            "int_type": "a whole number",
            "bool_type": "true or false",
            "list_type": "a list",
            "dict_type": "a table",
            "model_type": "a table",
            "too_short": f"at least {error.get('ctx', {}).get('min_length')} entries",
            "too_long": f"at most {error.get('ctx', {}).get('max_length')} entries",
            "greater_than_equal": f"at least {error.get('ctx', {}).get('ge')}",
        }.get(kind, words.get(text, text))
    return f"{shown(value)}: expected {text}."


def _known_keys(path: tuple[Any, ...]) -> list[str]:
    """Keys of the table at a place of the schema."""
    from policygraph.files import schema

    model: Any = schema.File
    inside = {
        "network": schema.Network,
        "neighbours": schema.Neighbours,
        "public": schema.Fact,
        "release": schema.Release,
        "cube": schema.Cube,
        "data": schema.Data,
        "cells": schema.SomeCells,
        "count": schema.Count,
        "terms": schema.Term,
        "ranges": schema.Ranges,
        "matrix": schema.Matrix,
        "measure": schema.Measure,
    }
    for part in path:
        model = inside.get(part, model) if isinstance(part, str) else model
    return list(model.model_fields)
