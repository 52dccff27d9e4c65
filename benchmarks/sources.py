"""What it costs to order several sources: the same changes of the same shards, from one server and from four.

In:  a warm Spark application; MariaDB servers of this section's own.
Out: row changes per CPU second of capture and apply, from four servers beside one; and of apply alone.

Both have four shards that flow into one table, as many rows, and transactions of one size. Only the sources differ: of
four each has a stream, segments and a schema history of its own, and the cut goes by the slowest.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.context import Context
from benchmarks.figures import Row, in_turns
from benchmarks.lakes import BenchLake, connection_info
from benchmarks.readers import count
from benchmarks.spark import Warm
from tests.kit.reached import position_of
from tidegate import config
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.local import mariadb
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.facts.server_facts import current_position

SOURCES: Final = 4
_UNIT: Final = "row changes per CPU second"
_STEP: Final = 1000
_SECONDS_MAX: Final = 900.0
_HEARTBEAT_SECONDS: Final = 0.5
_IDLE_SECONDS: Final = 1.5
_ATTEMPTS: Final = 20


def measure(ctx: Context, warm: Warm) -> list[Row]:
    """The whole road and apply alone, of four sources beside one."""
    rows = ctx.sizes.rows_a // 3
    with ExitStack() as stack:
        servers = [_server(stack, ctx, number) for number in range(SOURCES)]
        one = _Case(ctx, warm, "one", servers[:1])
        four = _Case(ctx, warm, "four", servers)
        for case in (one, four):
            case.play(rows)
            case.once()  # first uses aren't counted
        one.apply_cpu.clear()
        four.apply_cpu.clear()
        theirs, ours = in_turns(ctx.sizes.runs_road, one.once, four.once)
    what = f"{four.changes} row changes of {SOURCES} shards that are one table; warm"
    road = Row(
        "sources_road", f"whole road, {SOURCES} sources", _UNIT, ours, theirs, "the same shards on one server", what
    )
    alone = Row("sources_apply", f"apply alone, {SOURCES} sources", _UNIT, peer=road.peer, note=what)
    alone.ours = [four.changes / seconds for seconds in four.apply_cpu]
    alone.theirs = [one.changes / seconds for seconds in one.apply_cpu]
    return [road, alone]


def _server(stack: ExitStack, ctx: Context, number: int) -> Server:
    options = (f"--server-id={201 + number}", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0")
    server = mariadb.MariaDB(ctx.folder / f"source-{number}", mariadb.install(ctx.root), options=options)
    stack.enter_context(server)
    ctx.meter.without.add(server.pid)
    return server


class _Lake(BenchLake):
    """A lake of several sources, whose shards `NAME_N`.`t` are `bench`.`t`."""

    def __init__(self, servers: Sequence[Server], folder: Path, name: str) -> None:
        self.servers, self.name, self.folder, self.table = servers, name, folder, "t"
        entries = ", ".join(f"s{at}: {{conn_id: s{at}, flavour: mariadb, start: now}}" for at in range(len(servers)))
        pattern = f"{name}_\\d+.t"
        text = (
            f"pipeline: bench\nlake: {{path: {folder / 'lake'}}}\nsources: {{{entries}}}\n"
            f"tables: {{include: ['{pattern}'], routes: [{{match: '{pattern}', to: bench.t}}]}}\n"
            f"capture: {{heartbeat_seconds: {_HEARTBEAT_SECONDS}}}\napply: {{mode: batch}}\n"
        )
        self.pipeline = config.parse(text, where="bench.yaml")
        self.files = LakeFiles(str(folder / "lake"))

    def begin(self) -> None:
        for at in range(len(self.servers)):
            while not Bronze(self.files, f"s{at}").last_seq:
                self._run(at, 3 * _HEARTBEAT_SECONDS)

    def capture(self) -> int:
        """Of each source up to where it is now; the bytes that came."""
        done = 0
        for at, server in enumerate(self.servers):
            with server.connect() as connection, connection.cursor() as cursor:
                goal = current_position(cursor)
            for _ in range(_ATTEMPTS):
                position, size = self._run(at, 0.5)
                done += size
                if goal is None or position_of(position) >= goal:
                    break
            else:
                raise AssertionError(f"capture of s{at} never came to {goal}")
        return done

    def meet(self) -> None:
        """Each source's last word is later than all rows of the others: MariaDB tells whole seconds."""
        time.sleep(1.1)
        for at in range(len(self.servers)):
            self._run(at, _IDLE_SECONDS)

    def fork(self, folder: Path, *_apply: str, **_tables: str) -> _Lake:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        return _Lake(self.servers, folder, self.name)

    def _run(self, at: int, idle_seconds: float) -> tuple[str, int]:
        info = connection_info(self.servers[at])
        found = binlog_run(self.pipeline, f"s{at}", info, self.folder / "state").run(
            _SECONDS_MAX, idle_seconds=idle_seconds
        )
        return found.position, found.bytes


class _Case:
    """The shards on so many servers. changes: how many were played; apply_cpu: seconds per run."""

    def __init__(self, ctx: Context, warm: Warm, name: str, servers: Sequence[Server]) -> None:
        self.ctx, self.warm, self.name, self.servers = ctx, warm, name, servers
        self.changes = self.rows = 0
        self.apply_cpu: list[float] = []
        self.origin = _Lake(servers, ctx.folder / f"sources-{name}", name)

    def play(self, rows: int) -> None:
        """Inserts, and two thirds as many updates and deletes, a thousand rows a transaction, shard by shard."""
        homes = [(self.servers[at % len(self.servers)], f"{self.name}_{at}") for at in range(SOURCES)]
        for server, database in homes:
            server.query(f"CREATE DATABASE {database}")
            server.query(
                f"CREATE TABLE {database}.t (id BIGINT PRIMARY KEY, k INT, amount DECIMAL(12, 2), note CHAR(80))"
            )
        self.origin.begin()
        for first in range(1, rows // SOURCES, _STEP):
            last = first + _STEP - 1
            for server, database in homes:
                made = "seq, seq % 977, seq / 7, REPEAT(MD5(seq), 2)"
                server.query(f"INSERT INTO t SELECT {made} FROM seq_{first}_to_{last}", database=database)
                server.query(f"UPDATE {database}.t SET k = k + 1 WHERE id BETWEEN {first} AND {first + _STEP // 2 - 1}")
                server.query(f"DELETE FROM {database}.t WHERE id BETWEEN {last - _STEP // 6 + 1} AND {last}")
        steps = len(range(1, rows // SOURCES, _STEP)) * SOURCES
        self.changes = steps * (_STEP + _STEP // 2 + _STEP // 6)
        self.rows = steps * (_STEP - _STEP // 6)

    def once(self) -> float:
        """Row changes per CPU second of capture and apply."""
        lake = self.origin.fork(self.ctx.folder / f"sources-run-{os.getpid()}")
        captured = self.ctx.meter.run(lake.capture).cpu_seconds
        lake.meet()
        self.apply_cpu.append(self.ctx.meter.run(lambda: self.warm.apply(lake)).cpu_seconds)
        found = count(lake.silver)
        assert found == self.rows, f"silver has {found} rows, the sources {self.rows}"
        lake.remove()
        return self.changes / (captured + self.apply_cpu[-1])
