"""Mutation tests of the trusted code: change it in small ways, and see whether a test notices.

    python -m tests.mutation run [AREA ...] [--most 40] [--seed 1]   # mutate, test, keep the results in mutants/
    python -m tests.mutation retry AREA ...                          # try the survivors again, after tests were added
    python -m tests.mutation collect AREA ...                        # keep the results of a run that was stopped
    python -m tests.mutation page                                    # write them into docs/reference/mutants.md

mutmut makes the mutants and runs, for each, the tests that reach it. Mutants that change only what an error says are
left out; of the others a sample is tried, ``--most`` of each module, always the same for the same seed and code.
A survivor needs a new test, or a reason in ``tests/mutants.toml`` why no test can tell it from the original.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "mutants"
PAGE = ROOT / "docs" / "reference" / "mutants.md"
REASONS = ROOT / "tests" / "mutants.toml"
STATUS = {
    0: "survived",
    5: "no test",
    33: "no test",
    None: "not tried",
    24: "killed",
    36: "killed",
    -24: "killed",
}
"""Exit codes of mutmut; a mutant that does not end in time is noticed, and all other codes are failed tests."""


@dataclass(frozen=True)
class Area:
    """Modules that are mutated together, and the tests that should notice."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "gate": Area(
        (
            "policygraph/curator/gate.py",
            "policygraph/curator/histogram.py",
            "policygraph/curator/releasing.py",
        ),
        (
            "tests/curator/test_gate.py",
            "tests/curator/test_histogram.py",
            "tests/curator/test_requests.py",
            "tests/mechanisms/test_release.py",
            "tests/mechanisms/test_measures_release.py",
        ),
    ),
    "runners": Area(
        ("policygraph/curator/runners/*",),
        (
            "tests/curator/test_gate.py",
            "tests/mechanisms/test_adaptive.py::test_a_plan_that_asks_for_more_than_the_loss_is_cut_off",
            "tests/mechanisms/test_adaptive.py::test_choices_follow_their_literal_chances",
            "tests/mechanisms/test_adaptive.py::test_scores_are_exact_for_all_numbers_and_for_whole_ones_alone",
            "tests/mechanisms/test_adaptive.py::test_a_score_changes_by_the_size_of_its_weight",
            "tests/mechanisms/test_adaptive.py::test_ties_are_broken_evenly",
            "tests/mechanisms/test_exponential.py",
            "tests/mechanisms/test_exponential_chains.py",
            "tests/mechanisms/test_partition.py",
            "tests/mechanisms/test_partition_exact.py",
            "tests/mechanisms/test_sparse.py",
            "tests/mechanisms/test_transform_mechanisms.py",
        ),
    ),
    "noise": Area(
        ("policygraph/curator/noise/*",),
        (
            "tests/curator/test_noise_draws.py",
            "tests/curator/test_noise_exact.py",
            "tests/curator/test_noise_rng.py",
            "tests/mechanisms/test_sparse.py",
        ),
    ),
    "parts": Area(("policygraph/curator/counting/parts.py",), ("tests/curator/test_parts.py",)),
    "engines": Area(
        (
            "policygraph/curator/counting/engines/compiled.py",
            "policygraph/curator/counting/engines/postgres.py",
            "policygraph/curator/counting/dialect.py",
        ),
        # Spark takes ten seconds to start, for every mutant.
        tuple(
            f"tests/curator/test_engines.py::test_{name}"
            for name in (
                "doubles_are_printed_alike",
                "only_base_tables_are_read",
                "equality_is_that_of_texts_whatever_the_collation",
                "one_snapshot_from_the_first_look_to_the_last",
                "settings_of_the_role_change_nothing",
                "a_server_that_refuses_is_one_sentence_without_the_password",
                "a_release_of_postgres_is_the_same_request_as_of_the_frame",
                "every_statement_compiles_for_every_engine",
                "counts_of_a_server_come_in_blocks",
                "short_floats_are_printed_by_their_own_digits",
            )
        ),
    ),
    "spark": Area(
        ("policygraph/curator/counting/engines/spark.py",),
        tuple(
            f"tests/curator/{name}"
            for name in (
                "test_engines.py::test_parquet_files_are_counted_by_spark",
                "test_engines.py::test_a_session_that_is_started_here_has_its_own_settings",
                "test_engines.py::test_what_spark_would_guess_is_refused",
                "test_engines.py::test_spark_reads_times_whatever_the_zone_of_the_session",
                "test_engines.py::test_spark_counts_in_two_steps_and_collects_no_record",
                "test_engines.py::test_settings_of_a_session_change_nothing",
                "test_engines.py::test_names_of_folders_and_columns_are_read_as_duckdb_reads_them",
                "test_engines.py::test_short_floats_are_printed_by_their_own_digits",
                "test_engines.py::test_spark_says_what_it_cannot_read",
                "test_noise_in_blocks.py::test_spark_makes_the_same_parts_as_this_process",
                "test_noise_in_blocks.py::test_spark_refuses_records_that_changed_and_a_folder_that_is_there",
            )
        ),
    ),
    "blocks": Area(
        (
            "policygraph/curator/noise/blocks.py",
            "policygraph/curator/runners/blocks.py",
            "policygraph/curator/counting/held.py",
        ),
        # All but the one that starts Spark.
        tuple(
            f"tests/curator/test_noise_in_blocks.py::test_{name}"
            for name in (
                "blocks_are_noise_of_keys_of_their_own",
                "the_key_of_a_block_is_the_one_of_the_proof_page",
                "a_block_that_is_none_and_counts_without_a_cell_are_refused",
                "a_last_block_of_one_cell_and_cells_side_by_side",
                "labels_keep_their_types_in_the_files",
                "folders_that_are_missing_are_made",
                "what_is_rehearsed_depends_on_the_noise_and_never_on_the_key_of_the_release",
                "a_table_in_parts_is_counts_and_noise",
                "a_crash_in_the_middle_draws_the_same_noise_again",
                "what_cannot_be_written_in_parts_is_refused_before_the_charge",
                "a_cuboid_beyond_one_vector",
                "the_column_of_values_is_never_an_attribute",
                "another_scale_never_meets_the_same_key",
            )
        ),
    ),
    "teams": Area(
        (
            "policygraph/curator/ledger/teams.py",
            "policygraph/curator/ledger/forecasts.py",
            "policygraph/curator/ledger/exports.py",
        ),
        # On a file, which takes no server and no race.
        (
            "tests/curator/test_ledger_teams.py",
            "tests/cli/test_budget.py",
            "-k",
            "not server and not race and not literal and not layout",
        ),
    ),
    "check": Area(("policygraph/check.py",), ("tests/sensitivity/test_check.py",)),
    "requests": Area(("policygraph/curator/requests.py",), ("tests/curator/test_requests.py",)),
    "online": Area(
        ("policygraph/curator/online.py",),
        # Without the processes that are killed or race.
        ("tests/curator/test_online.py", "-k", "not process"),
    ),
    "linked": Area(("policygraph/curator/counting/linked.py",), ("tests/curator/test_linked.py",)),
    "verify-linked": Area(
        ("policygraph/sensitivity/verify/linked.py", "policygraph/sensitivity/verify/claims.py"),
        ("tests/model/test_linked.py",),
    ),
    "verify-units": Area(("policygraph/sensitivity/verify/units.py",), ("tests/model/test_units.py",)),
    "units": Area(
        ("policygraph/curator/counting/units.py", "policygraph/curator/runners/members.py"),
        ("tests/curator/test_units.py",),
    ),
    "excel": Area(("policygraph/curator/counting/excel.py",), ("tests/curator/test_excel.py",)),
    "profiling": Area(
        ("policygraph/curator/profiling.py",), ("tests/curator/test_profiling.py", "tests/cli/test_init.py")
    ),
    "server": Area(("policygraph/curator/ledger/server.py",), ("tests/curator/test_ledger_server.py",)),
    "counting": Area(
        ("policygraph/curator/counting/*",),
        (
            "tests/curator/test_counting.py",
            "tests/curator/test_networks_data.py",
            "tests/curator/test_odd_data.py",
        ),
    ),
    "ledger": Area(
        ("policygraph/curator/ledger/*",),
        (
            "tests/curator/test_ledger.py",
            "tests/curator/test_ledger_details.py",
            "tests/curator/test_ledger_parts.py",
            "tests/curator/test_ledger_once.py::test_a_ledger_of_the_layout_before_is_brought_up_to_date",
            "tests/curator/test_ledger_once.py::test_a_ledger_of_layout_3_is_brought_up_to_date",
        ),
    ),
    "verify": Area(
        ("policygraph/sensitivity/verify/*",),
        (
            "tests/sensitivity/test_verify.py",
            "tests/sensitivity/test_certificates.py",
            "tests/sensitivity/test_forgeries.py::test_forged_certificates_of_networks",
            "tests/estimation/test_statistics.py::test_no_pair_of_neighbours_changes_more_than_the_bound",
            "tests/estimation/test_statistics.py::test_the_bound_is_nearly_attained_and_a_smaller_one_is_refuted",
        ),
    ),
}

CONFIGURATION = """
[tool.mutmut]
source_paths = ["policygraph"]
only_mutate = {modules}
also_copy = ["README.md", "policies", "benchmarks"]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
timeout_multiplier = 5.0
"""

FORGETTING = '''

def pytest_runtest_setup():
    """Forget what functions remember: mutants are forked from a process that has run the tests, and would never be called."""
    import sys

    for name, module in list(sys.modules.items()):
        if name.startswith("policygraph"):
            for scope in (module, *(kept for kept in vars(module).values() if isinstance(kept, type))):
                for kept in list(vars(scope).values()):
                    if callable(clear := getattr(kept, "cache_clear", None)):
                        clear()
'''
"""Added to conftest.py of the copy."""


@dataclass(frozen=True)
class Mutant:
    """One changed function."""

    name: str
    module: str
    function: str
    before: str
    after: str
    wording: bool


class Wording(ast.NodeTransformer):
    """Takes away what an error says and what is text."""

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        call = node.exc
        return ast.Raise(call.func if isinstance(call, ast.Call) else call, node.cause)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node


def meaning(function: ast.FunctionDef) -> str:
    """The function without name, decorators and wording."""
    bare = ast.parse(ast.unparse(function)).body[0]
    assert isinstance(bare, ast.FunctionDef)
    bare.name, bare.decorator_list = "f", []
    return ast.dump(Wording().visit(bare))


def changed(old: ast.FunctionDef, new: ast.FunctionDef) -> tuple[str, str]:
    """The lines that differ, written in the normal form of ``ast``."""
    before, after = (
        ast.unparse(function).replace(f"def {function.name}(", "def (", 1).splitlines()
        for function in (old, new)
    )
    while before and after and before[0] == after[0]:
        before, after = before[1:], after[1:]
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    return tuple(" ".join(line.strip() for line in lines) for lines in (before, after))  # type: ignore[return-value]


def mutants(folder: Path) -> Iterator[Mutant]:
    """All mutants that mutmut made in this folder."""
    for meta in sorted((folder / "mutants").rglob("*.py.meta")):
        path = meta.with_suffix("")
        module = str(path.relative_to(folder / "mutants"))
        found = {n.name: n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)}
        for name in json.loads(meta.read_text())["exit_code_by_key"]:
            last = name.rsplit(".", 1)[1]
            stem = last.rpartition("__mutmut_")[0]
            old, new = found[f"{stem}__mutmut_orig"], found[last]
            function = stem.removeprefix("xǁ").removeprefix("x_").replace("ǁ", ".")
            yield Mutant(name, module, function, *changed(old, new), wording=meaning(old) == meaning(new))


def prepare(area: str) -> Path:
    """A copy of the files under version control, with the configuration of the area."""
    folder = PLACE / area
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        modules, tests = (json.dumps(list(words)) for words in (AREAS[area].modules, AREAS[area].tests))
        file.write(CONFIGURATION.format(modules=modules, tests=tests))
    with (folder / "tests" / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(FORGETTING)
    return folder


def mutmut(folder: Path, *names: str, children: int, check: bool = True) -> None:
    """Run mutmut on these mutants."""
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(children), *names]
    with (folder.parent / f"{folder.name}.log").open("w") as log:
        done = subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False)
    if check and done.returncode:
        raise SystemExit(f"mutmut failed, see {log.name}")


def run(area: str, most: int, seed: int, children: int) -> None:
    """Make the mutants of an area, try a sample, and keep what happened."""
    folder = prepare(area)
    mutmut(folder, "make-only", children=children, check=False)
    every = list(mutants(folder))
    chosen: list[Mutant] = []
    for module in sorted({mutant.module for mutant in every}):
        able = [mutant for mutant in every if mutant.module == module and not mutant.wording]
        chosen += random.Random(f"{seed} {module}").sample(able, min(most, len(able)))
    plan = {"most": most, "seed": seed, "names": [mutant.name for mutant in chosen]}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    mutmut(folder, *plan["names"], children=children)
    collect(area)


def retry(area: str, children: int) -> None:
    """Try the survivors of an area again, with the tests of now; the others keep their verdict."""
    plan, codes = json.loads((PLACE / area / "plan.json").read_text(encoding="utf-8")), verdicts(area)
    left = [name for name in plan["names"] if STATUS.get(codes[name], "killed") in ("survived", "no test")]
    if not left:
        return
    folder = prepare(area)
    plan["codes"] = {name: code for name, code in codes.items() if name not in left}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    mutmut(folder, *left, children=children)
    collect(area)


def verdicts(area: str) -> dict[str, int | None]:
    """Exit codes of all mutants of an area by name, None where one was not tried."""
    folder = PLACE / area
    codes: dict[str, int | None] = {}
    for meta in (folder / "mutants").rglob("*.py.meta"):
        codes |= json.loads(meta.read_text())["exit_code_by_key"]
    earlier = json.loads((folder / "plan.json").read_text(encoding="utf-8")).get("codes", {})
    return {name: earlier.get(name) if code is None else code for name, code in codes.items()}


def collect(area: str) -> None:
    """Keep what happened to the mutants of an area; of a run that was stopped, to those that it came to."""
    folder = PLACE / area
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    every = list(mutants(folder))
    codes = verdicts(area)
    chosen = set(plan["names"])
    tried = [
        {
            "module": mutant.module,
            "function": mutant.function,
            "before": mutant.before,
            "after": mutant.after,
            "status": STATUS.get(codes[mutant.name], "killed"),
        }
        for mutant in every
        if mutant.name in chosen and codes[mutant.name] is not None
    ]
    made = {
        module: [
            sum(mutant.module == module for mutant in every),
            sum(mutant.module == module and mutant.wording for mutant in every),
        ]
        for module in sorted({mutant.module for mutant in every})
    }
    content = {"area": area, "most": plan["most"], "seed": plan["seed"], "made": made, "tried": tried}
    (PLACE / f"{area}.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    left = sum(each["status"] != "killed" for each in tried)
    print(f"{area}: {len(every)} mutants, {len(tried)} tried, {left} not noticed")


def reasons() -> dict[tuple[str, str, str], str]:
    """Why survivors are harmless, by function, old and new text."""
    found = tomllib.loads(REASONS.read_text(encoding="utf-8")).get("survivor", []) if REASONS.exists() else []
    return {(each["function"], each["before"], each["after"]): each["reason"] for each in found}


UNREAD = "Not looked at yet."
HEAD = """# Surviving mutants

Made by `python -m tests.mutation page` from the results of `nox -s mutation`. A mutant is the trusted code with one small change: another
comparison, another constant, an argument left out. A mutant is killed when a test fails; one that survives is listed here with the reason, or as open. Mutants that
change only the text of errors are left out. Of the others a random sample of each module is tried, the same for the same seed and code: {tried} of {able} mutants, {left} of which survived
the tests that `tests/mutation.py` names for each area. Those are the quick ones; slower tests may kill more. A module keeps its row until it is tried again.

| module | mutants | text only | tried | killed | survived |
|---|---|---|---|---|---|
"""


def earlier() -> dict[str, tuple[str, list[str]]]:
    """Row and survivors of every module that the page has, and that still exists."""
    table, _, listed = PAGE.read_text(encoding="utf-8").partition("## The survivors")
    found: dict[str, tuple[str, list[str]]] = {}
    for row in table.splitlines():
        module = row.split("`")[1] if row.startswith("| `") else ""
        if module and (ROOT / module).is_file():
            found[module] = row, []
    for part in ("\n" + listed).split("\n- `")[1:]:
        if (module := part.partition("`")[0]) in found:
            found[module][1].append(f"- `{part.rstrip()}\n")
    return found


def page() -> int:
    """Write the page, with the rows of before for modules that were not tried now; return 1 if a survivor has no reason."""
    known, modules = reasons(), earlier()
    for path in sorted(PLACE.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for module, (made, wording) in content["made"].items():
            tried = [each for each in content["tried"] if each["module"] == module]
            left = [each for each in tried if each["status"] != "killed"]
            row = (
                f"| `{module}` | {made} | {wording} | {len(tried)} | {len(tried) - len(left)} | {len(left)} |"
            )
            modules[module] = (
                row,
                [
                    f"- `{module}`, `{each['function']}`\n\n  ```diff\n  - {each['before']}\n  + {each['after']}\n  ```\n\n"
                    f"  {known.get((each['function'], each['before'], each['after'])) or UNREAD}\n"
                    for each in left
                ],
            )
    rows = [row for _, (row, _) in sorted(modules.items())]
    parts = [part for _, (_, listed) in sorted(modules.items()) for part in listed]
    figures = [[int(word) for word in row.split("|")[2:7]] for row in rows]
    head = HEAD.format(
        tried=sum(row[2] for row in figures), able=sum(row[0] - row[1] for row in figures), left=len(parts)
    )
    text = head + "\n".join(rows) + "\n\n## The survivors\n\n" + "\n".join(parts or ["None.\n"])
    PAGE.write_text(text, encoding="utf-8")
    open_ = sum(UNREAD in part for part in parts)
    print(f"{len(parts)} survivors, {open_} without a reason")
    return 1 if open_ else 0


def main(words: Sequence[str] | None = None) -> int:
    """Run areas or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "retry", "collect", "page"])
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("--most", type=int, default=40, help="mutants of each module that are tried")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--children", type=int, default=2, help="mutants that are tried at the same time")
    given = parser.parse_args(words)
    if given.what == "run":
        for area in given.areas or AREAS:
            run(area, given.most, given.seed, given.children)
    elif given.what == "retry":
        for area in given.areas or AREAS:
            retry(area, given.children)
    elif given.what == "collect":
        for area in given.areas:
            collect(area)
    return page()


if __name__ == "__main__":
    raise SystemExit(main())
