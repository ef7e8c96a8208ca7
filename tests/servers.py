"""Real engines for tests: a Postgres server of one's own, and a local Spark session."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from glob import glob
from pathlib import Path
from typing import Any
from urllib.parse import quote

SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "log_min_messages": "fatal",
}


def programs() -> Path | None:
    """Folder of initdb and pg_ctl, where Debian or the PATH has them."""
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


class Postgres:
    """A server with a new cluster in a temporary folder, reached through a socket in it and by nobody else; ``admin`` may do everything there."""

    def __init__(self, **settings: str) -> None:
        where = programs()
        if where is None:
            raise OSError("Postgres is not installed")
        self._programs, self._as = where, _who()
        # The path of a socket may not be long.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        self.data = self.folder / "data"
        self._run("initdb", "-U", "admin", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        rules = self.data / "pg_hba.conf"
        # One role has to give a password; everybody else is let in.
        rules.write_text("local all locked scram-sha-256\n" + rules.read_text())
        with (self.data / "postgresql.conf").open("a") as file:
            listed = {**SETTINGS, "unix_socket_directories": str(self.folder), **settings}
            file.writelines(f"{name} = '{value}'\n" for name, value in listed.items())
        self.start()

    def _run(self, name: str, *words: str) -> None:
        done = subprocess.run(
            [self._programs / name, "-D", self.data, *words], cwd=self.folder, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL, **self._as,
        )  # fmt: skip
        if done.returncode:
            raise OSError(f"{name} failed: {done.stdout}{done.stderr}")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self._run("pg_ctl", "-w", "-t", "600", "-l", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; ``immediate`` ends it without a shutdown, as a crash would."""
        self._run("pg_ctl", "-w", "-t", "600", "-m", mode, "stop")

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres", **more: str) -> str:
        """Address of a database, for ``--ledger``."""
        listed = "&".join(f"{key}={value}" for key, value in {"host": str(self.folder), **more}.items())
        return f"postgresql://admin@/{database}?{listed}"

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
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
