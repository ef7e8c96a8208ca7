"""The tables, figures, examples and theorems of the papers behind the library, each by one command.

    python -m benchmarks.papers [--small] [--write] [NAME ...]

runs the scripts of this folder (all of them, or those named) and writes one JSON file and one PNG picture for each into
``benchmarks/results/papers``. ``--small`` is the setting of the tests: seconds in all, on generated data. ``--write`` puts the
rows and pictures of the full setting into ``docs/explanation/papers.md``, where nothing is typed by hand.

To add an item, add a module; no list has to be changed. It is found by its two names:

    \"\"\"Figure 1: what the figure shows, in one sentence.\"\"\"

    from benchmarks.papers.registry import Result, Row, Script

    SCRIPT = Script(
        paper="no-free-lunch-2011",             # a key of registry.PAPERS
        title="Risk against knowledge",         # the heading on the page
        code="policygraph/attacks/",            # where the item lives; a file or folder of the repository
        order=10,                               # place among the scripts of the paper
    )

    def run(small: bool) -> Result:
        risk = ...                              # from the library, with fixed seeds
        return Result(
            rows=[Row("Figure 1", "risk at k = 1", published="0.5", ours=show(risk))],
            values={"k": ks, "risk": risks},    # what the picture is drawn from; goes into the JSON file
            note="exact; no randomness",        # setting, seeds and data, in one line
        )

    def plot(values: dict) -> Figure: ...       # optional

The command's name of ``no_free_lunch_figure_1.py`` is ``no-free-lunch-figure-1``. The rules, held by ``tests/test_papers.py``:

- ``published`` is what the paper prints, with ``place`` where; empty if it prints nothing. ``ours`` is computed, never typed.
- A row holds if both are equal, or as ``holds=`` says. A row that does not hold has a ``reason``: the true one.
- Both settings give the same rows. ``fixed=False`` marks a row whose ``ours`` depends on the setting (draws, data, seconds);
  the test compares the others with the page, digit by digit.
- The small setting takes a few seconds at most and reads no data set. ``benchmarks.papers.data`` has stand-ins.
"""
