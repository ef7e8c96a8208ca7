"""What the studio does: a file, a policy, a forecast, a release. Owns :class:`Work`; knows nothing of the web."""

from __future__ import annotations

import hashlib
import io
import re
import secrets
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from policygraph.api import Request, perform
from policygraph.attacks.lint import attack
from policygraph.compare import named_mechanism
from policygraph.curator.counting.reading import Files
from policygraph.curator.ledger import Ledger
from policygraph.curator.releasing import calibrated
from policygraph.errors import InputError, PolicyGraphError
from policygraph.exact import as_fraction, show
from policygraph.files import PolicyFile, load
from policygraph.files.beginning import Beginning, warnings
from policygraph.model.constraints import Cuboid
from policygraph.model.domain import Domain
from policygraph.model.grouped import records_of
from policygraph.model.loss import Epsilon
from policygraph.report import report
from policygraph.sensitivity import Sensitivity
from policygraph.sensitivity.proofs import proved, shared_proofs
from policygraph.studio.keeping import Kept

RESULTS = ("report.html", "release.csv", "release.parquet", "release.json", "certificate.json", "release.zip")
"""Files of a release that can be downloaded."""


@dataclass(frozen=True)
class Ticked:
    """What was ticked and typed about a policy."""

    used: tuple[str, ...]
    public: tuple[str, ...]
    whole: bool
    epsilon: str


@dataclass(frozen=True)
class Needs:
    """What a policy needs, before anything is spent.

    Attributes
    ----------
    certificate
        The sensitivity of what is released.
    stages
        How the mechanism that would be taken works, a sentence for each stage.
    errors
        For each table its name, how many counts it has, the standard deviation and the 95 % range of its worst count.
    attack
        What somebody learns who knows the public facts, in words; empty where nothing is public.
    """

    certificate: Sensitivity
    stages: tuple[str, ...]
    errors: tuple[tuple[str, int, float, float], ...]
    attack: str


@dataclass(frozen=True)
class Said:
    """A table of a release: its name, how many counts it has, and whether they have noise."""

    name: str
    cells: int
    noisy: bool = True

    def __str__(self) -> str:
        return f"{self.name or 'total'} ({self.cells:,} count{'' if self.cells == 1 else 's'})"


@dataclass
class Confirmation:
    """A release that is to be confirmed; what it would be is fixed when the question is put.

    Attributes
    ----------
    parts
        What is released.
    exact
        Public facts whose values no file gives: they are counted in the data, and released without noise.
    stamp
        What the page showed: nothing is released when something else is worked on meanwhile.
    """

    text: str
    data: str
    folder: Path
    loss: Epsilon
    dataset: str
    parts: tuple[Said, ...]
    exact: tuple[Said, ...]
    stamp: str
    warnings: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)
    answer: str | None = None


def safe_name(name: str) -> str:
    r"""A name for a file that was sent, without folders and without anything that a system could take for more.

    Examples
    --------
    >>> safe_name("../../etc/passwd"), safe_name("C:\\people.csv"), safe_name("..")
    ('passwd', 'people.csv', 'file')
    """
    last = re.split(r"[/\\]", name)[-1]
    kept = re.sub(r"[^\w. -]", "_", last).strip(" .")
    return kept[-100:].strip(" .") or "file"


def reserved(name: str) -> bool:
    """Whether the studio writes files of such a name beside what was sent; some systems do not tell capitals apart.

    Examples
    --------
    >>> reserved("Policy.toml"), reserved("labels-city.csv"), reserved("part-1.csv"), reserved("people.csv")
    (True, True, True, False)
    """
    return name.lower() == "policy.toml" or name.lower().startswith(("labels-", "part-", "release-"))


class Work:
    """One file and its policy, as far as somebody has come with it.

    Parameters
    ----------
    ledger
        The ledger that releases are charged to.
    """

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger
        self._kept = Kept()
        self.lock = threading.RLock()
        self.begun: Beginning | None = None
        self.choice: Ticked | None = None
        self.place = self._kept.path
        self.questions: dict[str, Confirmation] = {}
        self.published: list[str] = []
        self.beside: tuple[str, ...] = ()
        """Files that the policy names: lists of labels, and published tables."""
        self.warnings: tuple[str, ...] = ()
        """What ``init`` would warn of in the policy."""
        self.dataset = "people"
        """Whom the page asks about: what was typed last."""
        self._needs: tuple[str, Needs] | None = None

    def close(self) -> None:
        """Remove everything that was sent."""
        self._kept.remove()

    def plain(self, text: str) -> str:
        """A message with files as they were called, without the folders that they lie in here."""
        return re.sub(re.escape(str(self._kept.path)) + r"/[^/\s]+/", "", text)

    def fresh(self) -> Path:
        """A new folder for what is sent next."""
        return Path(tempfile.mkdtemp(dir=self._kept.path))

    def open(self, place: Path, data: str, published: Sequence[str]) -> None:
        """Take a data file and published tables that lie in a folder; of the data, only the columns are named."""
        begun = Beginning.of(str(place / data), {})
        with self.lock:
            self.begun, self.choice, self.place = begun, None, place
            self.published = [str(place / name) for name in published]

    def read(self, columns: Sequence[str]) -> None:
        """Look at some columns, and propose a policy for them."""
        with self.lock:
            begun = self._begun()
            self.choice = None  # a refusal below must not leave an older policy beside these columns
            begun.attributes, begun.counts, begun.stated = [], [], {}
            for name in begun.names:
                if name in columns:
                    begun.attributes.append(begun.look(name))
                else:
                    begun.leave(name, "it was not read")
            begun.check_rows()
            begun.publish(self.published, self.place)
            self._write(
                begun, Ticked(tuple(each.name for each in begun.attributes if each.used), (), False, "1")
            )

    def choose(self, choice: Ticked) -> None:
        """Write the policy file for what was ticked."""
        with self.lock:
            begun = self._begun()
            if self.choice is None:
                raise _no_policy()
            self._write(begun, choice)

    def _write(self, begun: Beginning, choice: Ticked) -> None:
        with self.lock:
            Epsilon(as_fraction(choice.epsilon, "epsilon"))
            stated = {name for names in begun.stated.values() for name in names}
            kept, parts = begun.without(choice.used, self.place)
            public = tuple(name for name in choice.public if name in choice.used and name not in stated)
            proposal = kept.propose(command="policygraph studio", public=public, whole=choice.whole)
            self.beside = (*proposal.lists, *kept.stated)
            for name, content in {"policy.toml": proposal.text, **proposal.lists, **parts}.items():
                (self.place / name).write_text(content, encoding="utf-8")
            self.warnings = tuple(warnings(kept.attributes, "policy.toml"))
            self.choice = choice

    def _begun(self) -> Beginning:
        if self.begun is None:
            raise InputError(
                "no file was chosen yet: expected a data file. Begin at the first page.", code="studio.order"
            )
        return self.begun

    @property
    def file(self) -> PolicyFile:
        """The policy file as it stands."""
        if self.choice is None:
            raise _no_policy()
        return load(self.place / "policy.toml")

    def labels(self) -> dict[str, Sequence[Any]]:
        """The labels of the columns that are used, as tables show them; none for a policy that cannot be read."""
        try:
            domain = self.file.policy.domain
        except PolicyGraphError:
            return {}
        return {name: domain.labels(name) for name in domain.names} if isinstance(domain, Domain) else {}

    def forecast(self) -> Needs:
        """Sensitivity, noise, errors, and what an attacker learns; no record is read.

        Computed once for what is ticked, however often the page is looked at and a release is asked for.
        """
        with self.lock:
            file, loss, stamp = self.file, self.loss, self.stamp
            if self._needs is not None and self._needs[0] == stamp:
                return self._needs[1]
        with shared_proofs():
            certificate = proved(file.query, file.policy)
            policy: Any = file.policy
            ready = calibrated(_mechanism(file, loss), file.query, policy, loss)
            said = self._learned(file, loss, further=False)
        errors = tuple(
            (part.name, part.height, float(np.max(ready.deviation(at))), float(np.max(ready.within_95(at))))
            for at, part in enumerate(file.query.parts)
        )
        found = Needs(certificate, tuple(ready.sentences()), errors, said)
        with self.lock:
            self._needs = (stamp, found)
        return found

    def further(self) -> str:
        """What an attacker learns, and what each further exact table would cost; this takes longer."""
        with self.lock:
            file, loss = self.file, self.loss
        return self._learned(file, loss, further=True)

    def _learned(self, file: PolicyFile, loss: Epsilon, *, further: bool) -> str:
        """What an attacker learns, in words; empty where nothing is public."""
        if not records_of(file.policy).constraints:
            return ""
        try:
            return str(attack(file.query, file.policy, loss.value, further=further))
        except PolicyGraphError as refusal:
            return self.plain(str(refusal))

    @property
    def loss(self) -> Epsilon:
        """The privacy loss that was typed."""
        return Epsilon(as_fraction("1" if self.choice is None else self.choice.epsilon, "epsilon"))

    def bundle(self) -> bytes:
        """The policy file with the files that it names, which are public with it, as a ZIP file."""
        with self.lock:
            sink = io.BytesIO()
            with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as made:
                _policy_into(made, self.file.text, self.place, self.beside)
            return sink.getvalue()

    def python(self) -> str:
        """A program that does the same with the policy file and the data beside it, and charges the same ledger for the same people."""
        with self.lock:
            data, file = Path(self._begun().data).name, self.file
            source = f"pg.Files({data!r}, **file.reading)" if file.reading else repr(data)
            return (
                "import policygraph as pg\n\n"
                'file = pg.load("policy.toml")\n'
                "print(pg.sensitivity(file.query, file.policy))\n"
                f"made = pg.release(file.query, file.policy, {source}, epsilon={show(self.loss.value)!r}, "
                f"ledger={str(self.ledger.absolute())!r}, dataset={self.dataset!r})\n"
                'made.write("out", tables=True)\n'
                'pg.report(made, "out/report.html")\n'
            )

    @property
    def stamp(self) -> str:
        """What a page shows, as a word: a form of a page that shows something else is refused."""
        text = (self.place / "policy.toml").read_text(encoding="utf-8") if self.choice is not None else ""
        return hashlib.sha256(f"{self.place.name}\n{self.loss}\n{text}".encode()).hexdigest()[:16]

    def ask(self, dataset: str, stamp: str) -> str:
        """Put the question whether to release what a page shows, and return its name. Nothing is charged."""
        if not dataset.strip():
            raise InputError(
                "the data set has no name: expected one, under which the ledger adds up all that is spent on these people.",
                code="studio.dataset",
            )
        with self.lock:
            self.check(stamp, self.stamp)
            file = self.file
            parts = tuple(Said(name, cells, spread > 0) for name, cells, spread, _ in self.forecast().errors)
            self.dataset = dataset.strip()
            name = secrets.token_hex(8)
            self.questions[name] = Confirmation(
                file.text,
                self._begun().data,
                self.place,
                self.loss,
                self.dataset,
                parts,
                _exact(file),
                stamp,
                self.warnings,
                self.beside,
            )
        return name

    def check(self, shown: str, now: str) -> None:
        """Refuse a form of a page that shows something else than what is worked on now."""
        if shown != now:
            raise InputError(
                "the file or the policy was changed in another tab: expected the page as it is now. Go back to the policy and look again; nothing was spent.",
                code="studio.stale",
            )

    def balance(self, dataset: str) -> str:
        """What the ledger says of a data set."""
        if not self.ledger.exists():
            return "it is new, so that nothing was spent, and no limit is set"
        known = [
            each
            for each in Ledger(self.ledger, create=False).datasets()
            if dataset in (each.name, each.dataset)
        ]
        if not known:
            return "nothing was spent on it so far, and no limit is set"
        limit = "no limit is set" if known[0].limit is None else f"the limit is {known[0].limit}"
        return f"spent so far: {known[0].spent or 'nothing'}; {limit}"

    def question(self, name: str) -> Confirmation:
        """A question that was put."""
        if name not in self.questions:
            raise InputError(
                "this question is not known: it was put before the studio was started again. Ask again.",
                code="studio.question",
            )
        return self.questions[name]

    def release(self, name: str, exact: Sequence[str] = ()) -> str:
        """Release what a question asked, once: the same confirmation again returns what was said. Two questions for the same are one request of the ledger.

        Every exact fact that would be counted in the data must be named.
        """
        question = self.question(name)
        missing = [str(each) for each in question.exact if str(each) not in exact]
        if missing:
            raise InputError(
                f"{', '.join(missing)} would be released exactly, without noise, and this was not confirmed: expected a tick for each. Tick them if these counts "
                "are published already; if not, go back to the policy and take the tick for public away. Nothing was spent.",
                code="studio.exact",
                value=missing,
            )
        with question.lock:
            if question.answer is None:
                question.answer = self._release(question, self.results(name))
            return question.answer

    def results(self, name: str) -> Path:
        """The folder of the release that a question asked for."""
        return self._kept.path / f"release-{name}"

    def _release(self, question: Confirmation, out: Path) -> str:
        # The text of the question, in the folder where the files lie that it names.
        policy = question.folder / f"{out.name}.toml"
        with self.lock:
            self.check(question.stamp, self.stamp)
            policy.write_text(question.text, encoding="utf-8")
            file, loss = load(policy), question.loss
        hidden: Any = file.policy
        request = Request(
            file.query,
            hidden,
            loss,
            _mechanism(file, loss),
            Files(question.data, **(file.reading or {})),
            file.columns,
            file.edges,
        )
        done = perform(request, ledger=self.ledger, dataset=question.dataset)
        done.release.write(out, tables=True)
        report(done.release, out / "report.html", account=done.account)
        files = {path.relative_to(out).as_posix(): path for path in sorted(out.rglob("*")) if path.is_file()}
        with zipfile.ZipFile(out / "release.zip", "w", zipfile.ZIP_DEFLATED) as made:
            for name, path in files.items():
                made.write(path, name)
            _policy_into(made, question.text, question.folder, question.beside, "policy/")
        if done.repeated:
            return f"This release was on record already ({loss}): nothing was spent."
        return f"Released, and charged to {question.dataset}: {loss}."


def _policy_into(
    made: zipfile.ZipFile, text: str, folder: Path, beside: Sequence[str], under: str = ""
) -> None:
    made.writestr(f"{under}policy.toml", text)
    for name in beside:
        made.write(folder / name, f"{under}{name}")


def _no_policy() -> InputError:
    return InputError(
        "no column was read yet: expected a choice of columns. Begin at the first page.", code="studio.order"
    )


def _exact(file: PolicyFile) -> tuple[Said, ...]:
    """Public facts whose values the policy does not have, so that a release takes them from the data."""
    policy = records_of(file.policy)
    return tuple(
        Said(
            ", ".join(fact.names) if isinstance(fact, Cuboid) else str(fact),
            fact.n_rows(policy.domain),
            False,
        )
        for fact in policy.constraints
        if fact.values(policy.domain) is None
    )


def _mechanism(file: PolicyFile, loss: Epsilon) -> Any:
    return named_mechanism(file.mechanism, file.query, file.policy, loss, file.cube)
