"""A real TiDB 7.5 in one process (`make tidb` builds it), which writes its binlog to Pumps of ours.

In:  the built program; the Pumps' addresses.
Out: its ports, SQL connections, and faults on command (tools/tidb/control.go).
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pymysql

from tidegate.home import home

ROOT = Path(__file__).resolve().parents[3]
CACHE = home() / ".tidegate" / "tidb"
PROGRAM = CACHE / "bin" / "tidb-with-pump"
MISSING = "needs a real TiDB: `make tidb` builds it, 20 minutes and 4 GB of disk once"


class Tidb:
    """Started by the constructor; stop() ends it."""

    def __init__(self, folder: Path, pumps: Sequence[str], *options: str) -> None:
        self._folder, self._pumps, self._options = folder, pumps, options
        self._start(pumps)

    def _start(self, pumps: Sequence[str]) -> None:
        addresses = [word for pump in pumps for word in ("--pump", pump)]
        started = subprocess.run(
            [ROOT / "tools/tidb/start-tidb", CACHE, self._folder, *addresses, *self._options],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        self._info = json.loads(started.stdout.strip().splitlines()[-1])

    @property
    def port(self) -> int:
        return int(self._info["port"])

    def connect(self) -> pymysql.connections.Connection:
        return pymysql.connect(host="127.0.0.1", port=self.port, user="root", autocommit=True, charset="utf8mb4")

    def control(self, request: str) -> Any:
        address = f"http://127.0.0.1:{self._info['control_port']}{request}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            return json.loads(answer.read())

    def settle(self) -> None:
        """Until every Commit that it owes was sent."""
        end = time.monotonic() + 60
        while self.control("/stats").get("in_flight"):
            assert time.monotonic() < end
            time.sleep(0.05)

    def jobs(self) -> list[str]:
        """Its DDL history, as JSON."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT job_meta FROM mysql.tidb_ddl_history ORDER BY job_id")
            return [text.decode() if isinstance(text, bytes) else text for (text,) in cursor.fetchall()]

    def stop(self) -> None:
        self.control("/quit")

    @contextmanager
    def without_pumps(self) -> Iterator[Self]:
        """While the block runs it writes no binlog. Needs ports that were given."""
        self.end()
        self._start(())
        yield self
        self.end()
        self._start(self._pumps)

    def end(self) -> None:
        """As stop(); it has ended then."""
        self.stop()
        end, pid = time.monotonic() + 60, int(self._info["pid"])
        while _runs(pid):
            assert time.monotonic() < end
            time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
