"""A process that asks questions one by one, for tests that kill it or run two of them at once.

``python -m tests.curator.online_session LEDGER DATA`` prints a line of JSON for each answer as soon as it has it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import policygraph as pg

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 4, "region": 3})
QUESTIONS = (
    (("sex", "age"), 6),
    (("age",), 9),
    (("region",), 3),
    (("sex", "region"), 5),
    ((), 12),
    (("sex", "age"), 4),
    (("sex", "age", "region"), 12),
    (("age", "region"), 6),
)


def session(ledger: object, data: object) -> pg.OnlineCube:
    return pg.OnlineCube(pg.Policy(DOMAIN), data, ledger, dataset="people")


if __name__ == "__main__":
    cube = session(sys.argv[1], Path(sys.argv[2]))
    for names, deviation in QUESTIONS:
        made = cube.ask(*names, deviation=deviation)
        spent = None if made.spent is None else str(made.spent.value)
        print(json.dumps({"names": names, "spent": spent, "values": list(made.values)}), flush=True)
