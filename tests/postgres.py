"""A Postgres server of the tests' own: a new cluster in a temporary folder, reached through a socket in it and by nobody else."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

USER = "postgres"
SETTINGS = """
listen_addresses = ''
max_connections = 200
shared_buffers = 16MB
log_min_messages = fatal
"""


def program(name: str) -> str | None:
    """Where a program of the server is: Debian keeps them out of the way."""
    listed = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)
    return listed[0] if listed else shutil.which(name)


class Postgres:
    """A cluster that is made once and can be started and stopped."""

    def __init__(self) -> None:
        # The path of a socket may not be long.
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER, USER)
        self.data = self.folder / "data"
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", USER, "-E", "UTF8", "--no-sync")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS + f"unix_socket_directories = '{self.folder}'\n")
        self.start()

    def _run(self, name: str, *words: str) -> None:
        command = [program(name) or name, *words]
        who = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **who
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "-t", "300", "-l", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; ``immediate`` ends it without a shutdown, as a crash would."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "-t", "300", "-m", mode, "stop")

    def url(self, database: str = "postgres", **more: str) -> str:
        """The address of a database."""
        listed = "&".join(f"{key}={value}" for key, value in {"host": str(self.folder), **more}.items())
        return f"postgresql://{USER}@/{database}?{listed}"

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
