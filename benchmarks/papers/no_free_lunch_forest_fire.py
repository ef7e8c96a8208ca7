"""Section 3, forest fire: links between two communities without and with Bob's, as the text describes the model and in every other reading of it."""

from __future__ import annotations

from typing import Any

from benchmarks.papers._readings import readings
from benchmarks.papers.registry import Result, Row, Script, show
from policygraph.attacks import participation

SCRIPT = Script(
    "no-free-lunch-2011",
    "Section 3: participation in a forest fire",
    "policygraph/attacks/participation.py",
    30,
)
PUBLISHED = (119, 240)
NEAR = 0.05
PLACE = "Section 3, forest fire"
WHY = (
    "the stated parameters do not give the stated figures in the literal reading; the last rows list what was tried. That the effect "
    "is many times 1 holds in either"
)


def off(means: tuple[float, ...]) -> float:
    """The larger of the two relative distances to the published figures."""
    return max(abs(mean / published - 1) for mean, published in zip(means, PUBLISHED))


def run(small: bool) -> Result:
    runs = 2_000 if small else 1_000_000
    model = participation.forest_fire()
    found = model.effect(runs)
    half = 1.96 * found.deviation
    tried = list(readings())
    rough, fine = (10, 20) if small else (200, 100_000)
    looked = tried[:: len(tried) // 12] if small else tried
    first = {reading: reading.means(rough, 1) for reading in looked}
    # With 200 runs a mean is known to about 5 %, so that a reading near both figures is hardly ever left out at 20 %.
    close = [reading for reading, means in first.items() if off(means[:2]) < 0.2] or [
        min(first, key=lambda reading: off(first[reading][:2]))
    ]
    second = {reading: reading.means(fine, 3) for reading in close}
    best = min(second, key=lambda reading: off(second[reading][:2]))
    near = [reading for reading, means in second.items() if off(means[:2]) < NEAR]
    exact = [
        reading
        for reading, means in second.items()
        if all(abs(m - p) < 0.5 + 1.96 * e for m, p, e in zip(means[:2], PUBLISHED, means[2:]))
    ]
    at = second[best]
    half_both = participation.forest_fire(forward=0.5, backward=0.5).effect(runs)
    epsilon = found.epsilon_interval(1.0)
    rows = [
        Row(
            PLACE,
            "links between the communities without Bob's",
            "119",
            show(found.without),
            reason=WHY,
            fixed=False,
        ),
        Row(
            PLACE,
            "links between the communities with Bob's",
            "240",
            show(found.linked),
            reason=WHY,
            fixed=False,
        ),
        Row(
            PLACE,
            "difference, which is the least factor between the loss for a link and the loss that hides its participation",
            "121",
            f"{show(found.difference)} (95 %: {found.difference - half:.2f} to {found.difference + half:.2f})",
            reason=WHY,
            fixed=False,
        ),
        Row(
            PLACE,
            "loss that participation needs where links get epsilon = 1",
            "at most 0.0083",
            f"at most {epsilon[0]:.4f} to {epsilon[1]:.4f} (95 %)",
            reason=WHY,
            fixed=False,
        ),
        Row(
            PLACE,
            "0.5 for both probabilities and all else as in the text: without, with",
            "",
            f"{show(half_both.without)}, {show(half_both.linked)}",
            fixed=False,
        ),
        Row(
            PLACE,
            f"readings of the text tried; within {NEAR:.0%} of both figures; within their rounding and the sampling error",
            "",
            f"{len(looked):,}; {len(near)}; {len(exact)}",
            code="benchmarks/papers/_readings.py",
            fixed=False,
        ),
        Row(
            PLACE,
            "the nearest of them",
            "119, 240",
            f"{at[0]:.1f}, {at[1]:.1f}: {best}",
            reason="a search over so many readings finds near ones by chance, and the nearest departs from the text in several places at once: no "
            "evidence that it is what was run",
            code="benchmarks/papers/_readings.py",
            fixed=False,
        ),
    ]
    drawn = [[means[0], means[1]] for means in first.values()]
    values: dict[str, Any] = {
        "readings": drawn,
        "literal": [found.without, found.linked],
        "half": [half_both.without, half_both.linked],
        "near": [
            {"reading": str(r), "departures": r.departures, "means": second[r]}
            for r in sorted(near, key=lambda r: off(second[r][:2]))
        ],
        "tried": [{"reading": str(r), "means": means} for r, means in first.items()],
    }
    note = (
        f"{runs:,} runs of the literal model, seeded; {len(looked):,} readings with {rough} runs each, those within 20 % of both figures with {fine:,} "
        "(the others are listed in the JSON file)."
    )
    return Result(rows, values, note)


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 5), layout="constrained")
    axes.scatter(*zip(*values["readings"]), s=9, color="0.65", label="one reading")
    axes.scatter(*values["literal"], s=70, color="tab:blue", marker="o", label="literal reading")
    axes.scatter(
        *values["half"], s=70, color="tab:green", marker="^", label="literal, 0.5 for both probabilities"
    )
    axes.scatter(*PUBLISHED, s=110, color="tab:red", marker="x", label="published")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="links between the communities without Bob's",
        ylabel="with Bob's",
        title=f"Forest fire to 50 nodes: {len(values['readings']):,} readings of the text",
    )
    axes.legend(loc="lower right")
    return figure
