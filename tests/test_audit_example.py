"""The example that audits another library shows what it says, with that library or its published formula."""

import importlib.util

from tests.paths import ROOT


def test_a_tree_whose_claim_is_too_small():
    spec = importlib.util.spec_from_file_location(
        "audit_example", ROOT / "examples" / "audit_another_library.py"
    )
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    found, before, after = example.find()
    assert (found.power, found.kind) == (20, "exact")
    assert found.proved
    claim, measured, _ = example.claimed(before, after)
    assert claim == 4
    assert round(measured**2) == 20
