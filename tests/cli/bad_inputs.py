"""Bad input by the hundred: policy files, JSON documents, data files and options, each made from a good one by one change.

Everything comes from a seeded generator, so that a red run can be run again. What is changed may stay good by chance.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.paths import ROOT

DEEP = "@deep list@", "@deep table@", "@long number@"
"""Stand for values that no writer writes: lists and tables nested 3,000 times, a number of 5,000 digits."""

HOSTILE: list[Any] = [
    10**27, -(10**27), 2**62, 2**63, 2**64, -(2**63), -1, 0, 1, 3, 1.5, -0.0, 1e308, 5e-324,
    float("nan"), float("inf"), float("-inf"), True, False,
    "", " ", "x" * 100_000, "\0", "\u202e\u0000", "é\u0301", "\U0001f600", "1e999999999", "1/0", "nan", "0x10", "١",
    "1" * 10_000, "../..", "[bold]", "${HOME}", "%s", "'; DROP TABLE charges; --",
    [], [[]], [[[]]], [0], [""], [None], [1, "a", 2.5, True], [0] * 1000, [["a", "b"], ["c"]], [10**27], [float("nan")],
    {}, {"": 0}, {"a": {"b": {"c": []}}}, {"other": {}}, {"x" * 1000: 1},
    datetime.date(2020, 1, 1), datetime.time(1, 2), datetime.datetime(2020, 1, 1), *DEEP,
]  # fmt: skip

EXTRA = [
    """[domain]
sex = ["F", "M"]
age = 3
[neighbours]
graph = {threshold = 1, attribute = "age"}
bottom = true
[[public]]
count = {terms = [{where = {age = [0, 1]}, times = 1}, {cell = ["F", 2], times = 1}]}
[[release]]
ranges = {attribute = "age", pairs = [[0, 1], [1, 2]]}
[data]
unknown = {sex = "F"}
columns = {age = "years"}
""",
    """[domain]
sex = ["F", "M"]
age = 3
[[public]]
cells = {of = ["sex"], values = [["F"]]}
equals = [3]
[[public]]
zeros = [["F", 0], {sex = "M", age = [2]}]
[[release]]
matrix = {rows = 2, entries = [[0, 0, 1], [1, 5, -2]]}
name = "two numbers"
row_names = ["one", "two"]
unit = "1/2"
""",
    """[domain]
sex = ["F", "M"]
age = 3
[neighbours]
strength = "positive"
at_most_records = 2
[[public]]
cuboid = ["sex"]
equals = [4, 4]
[[release]]
averages = [["sex"], []]
measure = {column = "income", low = 0, high = 100, unit = 1, missing = "drop"}
weights = [1, 2]
balance = "1/3"
""",
    """[network]
nodes = ["a", "b", "c", "d"]
directed = false
[[public]]
degrees = "all"
equals = [1, 1, 1, 1]
[[public]]
edges = {groups = {a = 0, b = 0, c = 1, d = 1}, between = true}
[[release]]
mixing = {a = 0, b = 0, c = 1, d = 1}
[data]
duplicates = "merge"
loops = "drop"
columns = {from = "x", to = "y"}
""",
    """[network]
nodes = 4
[[release]]
statistic = "degree tail"
largest = 2
side = "both"
""",
    """[domain]
a = 2
b = 2
[neighbours]
graph = {product = {a = "full", b = {edges = [[0, 1]]}}}
[[release]]
cuboids = [["a"], ["b"]]
weights = [1, 2]
[cube]
strategy = "unequal"
consistency = "least-squares"
nonnegative = true
whole = true
""",
    """[domain]
a = 4
[neighbours]
graph = {partition = [[0, 1], [2, 3]], attribute = "a"}
[[release]]
prefix = "a"
""",
    """[domain]
a = 2
b = 3
[[public]]
total = true
[[release]]
all_cuboids = true
up_to = 1
[cube]
strategy = "base"
offset = 0.01
""",
    """[domain]
sex = ["F", "M"]
age = 3
[[release]]
marginals = [["sex", "age"], ["age"]]
asked = {age = "prefix"}
weights = [1, 2]
""",
    """[domain]
sex = ["F", "M"]
age = 3
[[release]]
boxes = [{age = [0, 1], sex = "F"}, {sex = ["F", "M"]}]
name = "two boxes"
""",
]  # fmt: skip


def policies() -> list[str]:
    """Good policy files: those that come with the project, and some that use every other key."""
    return [path.read_text() for path in sorted((ROOT / "policies").glob("*.toml"))] + EXTRA


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside nested lists and tables."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(below, (dict, list)):
            yield from places(below, (*path, key))


def changed(given: Any, rng: random.Random) -> Any:
    """One change of a nested value: a part replaced, dropped, doubled, renamed, swapped or added."""
    made = deepcopy(given)
    *above, last = rng.choice(list(places(made)))
    inside = made
    for part in above:
        inside = inside[part]
    match rng.randrange(10):
        case 0:
            del inside[last]
        case 1 if isinstance(inside, list):
            inside.append(inside[last])
        case 1:
            inside[rng.choice([str(last).upper(), f"{last}s", "", "\0", "x" * 1000])] = inside.pop(last)
        case 2:
            *other, end = rng.choice(list(places(made)))
            there = made
            for part in other:
                there = there[part]
            inside[last], there[end] = deepcopy(there[end]), deepcopy(inside[last])
        case 3:
            inside[last] = [inside[last]]
        case 4:
            inside[last] = {"of": inside[last]}
        case 5 if isinstance(inside, dict):
            inside[rng.choice(["extra", "", "domain", "index", "0"])] = rng.choice(HOSTILE)
        case _:
            inside[last] = deepcopy(rng.choice(HOSTILE))
    return made


def torn(text: str, rng: random.Random) -> bytes:
    """One change of a text, below what its grammar knows."""
    raw = text.encode()
    at, end = sorted(rng.randrange(len(raw) + 1) for _ in range(2))
    junk = [b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"[" * 3000, b"{" * 3000, b'"', b"'''", b"\n", b"\r", b"=", b"\xe2\x80\xae", b",", b"]", b"}",
            b"a = " + b"[" * 2000 + b"]" * 2000, b"NaN", b"-Infinity", b"1e400", b"9" * 5000, b"\xef\xbb\xbf", b"\\u0000", b"\\ud800"]  # fmt: skip
    lines = raw.splitlines(keepends=True)
    line = rng.randrange(len(lines))
    match rng.randrange(8):
        case 0:
            return raw[:at]
        case 1:
            return raw[:at] + raw[end:]
        case 2:
            return raw[:at] + rng.randbytes(rng.randrange(1, 9)) + raw[at:]
        case 3:
            return b"".join([*lines[:line], lines[line], *lines[line:]])
        case 4:
            return b"".join(rng.sample(lines, len(lines)))
        case 5:
            return b"".join([*lines[:line], *lines[line + 1 :]])
        case _:
            return raw[:at] + rng.choice(junk) + raw[at:]


WHOLES = [b"", b"\n", b"\0", b"null", b"[]", b"{}", b"1", b'"text"', b"NaN", b"[" * 100_000, b'{"a":' * 100_000, b"\xff" * 100,
          b"\xef\xbb\xbf", b"SQLite format 3\0" + b"\0" * 200, b"PAR1" + b"\0" * 50 + b"PAR1", b"PAR1", b"a.b = 1\na = 2", b"9" * 10_000,
          b"a." * 50_000 + b"b = 1", b"[" + b"a." * 50_000 + b"b]", b"{\"format\": 1}", b"{\"format\": 1, \"method\": \"\", \"reason\": \"\"}"]  # fmt: skip
"""Whole files that are nothing of the kind."""


def toml(value: Any) -> str:
    """Write nested values as one line of TOML."""
    if value in DEEP if isinstance(value, str) else False:
        return {
            DEEP[0]: "[" * 3000 + "]" * 3000,
            DEEP[1]: "{a = " * 3000 + "1" + "}" * 3000,
            DEEP[2]: "7" * 5000,
        }[value]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    if isinstance(value, str):
        return json.dumps(value)
    return '"none"' if value is None else value.isoformat() if hasattr(value, "isoformat") else repr(value)


def toml_file(given: Any) -> bytes:
    """A policy file with one line for each of its tables."""
    if not isinstance(given, dict):
        return toml(given).encode()
    return "".join(f"{json.dumps(str(key))} = {toml(value)}\n" for key, value in given.items()).encode()


def json_file(given: Any) -> bytes:
    """A JSON document, with the deep values that JSON has as well."""
    text = json.dumps(given, default=str)
    for name, long in zip(
        DEEP, ("[" * 100_000 + "]" * 100_000, '{"a":' * 3000 + "1" + "}" * 3000, "7" * 5000), strict=True
    ):
        text = text.replace(json.dumps(name), long)
    return text.encode()
