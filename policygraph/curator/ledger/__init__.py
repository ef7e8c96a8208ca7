"""The budget book: what was spent, on which data, under which policy. Start with :mod:`.book`.

``book`` is the ledger as users meet it, ``rules`` says how losses compose, when a charge fits a limit and what remains protected,
``accounts`` holds the values that go in and out, ``teams`` accounts inside accounts, reservations and dates, ``forecasts`` what lies ahead, ``exports`` the
forms of others, ``schema`` the tables and their seals, ``store`` the file and its failures, ``server`` a ledger on Postgres.
"""

from policygraph.curator.ledger.accounts import (
    Account,
    Charge,
    Entry,
    RecordedRequest,
    Share,
    request_fingerprint,
)
from policygraph.curator.ledger.book import Ledger, Tags, place_of
from policygraph.curator.ledger.forecasts import Alert, Forecast
from policygraph.curator.ledger.rules import ChargedPart, Statement
from policygraph.curator.ledger.teams import Reservation

__all__ = [
    "Account",
    "Alert",
    "Charge",
    "ChargedPart",
    "Entry",
    "Forecast",
    "Ledger",
    "RecordedRequest",
    "Reservation",
    "Share",
    "Statement",
    "Tags",
    "place_of",
    "request_fingerprint",
]
