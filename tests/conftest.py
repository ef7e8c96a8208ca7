"""What all tests share: random examples are the same in every automatic run, so that a red run is the change's fault."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import Postgres, program

# No test looks at the clock: an example may take as long as a busy machine needs.
settings.register_profile("automatic", derandomize=True, deadline=None)
settings.register_profile("patient", deadline=None)
settings.load_profile("automatic" if os.environ.get("CI") else "patient")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A Postgres server that is started when a test first needs it."""
    pytest.importorskip("psycopg")
    if program("initdb") is None:
        pytest.skip("Postgres is not installed")
    server = Postgres()
    yield server
    server.remove()
