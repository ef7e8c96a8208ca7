"""What the library tells a log, and logs of one JSON object a line. Owns :func:`event` and :class:`JsonLines`.

Everything goes to the standard logger ``policygraph``; without a handler nothing is written anywhere. An event has a name and fields that are known without the
data or were paid for: what was asked, what it costs, which charge it is, the code of a refusal. It never has a count, a label of a record, or the text of an error, which may quote
them; what is given out itself is not logged either.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

LOGGER = logging.getLogger("policygraph")
LOGGER.addHandler(logging.NullHandler())

Field = str | int | bool | None


def event(name: str, **fields: Field) -> None:
    """Tell the log that something happened.

    Parameters
    ----------
    name
        What happened, such as ``charged``.
    fields
        Details, as plain values.

    Examples
    --------
    >>> import io
    >>> out = io.StringIO()
    >>> handler = logging.StreamHandler(out)
    >>> handler.setFormatter(JsonLines())
    >>> LOGGER.addHandler(handler)
    >>> LOGGER.setLevel("INFO")
    >>> event("charged", charge=3, loss="epsilon = 1")
    >>> LOGGER.removeHandler(handler)
    >>> LOGGER.setLevel("NOTSET")
    >>> sorted(json.loads(out.getvalue()))
    ['charge', 'event', 'level', 'loss', 'process', 'time']
    """
    LOGGER.info(name, extra={"fields": fields})


def trace(name: str) -> None:
    """Tell the log what is being done, for somebody who looks for a fault."""
    LOGGER.debug(name)


def listening() -> bool:
    """Whether anybody wants to know of events."""
    return LOGGER.isEnabledFor(logging.INFO)


class JsonLines(logging.Formatter):
    """Write records as JSON objects, one in a line, each with ``time`` (UTC), ``level``, ``event`` and ``process``."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record; an exception that comes with it is left out, since its text may quote data."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "process": record.process,
            **getattr(record, "fields", {}),
        }
        return json.dumps(line, ensure_ascii=True, default=lambda value: type(value).__name__)
