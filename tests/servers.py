"""Real engines for tests: a Postgres server of one's own, and a local Spark session."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any
from urllib.parse import quote

SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "64MB",
    "max_connections": "100",
}


@dataclass(frozen=True)
class Postgres:
    """A server that listens on a socket in its folder; ``admin`` may do everything there."""

    folder: Path

    def address(
        self, table: str, *, database: str = "postgres", user: str = "admin", password: str = ""
    ) -> str:
        """Address of a table for ``--data``."""
        who = quote(user) + (f":{quote(password)}" if password else "")
        return f"postgresql://{who}@/{database}/{quote(table)}?host={quote(str(self.folder))}"

    def connect(self, **more: Any) -> Any:
        """A connection of psycopg that commits each statement."""
        import psycopg

        given = {
            "host": str(self.folder),
            "user": "admin",
            "dbname": "postgres",
            "autocommit": True,
            "options": "-c lock_timeout=20000",
        }
        return psycopg.connect(**{**given, **more})


def programs() -> Path | None:
    """Folder of initdb and postgres, where Debian or the PATH has them."""
    found = [*sorted(glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True), shutil.which("initdb") or ""]
    return Path(found[0]).parent if found[0] else None


def _who() -> dict[str, Any]:
    """The server refuses to run as root; the user of Debian's package runs it then."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise OSError("there is no user to run Postgres as")


@contextmanager
def postgres(settings: dict[str, str] | None = None) -> Iterator[Postgres]:
    """Start a server in a temporary folder, and end it."""
    where = programs()
    if where is None:
        raise OSError("Postgres is not installed")
    who = _who()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if who:
        os.chown(folder, who["user"], who["group"])
    data = folder / "data"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **who}
    try:
        made = [
            where / "initdb",
            "-D",
            data,
            "-U",
            "admin",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]
        subprocess.run(made, check=True, **quiet)
        rules = data / "pg_hba.conf"
        # One role has to give a password; everybody else is let in.
        rules.write_text("local all locked scram-sha-256\n" + rules.read_text())
        listed = {**SETTINGS, "unix_socket_directories": str(folder), **(settings or {})}
        options = [f"--{name}={value}" for name, value in listed.items()]
        server = subprocess.Popen([where / "postgres", "-D", data, *options], **quiet)
        try:
            ready = [where / "pg_isready", "-q", "-h", folder, "-U", "admin"]
            while subprocess.run(ready, check=False, **quiet).returncode:
                if server.poll() is not None:
                    raise OSError("Postgres did not start")
            yield Postgres(folder)
        finally:
            server.terminate()  # smart shutdown waits for clients; SIGINT does not
            try:
                server.wait(timeout=2)
            except subprocess.TimeoutExpired:
                server.send_signal(2)
                server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def spark_session() -> Any:
    """A local session for many small tables: one task, and no code is compiled for a query."""
    from pyspark.sql import SparkSession

    from policygraph.curator.counting.engines.spark import LOCAL

    settings = {
        **LOCAL,
        "spark.master": "local[1]",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.memory": "1g",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
