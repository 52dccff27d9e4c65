"""The whole road beside Flink CDC into Paimon: processes of their own on both sides, tables that have rows already.

In:  sizes. One MariaDB; workload A in a table for each side, and four small tables for both.
Out: rows for bulk (row changes per CPU second, into a table of which a third is updated), for 100 changes a second
     over 4 tables (CPU seconds a second, larger is worse), and for how soon a marker's commit is in the lake.

One side plays after the other, and nobody else reads the server meanwhile. Each is warm: a first play fills its table,
and more follow until two in a row differ by less than a tenth. The CPU of a play counts until the last commit of the
table, and the table must equal the source then.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.cpu import tree_cpu
from benchmarks.figures import Missing, Row, warmed
from benchmarks.micro_batch import Job, Workload, environment, pipeline_file
from benchmarks.peers import maven
from benchmarks.peers.process import Peer
from benchmarks.sizes import Sizes
from benchmarks.workloads import WIDE, play_batches
from tidegate import tables
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.local import jars, mariadb
from tidegate.local.server import Server
from tidegate.verify.silver_side import SilverSide

NAME: Final = "bench"
_SMALL: Final = [f"t{number}" for number in range(4)]
_MARKS: Final = "marks"
_RATE: Final = 100
_MARKS_A_SECOND: Final = 5
_SETTLED_SECONDS: Final = 6.0  # without a commit: both commit each second while there is something
_POLL_SECONDS: Final = 0.1
_WAIT_SECONDS_MAX: Final = 600.0
_WARM_SECONDS: Final = 20.0
_RUN_SECONDS: Final = 7200
_SUMS: Final = "COUNT(*), SUM(id), SUM(k), SUM(amount), SUM(flag), SUM(CHAR_LENGTH(note))"
_KEY: Final = "PRIMARY KEY (id) NOT ENFORCED"
_WIDE_TYPES: Final = (
    "id BIGINT NOT NULL, k INT NOT NULL, c STRING NOT NULL, pad STRING NOT NULL, amount DECIMAL(18,4),"
    f" ts TIMESTAMP(6) NOT NULL, flag TINYINT NOT NULL, note STRING, j STRING, {_KEY}"
)
_SMALL_TYPES: Final = f"id BIGINT NOT NULL, name STRING, amount DECIMAL(12,2), `at` TIMESTAMP(6), note STRING, {_KEY}"
_MARKS_TYPES: Final = f"id BIGINT NOT NULL, {_KEY}"


class Side(Protocol):
    """A program that keeps tables of the server in a lake. large: its table of workload A."""

    large: str

    def cpu(self) -> float:
        """CPU seconds of all its processes so far."""

    def commits(self) -> int:
        """A number that grows with each commit of its large table."""

    def sums(self) -> tuple[str, ...]:
        """_SUMS of its large table, as text."""

    def marks(self) -> list[float]:
        """When each marker so far was committed to the lake, Unix seconds, in order."""


class Tidegate:
    """capture and apply of one pipeline."""

    large = "a_ours"

    def __init__(self, root: Path, folder: Path, server: Server) -> None:
        self._lake = LakeFiles(str(folder / "lake"))
        file = pipeline_file(folder, NAME, include=(self.large, *_SMALL, _MARKS))
        env = environment(root, server, NAME)
        self._jobs = [Job(job, file, env, _RUN_SECONDS) for job in ("capture", "apply")]

    def wait(self) -> None:
        """Until capture has begun: a play before that is in no log of it."""
        end = time.monotonic() + _WAIT_SECONDS_MAX
        while Bronze(self._lake, "one").last_seq == 0:
            self.cpu()
            if time.monotonic() > end:
                raise Missing("capture doesn't begin")
            time.sleep(_POLL_SECONDS)

    def cpu(self) -> float:
        for job in self._jobs:
            job.check_alive()
        return sum(tree_cpu(job.pid) for job in self._jobs)

    def commits(self) -> int:
        return len(self._log(self.large))

    def sums(self) -> tuple[str, ...]:
        side = SilverSide()
        try:
            sums = _SUMS.replace("CHAR_LENGTH", "length")
            scan = f"delta_scan('{self._lake.uri(tables.silver_path(NAME, self.large))}')"
            return tuple(map(str, next(side._run(f"SELECT {sums} FROM {scan}", self.large))))
        finally:
            side.close()

    def marks(self) -> list[float]:
        visible: list[float] = []
        for commit in self._log(_MARKS):
            actions = [json.loads(line) for line in commit.read_text().splitlines()]
            rows = sum(json.loads(action["add"]["stats"])["numRecords"] for action in actions if _adds(action))
            visible += [commit.stat().st_mtime] * rows
        return visible

    def _log(self, table: str) -> list[Path]:
        folder = Path(self._lake.uri(tables.silver_path(NAME, table)).removeprefix("file://")) / "_delta_log"
        return sorted(folder.glob("[0-9]*.json"))

    def end(self) -> None:
        for job in self._jobs:
            job.end()


def _adds(action: dict[str, Any]) -> bool:
    """Whether rows come with it; a packed file's rows were there before."""
    return "add" in action and bool(action["add"]["dataChange"])


class FlinkPaimon:
    """One job with a sink for each table."""

    large = "a_theirs"

    def __init__(self, peer: Peer, folder: Path, server: Server) -> None:
        self._peer, self._folder = peer, folder
        self._catalog = (
            f"CREATE CATALOG lake WITH ('type' = 'paimon', 'warehouse' = 'file://{folder / 'paimon'}')",
            f"CREATE DATABASE IF NOT EXISTS lake.{NAME}",
        )
        columns = {self.large: _WIDE_TYPES, **dict.fromkeys(_SMALL, _SMALL_TYPES), _MARKS: _MARKS_TYPES}
        login = f"'hostname' = '{server.host}', 'port' = '{server.port}', 'username' = '{server.user}'"
        statements = [*self._catalog]
        for number, (table, types) in enumerate(columns.items()):
            source = (
                f"'connector' = 'mysql-cdc', {login}, 'password' = '{server.password}', 'database-name' = '{NAME}',"
                f" 'table-name' = '{table}', 'server-id' = '{97_000 + number}', 'server-time-zone' = 'UTC',"
                " 'jdbc.properties.useSSL' = 'false'"
            )
            sink = "'bucket' = '1', 'file.format' = 'parquet'"
            statements += [
                f"CREATE TEMPORARY TABLE src_{table} ({types}) WITH ({source})",
                f"CREATE TABLE IF NOT EXISTS lake.{NAME}.{table} ({types}) WITH ({sink})",
                f"INSERT INTO lake.{NAME}.{table} SELECT * FROM src_{table}",
            ]
        self._ask("job.sql", statements)

    def cpu(self) -> float:
        return tree_cpu(self._peer.pid)

    def commits(self) -> int:
        return max((int(file.name.rpartition("-")[2]) for file in self._snapshots(self.large)), default=0)

    def sums(self) -> tuple[str, ...]:
        wide = _SUMS.replace("SUM(k)", "SUM(CAST(k AS BIGINT))").replace("SUM(flag)", "SUM(CAST(flag AS BIGINT))")
        answer = self._ask("sums.sql", [*self._catalog, f"SELECT {wide} FROM lake.{NAME}.{self.large}"])
        return tuple(str(answer["values"]).split("|"))

    def marks(self) -> list[float]:
        visible: list[float] = []
        for file in sorted(self._snapshots(_MARKS), key=lambda path: int(path.name.rpartition("-")[2])):
            snapshot = json.loads(file.read_text())
            if snapshot["commitKind"] == "APPEND":
                visible += [snapshot["timeMillis"] / 1000] * int(snapshot["deltaRecordCount"])
        return visible

    def _snapshots(self, table: str) -> list[Path]:
        return list((self._folder / "paimon" / f"{NAME}.db" / table / "snapshot").glob("snapshot-*"))

    def _ask(self, name: str, statements: list[str]) -> dict[str, Any]:
        script = self._folder / name
        script.write_text("\n".join(statements))
        return self._peer.ask({"script": str(script)})


def measure(root: Path, cache: Path, sizes: Sizes) -> list[Row]:
    """Three rows. Raises Missing where the peer can't be had."""
    peer = maven.FLINK[0]
    bulk = Row("flink_bulk", "whole road into a table with rows, workload A", "row changes per CPU second", peer=peer)
    quiet = Row(
        "flink_quiet", f"{_RATE} changes a second over 4 tables", "CPU seconds a second, less is better", peer=peer
    )
    p95 = Row("flink_p95", "commit at the source to commit in the lake, p95", "seconds, less is better", peer=peer)
    jars_of_flink = maven.jars(maven.FLINK, cache)
    jars.ensure(root)
    with (
        tempfile.TemporaryDirectory() as name,
        mariadb.MariaDB(Path(name) / "mariadb", mariadb.install(root)) as server,
    ):
        folder = Path(name)
        Workload.create(server, NAME, _SMALL)
        for table in (Tidegate.large, FlinkPaimon.large):
            server.query(f"CREATE TABLE {NAME}.{table} ({WIDE})")
        server.query(f"CREATE TABLE {NAME}.{_MARKS} (id BIGINT PRIMARY KEY)")
        with _tidegate(root, folder, server) as ours:
            bulk.ours, quiet.ours, p95.ours = _figures(ours, server, sizes)
        command = maven.program("Flink.java", jars_of_flink, "-XX:+UseParallelGC")
        with Peer(peer, command) as process:
            theirs = FlinkPaimon(process, folder, server)
            bulk.theirs, quiet.theirs, p95.theirs = _figures(theirs, server, sizes)
    bulk.note = "processes of their own; both equal to the source after each play"
    quiet.note = "all processes of a side; the server's are nobody's"
    p95.note = "ours: a commit of silver; theirs: a snapshot of Paimon, by checkpoints each second"
    return [bulk, quiet, p95]


@contextmanager
def _tidegate(root: Path, folder: Path, server: Server) -> Iterator[Tidegate]:
    side = Tidegate(root, folder, server)
    try:
        side.wait()
        yield side
    finally:
        side.end()


def _figures(side: Side, server: Server, sizes: Sizes) -> tuple[list[float], list[float], list[float]]:
    """(row changes per CPU second of each play, CPU seconds a second, p95 of markers in seconds)."""
    begin = count(0, sizes.rows_a)

    def play() -> float:
        return _played(side, server, sizes.rows_a, next(begin))

    play()
    warmed(play)
    rates = [play() for _ in range(sizes.runs_road)]
    spent_a_second, p95 = _quiet(side, server, sizes.quiet_seconds)
    return rates, [spent_a_second], [p95]


def _played(side: Side, server: Server, rows: int, begin: int) -> float:
    """Row changes per CPU second of one play, up to the last commit that it caused."""
    before, commits = side.cpu(), side.commits()
    changes = play_batches(server, side.large, rows, begin).changes
    end = time.monotonic() + _WAIT_SECONDS_MAX
    spent, settled = 0.0, time.monotonic() + _SETTLED_SECONDS
    while time.monotonic() < settled or spent == 0.0:
        if time.monotonic() > end:
            raise Missing(f"{side.large}: no commit within {_WAIT_SECONDS_MAX:.0f} s")
        if (now := side.commits()) > commits:
            commits, spent, settled = now, side.cpu() - before, time.monotonic() + _SETTLED_SECONDS
        time.sleep(_POLL_SECONDS)
    (source,) = server.query(f"SELECT {_SUMS} FROM {NAME}.{side.large}")
    if side.sums() != tuple(map(str, source)):
        raise Missing(f"{side.large}: {side.sums()} isn't what the source has, {source}")
    return changes / spent


def _quiet(side: Side, server: Server, seconds: float) -> tuple[float, float]:
    """(CPU seconds a second, p95 from a marker's commit to its commit in the lake)."""
    with Workload(server, NAME, _RATE, _SMALL), server.connect(NAME) as connection, connection.cursor() as cursor:
        time.sleep(_WARM_SECONDS)
        seen, written = len(side.marks()), list[float]()
        before, started = side.cpu(), time.monotonic()
        while (due := started + len(written) / _MARKS_A_SECOND) < started + seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            cursor.execute(f"INSERT INTO {_MARKS} VALUES (%s)", (time.time_ns(),))
            written.append(time.time())
        spent, took = side.cpu() - before, time.monotonic() - started
    end = time.monotonic() + _WAIT_SECONDS_MAX
    while len(visible := side.marks()[seen:]) < len(written):
        if time.monotonic() > end:
            raise Missing(f"{side.large}: {len(visible)} of {len(written)} markers came")
        time.sleep(1.0)
    waits = [then - at for at, then in zip(written, visible, strict=True)]
    return spent / took, statistics.quantiles(waits, n=20)[-1]
