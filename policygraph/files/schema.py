"""The one schema of policy files, as pydantic models. Owns ``FileTable`` and ``check_shape``; imported only when a file is read.

The models check shapes: which keys there are and of which type. What needs the domain (attributes, labels, nodes)
is checked in ``parts`` and ``policy_file``.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from policygraph.errors import InputError
from policygraph.exact import as_fraction
from policygraph.files.problems import Problems, inside, near, shown
from policygraph.model.bins import Bins
from policygraph.model.file_options import expected_option

FACTS = (
    "total",
    "cuboid",
    "cells",
    "count",
    "sums",
    "zeros",
    "degrees",
    "in_degrees",
    "out_degrees",
    "edges",
)
RELEASES = (
    "cuboid",
    "cuboids",
    "all_cuboids",
    "marginals",
    "boxes",
    "total",
    "ranges",
    "prefix",
    "adjacency",
    "mixing",
    "statistic",
    "matrix",
    "sums",
    "averages",
    "table",
)
LABEL = {"type": ["string", "integer", "number", "boolean"]}
LABELS = {"type": "array", "items": LABEL}


def _wrong(expected: str) -> PydanticCustomError:
    return PydanticCustomError("expected", "expected {what}", {"what": expected})


def _label(value: Any) -> Any:
    if not isinstance(value, (str, int, float, bool)):
        raise _wrong("a label: text, a number, true or false")
    return value


def _text_of(value: dict[str, Any], *keys: str) -> None:
    for key in keys:
        if key in value and (not isinstance(value[key], str) or not value[key]):
            raise _wrong(f"{key} as text")
    if "encoding" in value and expected_option("encoding", value["encoding"]):
        raise _wrong(f"for encoding {expected_option('encoding', value['encoding'])}")


def _known(value: dict[str, Any], keys: tuple[str, ...], shown_keys: str) -> None:
    strange = [key for key in value if key not in keys]
    if strange:
        raise _wrong(f"the keys {shown_keys}, not {strange[0]!r}")


def _bins_or_file(value: dict[str, Any]) -> Any:
    if ("bins" in value) == ("labels" in value):
        raise _wrong("a table such as {bins = [0, 18, 65]} or {labels = 'municipalities.csv'}")
    if "bins" in value:
        _known(value, BIN_KEYS, "bins, open, also and end")
        Bins.from_spec(value)
        return value
    _known(value, LABEL_KEYS, "labels, column, encoding, sheet and also")
    _text_of(value, "labels", "column", "sheet")
    if not isinstance(value.get("also", []), list):
        raise _wrong("also as a list of labels")
    for label in value.get("also", []):
        _label(label)
    return value


def _values(value: Any) -> Any:
    if isinstance(value, dict):
        try:
            return _bins_or_file(value)
        except InputError as cause:
            raise _wrong(str(cause).partition("expected ")[2].rstrip(".") or str(cause)) from cause
    return _count_or_labels(value)


def _count_or_labels(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, list)):
        raise _wrong(
            "a list of labels, how many values there are, {bins = [0, 18, 65]} or {labels = 'file.csv'}"
        )
    if isinstance(value, int) and value < 1:
        raise _wrong("at least one value")
    if isinstance(value, list):
        if not value:
            raise _wrong("at least one label")
        for label in value:
            _label(label)
    return value


def _labels_or_one(value: Any) -> Any:
    if isinstance(value, list):
        return [_label(label) for label in value]
    return _label(value)


def _condition(value: Any) -> Any:
    if isinstance(value, dict):
        for labels in value.values():
            _labels_or_one(labels)
        return value
    if isinstance(value, (list, str, int, float, bool)):
        return _labels_or_one(value)
    raise _wrong("a cell such as ['F', 0], or a condition such as {age = [0, 1]}")


def _nodes(value: Any) -> Any:
    if value == "all" or (isinstance(value, list) and value):
        return value if value == "all" else [_label(label) for label in value]
    raise _wrong("a list of nodes, or 'all'")


def _groups(value: Any) -> Any:
    if isinstance(value, (list, dict)) and value:
        for label in value.values() if isinstance(value, dict) else value:
            _label(label)
        return value
    raise _wrong("the group of each node: a list in node order, or a table node = group")


def _graph(value: Any) -> Any:
    if not isinstance(value, (str, dict)):
        raise _wrong(f"{', '.join(GRAPH_WORDS)}, or a table such as {{threshold = 2, attribute = 'age'}}")
    return value


def _unknown(value: Any) -> Any:
    if value in ("error", "drop") and isinstance(value, str):
        return value
    if isinstance(value, dict) and value:
        inner = value["other"] if isinstance(value.get("other"), dict) and len(value) == 1 else value
        for label in inner.values():
            _label(label)
        return inner
    raise _wrong("'error', 'drop', or {other = {age = 'other'}}: the label that unknown values count under")


def _equals(value: Any) -> Any:
    if isinstance(value, dict):
        _known(value, PUBLISHED_KEYS, "file, count, missing, columns, encoding and sheet")
        if "file" not in value:
            raise _wrong("the key file, such as {file = 'population.csv', missing = 0}")
        _text_of(value, "file", "count", "sheet")
        if value.get("missing", "error") not in ("error", 0) or isinstance(value.get("missing"), bool):
            raise _wrong("missing = 'error', or 0 where cells that are left out are empty")
        columns = value.get("columns", {})
        if not isinstance(columns, dict) or not all(isinstance(name, str) for name in columns.values()):
            raise _wrong("columns such as {age = 'age group'}")
        return value
    if isinstance(value, str) and value:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, list)):
        raise _wrong(
            "the published values: a whole number, a list of them, or a file such as 'population.csv'"
        )
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _wrong("a number such as 100, 0.01 or '1/3'")
    return value


def _tables(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if (
        isinstance(value, list)
        and value
        and all(isinstance(names, list) and all(isinstance(n, str) for n in names) for names in value)
    ):
        return value
    raise _wrong(
        "lists of attributes such as [['sex', 'age'], ['age']], or how many attributes each table has"
    )


def _asked(value: Any) -> Any:
    if isinstance(value, str) and value in ASKED:
        return value
    whole = isinstance(value, list) and all(
        isinstance(row, list) and all(isinstance(x, int) and not isinstance(x, bool) for x in row)
        for row in value
    )
    if whole and value and len({len(row) for row in value}) == 1:
        return value
    raise _wrong("'values', 'prefix', 'ranges', or rows of whole numbers, one for each value")


def _box(value: Any) -> Any:
    if not isinstance(value, dict):
        raise _wrong(
            "a table such as {age = [18, 64], sex = 'F'}: the first and the last label of each range"
        )
    for ends in value.values():
        if isinstance(ends, list) and len(ends) != 2:
            raise _wrong("the first and the last label of a range, or one label")
        _labels_or_one(ends)
    return value


def _boxes(value: Any) -> Any:
    if value == "all ranges" and isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise _wrong("a list of boxes such as [{age = [18, 64]}], or 'all ranges'")
    return [_box(each) for each in value]


def _probability(value: Any) -> Any:
    try:
        good = 0 < as_fraction(_number(value), "offset") < 1
    except InputError:
        good = False
    if not good:
        raise _wrong("a probability between 0 and 1, such as 0.01 or '1/100'")
    return value


def _option(name: str) -> Any:
    def check(value: Any) -> Any:
        expected = expected_option(name, value)
        if expected is not None:
            raise _wrong(expected)
        return value

    return PlainValidator(check)


def _true(value: Any) -> Any:
    if value is not True:
        raise _wrong("true (or leave it out)")
    return value


BIN_KEYS = ("bins", "open", "also", "end")
LABEL_KEYS = ("labels", "column", "encoding", "sheet", "also")
PUBLISHED_KEYS = ("file", "count", "missing", "columns", "encoding", "sheet")
ASKED = ("values", "prefix", "ranges")
WHERE = {"type": "object", "additionalProperties": {"anyOf": [LABEL, LABELS]}}
GRAPH_WORDS = ("full", "attribute", "bit", "line", "grid", "none")
GRAPH_KEYS: dict[str, Any] = {
    "threshold": {"anyOf": [{"type": "number", "minimum": 1}, {"type": "string"}]},
    "metric": {"enum": ["l1", "euclidean"]},
    "partition": {},
    "edges": {"type": "array"},
    "product": {"type": "object"},
    "full": {"const": True},
    "bit": {"const": True},
    "line": {"const": True},
    "attribute": {"type": "string"},
    "rest": {"const": "singletons"},
    "bottom": {"type": "array"},
}
GRAPH = {
    "anyOf": [
        {"enum": list(GRAPH_WORDS)},
        {"type": "object", "additionalProperties": False, "properties": GRAPH_KEYS},
    ]
}
RULE = {"anyOf": [{"enum": ["error", "drop"]}, {"type": "object"}]}

Values = Annotated[
    Any,
    PlainValidator(_count_or_labels),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {**LABELS, "minItems": 1}]}),
]
TEXT = {"type": "string"}
AttributeValues = Annotated[
    Any,
    PlainValidator(_values),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {**LABELS, "minItems": 1},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["bins"],
                    "properties": {
                        "bins": {"type": "array", "minItems": 1},
                        "open": {"type": "boolean"},
                        "also": {"type": "array", "items": TEXT},
                        "end": {"type": ["number", "string"]},
                    },
                },
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["labels"],
                    "properties": {**dict.fromkeys(LABEL_KEYS, TEXT), "also": LABELS},
                },
            ]
        }
    ),
]
Label = Annotated[Any, PlainValidator(_label), WithJsonSchema(LABEL)]
Cell = list[Label]
Picked = Annotated[Any, PlainValidator(_labels_or_one), WithJsonSchema({"anyOf": [LABELS, LABEL]})]
Where = Annotated[
    dict[
        StrictStr, Annotated[Any, PlainValidator(_labels_or_one), WithJsonSchema({"anyOf": [LABEL, LABELS]})]
    ],
    Field(min_length=1),
]
Condition = Annotated[Any, PlainValidator(_condition), WithJsonSchema({"anyOf": [LABELS, WHERE, LABEL]})]
Nodes = Annotated[
    Any, PlainValidator(_nodes), WithJsonSchema({"anyOf": [{"const": "all"}, {**LABELS, "minItems": 1}]})
]
Groups = Annotated[
    Any,
    PlainValidator(_groups),
    WithJsonSchema({"anyOf": [LABELS, {"type": "object", "additionalProperties": LABEL}]}),
]
Graph = Annotated[Any, PlainValidator(_graph), WithJsonSchema(GRAPH)]
Unknown = Annotated[Any, PlainValidator(_unknown), WithJsonSchema(RULE)]
Equals = Annotated[
    Any,
    PlainValidator(_equals),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer"},
                {"type": "array"},
                TEXT,
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["file"],
                    "properties": {
                        **dict.fromkeys(PUBLISHED_KEYS, TEXT),
                        "missing": {"enum": ["error", 0]},
                        "columns": {"type": "object", "additionalProperties": TEXT},
                    },
                },
            ]
        }
    ),
]
Yes = Annotated[Any, PlainValidator(_true), WithJsonSchema({"const": True})]
Number = Annotated[
    Any, PlainValidator(_number), WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]})
]
Probability = Annotated[
    Any, PlainValidator(_probability), WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]})
]
SIGN = r"[\x01-\x09\x0b\x0c\x0e-\x7f]"
"""ASCII characters but for line breaks and the zero byte, as ``expected_option`` has them."""
Delimiter = Annotated[
    Any, _option("delimiter"), WithJsonSchema({"type": "string", "maxLength": 1, "pattern": f"^{SIGN}$"})
]
Quote = Annotated[
    # In some readers of patterns the end is also before a last line break.
    Any, _option("quote"), WithJsonSchema({"type": "string", "maxLength": 1, "pattern": rf"^(?!\n){SIGN}?$"})
]
Encoding = Annotated[Any, _option("encoding"), WithJsonSchema({"type": "string"})]
Header = Annotated[Any, _option("header"), WithJsonSchema({"type": "boolean"})]
Hive = Annotated[Any, _option("hive"), WithJsonSchema({"type": "boolean"})]
Sheet = Annotated[Any, _option("sheet"), WithJsonSchema({"type": "string", "minLength": 1})]
Names = list[StrictStr]
Tables = Annotated[
    Any,
    PlainValidator(_tables),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "array", "minItems": 1, "items": {"type": "array", "items": {"type": "string"}}},
            ]
        }
    ),
]
Asked = Annotated[
    Any, PlainValidator(_asked), WithJsonSchema({"anyOf": [{"enum": list(ASKED)}, {"type": "array"}]})
]
Boxes = Annotated[
    Any,
    PlainValidator(_boxes),
    WithJsonSchema(
        {"anyOf": [{"const": "all ranges"}, {"type": "array", "minItems": 1, "items": {"type": "object"}}]}
    ),
]
Positive = Annotated[StrictInt, Field(ge=1)]


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", model_title_generator=lambda model: model.__name__.removesuffix("Table")
    )


class _OneOf(_Section):
    """A table with exactly one of several keys, unless ``several`` lets more pass."""

    KEYS: ClassVar[tuple[str, ...]]

    @classmethod
    def several(cls, value: dict[str, Any], given: list[str]) -> None:
        """Refuse several of the keys in one table."""
        raise _wrong(f"one of these, not {' and '.join(given)} together")

    @model_validator(mode="before")
    @classmethod
    def _exactly_one(cls, value: Any) -> Any:
        if isinstance(value, dict):
            given = [key for key in cls.KEYS if key in value]
            if len(given) > 1:
                cls.several(value, given)
            # A misspelt key is reported as such, and not once more as a missing one.
            if not given and all(key in cls.model_fields for key in value):
                raise _wrong(f"one of {', '.join(cls.KEYS)}")
        return value


class NetworkTable(_Section):
    """A graph instead of a table."""

    nodes: Values = Field(description="How many nodes (named 0, 1, ...), or their names.")
    directed: StrictBool = False
    loops: StrictBool = False
    multiple: StrictBool = False


class NeighboursTable(_Section):
    """Which data sets must not be told apart."""

    graph: Graph = "none"
    bottom: StrictBool = Field(False, description="Whether records may also appear and vanish.")
    strength: Literal["worst-case", "positive", "markov"] = "worst-case"
    at_most_records: Positive | None = None


class SomeCellsTable(_Section):
    """Single cells of a margin."""

    of: Names = Field(min_length=1)
    values: list[Picked] = Field(min_length=1)


class TermTable(_OneOf):
    """A condition and its factor."""

    where: Where | None = None
    cell: Cell | None = None
    times: StrictInt = 1

    KEYS = ("where", "cell")


class CountTable(_OneOf):
    """How many records meet a condition, or a weighted sum of such counts."""

    where: Where | None = None
    terms: Annotated[list[TermTable], Field(min_length=1)] | None = None

    KEYS = ("where", "terms")


class PublicEdgesTable(_OneOf):
    """Which nodes are joined, inside public groups or between them."""

    groups: Groups
    inside: Yes = None
    between: Yes = None

    KEYS = ("inside", "between")


class SumsTable(_Section):
    """Many sums of cells as a sparse integer matrix; each entry is a row, a cell by its number, and a factor."""

    rows: Positive
    cells: Positive
    entries: Annotated[
        list[Annotated[list[StrictInt], Field(min_length=3, max_length=3)]], Field(min_length=1)
    ]


class FactTable(_OneOf):
    """One exact public fact, or several without published values."""

    total: Yes = None
    cuboid: Names | None = None
    cells: SomeCellsTable | None = None
    count: CountTable | None = None
    sums: SumsTable | None = None
    zeros: Annotated[list[Condition], Field(min_length=1)] | None = None
    degrees: Nodes = None
    in_degrees: Nodes = None
    out_degrees: Nodes = None
    edges: PublicEdgesTable | None = None
    equals: Equals = Field(None, description="The published values.")

    KEYS = FACTS

    @classmethod
    def several(cls, value: dict[str, Any], given: list[str]) -> None:
        if "equals" in value:
            raise _wrong(
                f"equals beside one fact, not beside {' and '.join(given)}; write a [[public]] for each"
            )


class RangesTable(_Section):
    """Counts between two positions of an ordered attribute, both included."""

    attribute: StrictStr | None = None
    pairs: list[Annotated[list[StrictInt], Field(min_length=2, max_length=2)]] = Field(min_length=1)


class MatrixTable(_Section):
    """A sparse integer matrix over the cells."""

    rows: Positive
    entries: list[Annotated[list[StrictInt], Field(min_length=3, max_length=3)]]


class MeasureTable(_Section):
    """A numeric column with a declared range, for sums and averages."""

    column: StrictStr
    low: Number
    high: Number
    unit: Number = Field(1, description="Granularity: values are rounded to its multiples.")
    missing: Number = Field(
        "error", description="'error', 'drop', or the value that a missing one counts with."
    )
    in_all: Number | None = Field(
        None,
        description="Beside [unit]: the most, in absolute value, that all records of one unit add to a sum together.",
    )


class ReleaseTable(_OneOf):
    """One thing that is released."""

    cuboid: Names | None = None
    cuboids: Annotated[list[Names], Field(min_length=1)] | None = None
    weights: list[Positive] | None = None
    weight: Positive | None = None
    all_cuboids: Yes = None
    up_to: Annotated[StrictInt, Field(ge=0)] | None = None
    marginals: Tables = Field(
        None, description="Tables whose attributes are asked by values, prefixes or ranges."
    )
    asked: dict[StrictStr, Asked] | None = Field(
        None, description="How attributes of marginals are asked; by default by values."
    )
    boxes: Boxes = Field(
        None, description="Counts in boxes: a range of labels for each attribute that is named."
    )
    total: Yes = None
    ranges: RangesTable | None = None
    prefix: StrictStr | None = None
    adjacency: Yes = None
    mixing: Groups = None
    statistic: (
        Literal["clustering", "degree tail", "joint degrees", "wedges", "triangles", "chi-squared"] | None
    ) = Field(
        None,
        description="A number that is not linear in the counts: of a network, or the root of chi-squared of a table.",
    )
    attributes: Annotated[Names, Field(min_length=2, max_length=2)] | None = Field(
        None, description="The two attributes of chi-squared, whose margins are public with their values."
    )
    largest: Positive | None = Field(
        None, description="Last degree that degree tail and joint degrees tell apart."
    )
    least: Positive | None = Field(None, description="Clustering: smaller degrees count as this one.")
    classes: list[Positive] | None = Field(
        None, description="Clustering: degrees at which a new class of nodes begins."
    )
    cap: Positive | None = Field(
        None, description="Triangles and clustering: after each node kept its first so many edges."
    )
    side: Literal["both", "in", "out"] | None = Field(None, description="Which degrees a degree tail counts.")
    matrix: MatrixTable | None = None
    sums: Annotated[list[Names], Field(min_length=1)] | None = None
    averages: Annotated[list[Names], Field(min_length=1)] | None = None
    measure: MeasureTable | None = None
    table: StrictStr | None = Field(None, description="Rows of which of two linked tables are counted.")
    by: list[StrictStr] | None = Field(
        None,
        description="By which attributes; the name of the second table is how many of its rows one of the first has.",
    )
    balance: Number = None
    name: StrictStr | None = None
    row_names: Names | None = None
    unit: StrictStr | None = None
    mechanism: StrictStr | None = Field(
        None, description="What releases it, by the name that `policygraph compare` lists; by default auto."
    )

    nonnegative: StrictBool = Field(
        False, description="Published counts are whole and not negative; not beside a mechanism."
    )

    KEYS = RELEASES

    @model_validator(mode="before")
    @classmethod
    def _up_to_alone(cls, value: Any) -> Any:
        if isinstance(value, dict) and "up_to" in value and not any(key in value for key in RELEASES):
            return {"all_cuboids": True, **value}
        return value


class UnitTable(_Section):
    """Whose secret it is, where that is more than one record."""

    family: Positive | None = Field(
        None, description="The most records that share their value and change together."
    )
    exactly: StrictBool = Field(False, description="Every record is in a family of exactly so many.")
    column: StrictStr | None = Field(None, description="The column of the data that says whose record it is.")
    at_most: Positive | None = Field(None, description="How many records of one unit count.")
    per_cell: Positive | None = Field(None, description="How many of them count in one cell.")
    within: StrictStr | None = Field(
        None, description="The column of a larger unit, whose price is shown beside that of the unit."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> UnitTable:
        if (self.family is None) == (self.column is None):
            what = "family, for records that share their value, or column and at_most, for all records of one unit"
        elif self.column is not None and (self.at_most is None or self.exactly):
            what = "column together with at_most, the most records of one unit that count (at_most = 3, say), and without exactly"
        elif self.family is not None and (self.at_most, self.per_cell, self.within) != (None, None, None):
            what = "family alone, or with exactly"
        else:
            return self
        raise PydanticCustomError("expected", "expected {what}", {"what": what})


class LinkedTable(_Section):
    """One of two tables that a foreign key joins."""

    key: StrictStr | None = Field(
        None, description="The column that says which row it is, of the table that is pointed at."
    )
    in_: StrictStr | None = Field(
        None, alias="in", description="The name of the table whose rows these rows belong to."
    )
    foreign_key: StrictStr | None = Field(
        None, description="The column that says which row of that table a row belongs to."
    )
    at_most: Positive | None = Field(
        None, description="How many rows that belong to one row of that table count."
    )
    attributes: Annotated[dict[StrictStr, AttributeValues], Field(min_length=1)]
    total: Annotated[StrictInt, Field(ge=0)] | None = Field(
        None, description="How many rows the table has, where everybody knows it."
    )


class CubeTable(_Section):
    """How several tables of counts are published together: the arguments of ``pg.Cube``."""

    strategy: Literal["all", "base", "bmax", "unequal", "unequal-max", "fourier"] = Field(
        "unequal", description="What is measured."
    )
    consistency: Literal["least-squares", "least-absolute", "least-maximum", "none"] = Field(
        "least-squares", description="In which sense tables that agree are near the noisy numbers."
    )
    nonnegative: StrictBool | Literal["nearest"] = Field(
        False,
        description="No count is negative; nearest: nothing but the nearest tables in the norm of the noise.",
    )
    whole: StrictBool = Field(False, description="All counts are whole numbers.")
    offset: Probability = Field(
        None, description="Counts are shifted so that they are negative with this probability only."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> CubeTable:
        made = self.nonnegative or self.whole
        if self.consistency == "none" and (made or self.offset is not None):
            raise _wrong(
                "a consistency other than none beside nonnegative, whole or offset, which are made on one finest table"
            )
        if self.offset is not None and (made or self.consistency != "least-squares"):
            raise _wrong(
                "offset alone: it is added to least-squares tables that are neither nonnegative nor whole"
            )
        return self


class DataTable(_Section):
    """How records are read."""

    unknown: Unknown = "error"
    columns: dict[StrictStr, StrictStr] | None = Field(
        None, description="Column of an attribute that has another name; of an edge list: from and to."
    )
    duplicates: Literal["error", "merge"] = Field("error", description="Pairs that an edge list has twice.")
    loops: Literal["error", "drop"] = Field("error", description="Loops, where the network has none.")
    delimiter: Delimiter = Field(
        None,
        description="What separates the values of a CSV line; by default what the header line contains of , ; | and tab.",
    )
    quote: Quote = Field(
        None, description="What encloses a CSV value with delimiters or line breaks; '' for none."
    )
    encoding: Encoding = Field(None, description="Encoding of a text file; by default utf-8.")
    header: Header = Field(None, description="Whether a CSV edge list starts with the names of its columns.")
    hive: Hive = Field(None, description="Whether folders named column=value are columns.")
    sheet: Sheet = Field(None, description="Sheet of an Excel workbook; by default the only one.")


class FileTable(_Section):
    """A policy file of policygraph."""

    model_config = ConfigDict(extra="forbid", title="policygraph policy file")

    domain: Annotated[dict[StrictStr, AttributeValues], Field(min_length=1)] | None = Field(
        None,
        description="Each attribute with its labels, how many values it has (labels 0, 1, ...), bins, or a file of labels.",
    )
    network: NetworkTable | None = None
    tables: Annotated[dict[StrictStr, LinkedTable], Field(min_length=2, max_length=2)] | None = Field(
        None, description="Two tables that a foreign key joins, in place of a domain."
    )
    neighbours: NeighboursTable | None = None
    unit: UnitTable | None = Field(
        None, description="Whose secret it is, where that is more than one record."
    )
    public: list[FactTable] = Field(default_factory=list, description="Exact public facts.")
    release: list[ReleaseTable] = Field(
        default_factory=list, description="What is released; by default every cell."
    )
    cube: CubeTable | None = Field(None, description="How several tables of counts are published together.")
    data: DataTable | None = None


def check_shape(given: dict[str, Any], problems: Problems) -> None:
    """Note everything whose shape is wrong."""
    try:
        FileTable.model_validate(given)
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
    model: Any = FileTable
    for part in path:
        if isinstance(part, str) and part in model.model_fields:
            model = _section(model.model_fields[part].annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _section(annotation: Any) -> Any:
    """The model of a table inside an annotation, if there is one."""
    if isinstance(annotation, type) and issubclass(annotation, _Section):
        return annotation
    return next((found for each in get_args(annotation) if (found := _section(each))), None)
