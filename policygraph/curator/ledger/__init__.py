"""The budget book: what was spent, on which data, under which policy. Start with :mod:`.book`.

``book`` is the ledger as users meet it, ``rules`` says how losses compose and when a charge fits a limit,
``statement`` says what remains protected under several policies, ``records`` holds the values that go in and
out, ``schema`` the tables and their seals, ``upgrade`` the layout before, ``store`` the file and its failures.
"""

from policygraph.curator.ledger.book import Ledger
from policygraph.curator.ledger.records import Account, Charge, Entry, RecordedRequest, request_fingerprint
from policygraph.curator.ledger.statement import Statement

__all__ = ["Account", "Charge", "Entry", "Ledger", "RecordedRequest", "Statement", "request_fingerprint"]
