"""The steps from a data file to a proposed policy, as the command ``init`` and the studio take them. Owns :class:`Beginning`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from policygraph.curator.counting.reading import Files, suffix_of
from policygraph.curator.counting.source import Source
from policygraph.curator.profiling import RARE, columns_of, each_once, encoding_of, profile_columns
from policygraph.errors import InputError
from policygraph.files.proposal import Attribute, Proposal, decide, fitted, may_count, propose
from policygraph.files.sheets import SheetError, read_head, summed

SOME = 8
"""Labels that a sentence shows."""
TEXTS = (".csv", ".tsv", ".txt")


def rare(attribute: Attribute) -> str:
    """Labels that tell of a few people, for the curator."""
    labels = attribute.rare
    shown = ", ".join(map(repr, labels[:SOME])) + (", ..." if len(labels) > SOME else "")
    one = len(labels) == 1
    return (
        f"{attribute.name} has {len(labels):,} label{'' if one else 's'} that fewer than {RARE} records have ({shown}). Published with the policy, "
        f"{'it says' if one else 'they say'} that such people exist: take a public list, or one label for all of them."
    )


def warnings(attributes: Sequence[Attribute], policy: str) -> list[str]:
    """What a proposal gives away of a few people, and whom it does not protect; for the curator.

    Examples
    --------
    >>> [said] = warnings([Attribute("firm", "an identifier", repeats=True)], "policy.toml")
    >>> said[:64]
    'SEVERAL RECORDS of one firm: policy.toml protects single records'
    """
    said = []
    for each in attributes:
        if each.rare and each.from_data:
            said.append(f"RARE LABELS in {policy}: {rare(each)}")
        if each.repeats:
            said.append(
                f"SEVERAL RECORDS of one {each.name}: {policy} protects single records, and not all that one {each.name} has. "
                f"To protect that, add a table [unit] with column = {each.name!r} (docs/how-to/units.md)."
            )
    return said


def _encoding(file: str) -> str | None:
    """Encoding to declare for a text file that is here; None for UTF-8, and for files of other kinds."""
    return encoding_of(file) if suffix_of(file) in TEXTS and os.path.isfile(file) else None


@dataclass
class Beginning:
    """A data file that is looked at, column by column.

    Attributes
    ----------
    data
        The file, as it was named.
    reading
        What is declared about it.
    names
        Its columns.
    attributes
        What was decided about the columns that were looked at, in order.
    stated
        Published tables, as the policy file names them, and the attributes of each.
    encodings
        Encodings of those that are not UTF-8.
    """

    data: str
    reading: dict[str, Any]
    source: Source
    names: list[str]
    attributes: list[Attribute] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    stated: dict[str, list[str]] = field(default_factory=dict)
    encodings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: str, reading: dict[str, Any]) -> Beginning:
        """Open a file; the encoding of a text file is found out where nothing is declared."""
        if "encoding" not in reading and (found := _encoding(data)) is not None:
            reading = {**reading, "encoding": found}
        source, names = columns_of(Files(data, **reading))
        return cls(data, reading, source, names)

    def leave(self, name: str, why: str) -> None:
        """Leave a column unread."""
        self.attributes.append(Attribute(name, why))

    def look(self, name: str) -> Attribute:
        """Look at a column and say what it would become."""
        [column] = profile_columns(self.source, [name])
        if may_count(column) and len(self.names) > 1:
            self.counts.append(name)
        return decide(column)

    def check_rows(self) -> None:
        """Refuse a file whose rows are cells of a table and not people."""
        read = [each.name for each in self.attributes if each.used and each.name not in self.counts]
        if len(self.counts) != 1 or not read or not each_once(self.source, read):
            return
        count = self.counts[0]
        raise InputError(
            f"{self.data} looks like a table of counts: {count!r} is a count, and no two rows agree on {', '.join(read[:6])}{', ...' if len(read) > 6 else ''}. Expected one "
            f"row for each person, since a policy for these rows would hide one row, and not one person. Repeat each row {count!r} times (in pandas: "
            f"table.loc[table.index.repeat(table[{count!r}])]), or release counts in Python: pg.release takes them in the order of the domain. "
            "If each row is a person all the same, rename that column.",
            code="init.counts",
            value=count,
        )

    def publish(self, files: Sequence[str], folder: Path) -> None:
        """Take the labels of published tables; files are named as the policy file in this folder will name them."""
        place = {each.name: at for at, each in enumerate(self.attributes)}
        for file in files:
            try:
                named, encoding = Path(os.path.relpath(file, folder)).as_posix(), _encoding(file)
                for name, labels in read_head(file, list(place), encoding).items():
                    self.attributes[place[name]] = fitted(
                        self.attributes[place[name]], labels, Path(file).name
                    )
                    self.stated.setdefault(named, []).append(name)
                self.encodings.pop(named, None)
                if encoding is not None:
                    self.encodings[named] = encoding
            except (SheetError, ValueError) as cause:
                raise InputError(
                    f"{file}: {str(cause).removeprefix(f'{file}: ').rstrip('.')}. Correct the file, or state the table in the policy file by hand.",
                    code="init.published",
                    value=file,
                ) from cause

    def without(self, used: Sequence[str], folder: Path) -> tuple[Beginning, dict[str, str]]:
        """The same for fewer attributes, and the files to write into the folder for it.

        A published table that has an attribute which is left out is still published: what it says of the other attributes is stated in its place.
        """
        kept = replace(
            self,
            attributes=[
                Attribute(each.name, "it is not wanted") if each.used and each.name not in used else each
                for each in self.attributes
            ],
            stated={file: names for file, names in self.stated.items() if set(names) <= set(used)},
        )
        written: dict[str, str] = {}
        for file, names in self.stated.items():
            left = [name for name in names if name in used]
            if file in kept.stated or left in kept.stated.values():
                continue
            part = f"part-{len(written) + 1}.csv"
            try:
                written[part] = summed(str(folder / file), names, left, self.encodings.get(file))
            except SheetError as cause:
                raise InputError(str(cause), code="init.published", value=file) from cause
            kept.stated[part] = left
        return kept, written

    def propose(self, **choices: Any) -> Proposal:
        """Write the policy file."""
        try:
            return propose(
                self.attributes,
                data=Path(self.data).name,
                reading=self.reading,
                published=self.stated,
                encodings=self.encodings,
                **choices,
            )
        except ValueError as cause:
            raise InputError(
                f"{self.data}: {cause}: "
                + "; ".join(f"{each.name}: {each.why}" for each in self.attributes)
                + ". Write a policy file by hand.",
                code="init.nothing",
            ) from cause
