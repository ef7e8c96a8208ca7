"""What all tests share: random examples are the same in every automatic run, so that a red run is the change's fault."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from coverage import Coverage
from hypothesis import settings

from tests import servers

# Matrices of tests are small: threads of the linear algebra would wait for each other, at several times the processor time.
# Set before numpy is imported, and inherited by every process that a test or pytest starts.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# No test looks at the clock: an example may take as long as a busy machine needs.
settings.register_profile("automatic", derandomize=True, deadline=None)
settings.register_profile("patient", deadline=None)
settings.load_profile("automatic" if os.environ.get("CI") else "patient")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Recording lines makes Python about half as fast: it rests during slow tests."""
    marker = item.get_closest_marker("slow")
    recorder = Coverage.current() if os.environ.get("COVERAGE_FILE") else None
    if recorder is None or marker is None or marker.kwargs.get("recorded"):
        yield
        return
    recorder.stop()
    yield
    recorder.start()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[servers.Postgres]:
    """A Postgres server that all tests of a process share; tables of one test are named after it."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if servers.programs() is None:
        pytest.skip("Postgres is not installed")
    server = servers.Postgres()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local Spark session that all tests of a process share."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Java is not installed")
    session = servers.spark_session()
    yield session
    session.stop()
