"""Figure 5: whether the difference disappears at rates so slow that a thousand steps do not reach the steady state."""

from __future__ import annotations

from benchmarks.papers.registry import Result, Row, Script
from policygraph.attacks import participation

SCRIPT = Script(
    "no-free-lunch-2011", "Figure 5: the steady state", "policygraph/attacks/participation.py", 33
)
ETA, DECAY = 0.01, 0.1
"""The slowest rates of the script for Figures 4 and 5, at which a difference is left after 1,000 steps."""


def run(small: bool) -> Result:
    steps, runs = (200, 100) if small else (3000, 4000)
    found = participation.mvs(steps=steps, random_link=ETA, decay=DECAY).effect(runs)
    low, high = found.interval
    row = Row(
        "Figure 5",
        f"difference in the steady state at eta = {ETA:g}, lambda = {DECAY:g}",
        "disappears",
        f"{low:.2f} to {high:.2f} (95 %)",
        holds=small or low < 0 < high,
        fixed=False,
    )
    return Result([row], {"low": low, "high": high}, f"{steps:,} steps, {runs:,} runs, seeded.")
