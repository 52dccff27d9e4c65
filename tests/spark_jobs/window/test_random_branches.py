"""XA branches in logs made by hand, cut into segments and windows anywhere, with kills, beside a plain oracle.

In:  random transactions and branches as a server would write them: prepared, answered far behind, in one phase,
     compressed, with names that come again, rolled back over segments; capture's own cutter, apply's own steps. No
     server, no Spark.
Out: silver, read by Polars, equal to the rows of what was committed up to the last whole transaction that bronze has.
"""

from __future__ import annotations

import random
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl
import pytest

from spark_jobs import apply
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.spark import no_spark
from tests.support.seeds import many, seed
from tests.support.steps import NAMES, do_before
from tests.unit.binlog.encoding import events as e
from tests.unit.mysql.stream.test_beyond_4_gib import FILE, moved, received
from tests.unit.mysql.stream.test_taken_back import HEAD, START
from tidegate import config, tables
from tidegate.binlog.format.events import EventFlag, EventType
from tidegate.config import DumpMode, Flavour
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.mysql.stream.cutter import Cutter
from tidegate.mysql.stream.cutter_settings import CutterSettings
from tidegate.mysql.stream.place import beginning
from tidegate.position import Position
from tidegate.schema.ddl.reader import tables_named
from tidegate.schema.model.columns import TableVersion
from tidegate.tables.prewrites_table import PrewriteState

SERVER: Final = "11.4.5-MariaDB-log"
CREATES: Final = (
    "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE shop.u (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE shop.w (id INT, n INT)",
)
KEYED: Final = ("t", "u")
Row = tuple[int, int]
Change = tuple[str, Row | None, Row | None]  # table, before, after


@dataclass
class Rows:
    """What sessions see, and what open branches have locked."""

    seen: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in (*KEYED, "w")})
    locked: dict[str, list[Change]] = field(default_factory=dict)  # branch -> what it changes

    def take(self, changes: list[Change]) -> None:
        for table, before, after in changes:
            if before is not None:
                self.seen[table].remove(before)
            if after is not None:
                self.seen[table].append(after)

    def copy(self) -> dict[str, list[Row]]:
        return {table: sorted(rows) for table, rows in self.seen.items()}


class Log:
    """The log of a server, and what its clients may see behind each transaction."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows = Rows()
        self.events: list[bytes] = []
        self.begins: list[int] = []  # where transactions do
        self.states: list[tuple[int, dict[str, list[Row]]]] = []  # (events up to here, what is committed)
        self._number = 0
        for sql in CREATES:
            self._send(self._gtid(standalone=True), e.query(sql))

    def step(self) -> None:
        choice = self.rng.random()
        if choice < 0.3:
            self._branch()
        elif choice < 0.6 and self.rows.locked:
            self._answer(self.rng.choice(sorted(self.rows.locked)), commits=self.rng.random() < 0.65)
        elif choice < 0.68:
            self._send(self._gtid(), *_events(self._changes(6)), e.query("ROLLBACK"))
        else:
            self._plain()

    def answer_all(self) -> None:
        for name in sorted(self.rows.locked):
            self._answer(name, commits=self.rng.random() < 0.7)

    def expected(self, landed: int) -> dict[str, list[Row]]:
        """After the last transaction that ends within so many events."""
        return next((rows for at, rows in reversed(self.states) if at <= landed), {})

    def _plain(self) -> None:
        changes = self._changes(3)
        self.rows.take(changes)
        inner = _events(changes)
        if self.rng.random() < 0.3:
            inner = [e.payload(e.query("BEGIN"), *inner, e.xid())]
        else:
            inner.append(e.xid())
        self._send(self._gtid(), *inner)

    def _branch(self) -> None:
        name = self.rng.choice(["X'00ff27',X'5c'", "X'61',X''", f"X'{self._number:04x}',X'62'", "X'61',X'00'"]) + ",1"
        if name in self.rows.locked:
            return
        changes = self._changes(self.rng.choice([0, 1, 3, 8]))
        one_phase = self.rng.random() < 0.15
        begin, end = e.query(f"XA START {name}"), e.query(f"XA END {name}")
        inner = [begin, *_events(changes), end, _prepare(name, one_phase=one_phase)]
        if self.rng.random() < 0.25:
            inner = [e.payload(*inner)]
        if one_phase:
            self.rows.take(changes)
        else:
            self.rows.locked[name] = changes
        self._send(self._gtid(), *inner)

    def _answer(self, name: str, *, commits: bool) -> None:
        changes = self.rows.locked.pop(name)
        if commits:
            self.rows.take(changes)
        self._send(self._gtid(standalone=True), e.query(f"XA {'COMMIT' if commits else 'ROLLBACK'} {name}"))

    def _changes(self, count: int) -> list[Change]:
        """Of rows that nobody has locked, each once."""
        busy = [change for changes in self.rows.locked.values() for change in changes]
        keys = {(table, row[0]) for table, before, after in busy for row in (before, after) if row and table != "w"}
        held = [before for table, before, _ in busy if table == "w" and before]
        free = list(self.rows.seen["w"])
        for row in held:
            free.remove(row)
        found: list[Change] = []
        for _ in range(count):
            table, number = self.rng.choice((*KEYED, "w")), self.rng.randrange(1 << 20)
            if table == "w":
                found.append(self._of_bag(free))
                continue
            key = self.rng.randrange(12)
            if (table, key) in keys:
                continue
            keys.add((table, key))
            before = next((row for row in self.rows.seen[table] if row[0] == key), None)
            gone = before is not None and self.rng.random() < 0.4
            found.append((table, before, None if gone else (key, number)))
        return found

    def _of_bag(self, free: list[Row]) -> Change:
        """Rows that are the same are many."""
        after = (self.rng.randrange(3), self.rng.randrange(2))
        if not free or self.rng.random() < 0.5:
            return "w", None, after
        before = free.pop(self.rng.randrange(len(free)))
        return "w", before, None if self.rng.random() < 0.6 else after

    def _gtid(self, *, standalone: bool = False) -> bytes:
        self._number += 1
        seconds = e.SECONDS + self._number // 3  # some in one second
        return e.mariadb_gtid(self._number, standalone=standalone, seconds=seconds)

    def _send(self, *events: bytes) -> None:
        self.begins.append(len(self.events))
        self.events += events
        self.states.append((len(self.events), self.rows.copy()))


def _events(changes: list[Change]) -> list[bytes]:
    found = []
    for table, before, after in changes:
        table_id = 10 + "tuw".index(table)
        kind = EventType.WRITE_ROWS_V1 if before is None else EventType.DELETE_ROWS_V1
        if before is not None and after is not None:
            kind = EventType.UPDATE_ROWS_V1
        images = b"".join(e.image(*map(e.integer, row)) for row in (before, after) if row is not None)
        found += [e.table_map(table_id, table, b"\x03\x03", b""), e.rows(kind, table_id, 2, images)]
    return found


def _prepare(name: str, *, one_phase: bool) -> bytes:
    gtrid, bqual, form = name.replace("X'", "").replace("'", "").split(",")
    parts = bytes.fromhex(gtrid), bytes.fromhex(bqual)
    head = struct.pack("<BIII", one_phase, int(form), *map(len, parts))
    return e.event(EventType.XA_PREPARE, head + b"".join(parts))


class Captured:
    """Bronze, as capture's cutter makes it of a log: segments end anywhere, capture starts anew, the server dies."""

    def __init__(self, log: Log, lake: LakeFiles) -> None:
        self.log = log
        self.landed = 0
        self._bronze = Bronze(lake, "one")
        self._cutter = Cutter(SETTINGS, beginning(file=FILE, offset=START), 1, "")
        self._file, self._at = Position.of(FILE, START).number, START
        self._sent: list[bytes] = []  # of this file
        self._send(HEAD)

    def land(self) -> None:
        """All that is in the log but, now and then, the last few events."""
        rng, whole = self.log.rng, len(self.log.events)
        if rng.random() < 0.3:
            self._starts_anew()
        upto = whole if rng.random() < 0.5 else max(whole - rng.randrange(6), self.landed)
        while self.landed < upto:
            size = min(rng.choice([1, 2, 5, 20, 60]), upto - self.landed)
            self._send(*self._placed(self.log.events[self.landed : self.landed + size]))
            self.landed += size
        if self._cutter.open and rng.random() < 0.5:
            self._server_dies()

    def _send(self, *events: bytes) -> None:
        stream, self._cutter.state["have"] = received([*events])
        self._cutter.state["read"] = 0
        if made := [*self._cutter.advance(stream), *self._cutter.cut_now()]:
            self._bronze.append(made)

    def _placed(self, events: list[bytes]) -> list[bytes]:
        found = []
        for event in events:
            self._at += len(event)
            found.append(moved(event, self._at))
        self._sent += found
        return found

    def _starts_anew(self) -> None:
        """The server sends once more what capture needs to know of a transaction that is open."""
        self._cutter = Cutter(SETTINGS, self._cutter.checkpoint, 1, "")
        begin = self._cutter.checkpoint.place.replay_from
        self._send(HEAD, *(event for event in self._sent if int.from_bytes(event[13:17], "little") > begin))

    def _server_dies(self) -> None:
        """In the open transaction, of which nothing is left; its client does the same once more."""
        self.landed = max(at for at in self.log.begins if at < self.landed)
        self._file += 1
        self._at, self._sent = 4, []
        rotate = e.event(EventType.ROTATE, (4).to_bytes(8, "little") + f"binlog.{self._file:06d}".encode())
        begun = bytearray(e.format_description())
        begun[71:75] = e.SECONDS.to_bytes(4, "little")  # when the server was started
        self._send(moved(rotate, 0, flags=EventFlag.ARTIFICIAL), *self._placed([bytes(begun)]))


def _ddl_tables(sql: str, database: str, sql_mode: int) -> list[str]:
    return tables_named(sql, database, sql_mode=sql_mode, server_version=SERVER, folds_names=False)


SETTINGS: Final = CutterSettings("one", Flavour.MARIADB, DumpMode.POSITION, 1 << 20, _ddl_tables)


class Killed(BaseException):
    """Apply dies between two steps."""


def applied(file: Path, lake: LakeFiles) -> Application:
    """A fresh application, until nothing is left to do."""
    app = Application(BackgroundSession(no_spark), config.load(file), lake, BronzeIndex(lake))
    apply.run(app, report=lambda _: None)
    return app


def dies() -> None:
    raise Killed


def in_silver(lake: LakeFiles) -> dict[str, list[Row]]:
    found = {}
    for table in (*KEYED, "w"):
        path = tables.silver_path("shop", table)
        there = lake.log(path).state().created
        rows = pl.read_delta(lake.uri(path)).select("id", "n").rows() if there else []
        found[table] = sorted(rows)
    return found


@pytest.mark.parametrize("number", range(many(3, 60)))
def test_silver_has_what_is_committed_however_the_log_is_cut_and_apply_is_killed(number: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed()}/{number}")
    lake, file = LakeFiles(str(tmp_path / "lake")), tmp_path / "road.yaml"
    file.write_text(
        f"pipeline: road\nlake: {{path: {lake.root}}}\nsources: {{one: {{conn_id: c, flavour: mariadb}}}}\n"
        "tables: {include: ['shop.*']}\napply: {mode: batch}\n"
    )
    row = TableVersion("one", "", "", 1, 0, FILE, 4, "defaults", "", (), (), "utf8mb4").to_row()
    control.append(lake, tables.SCHEMA_HISTORY, [row])
    log = Log(rng)
    captured = Captured(log, lake)
    for _ in range(8):
        for _ in range(rng.randrange(3, 12)):
            log.step()
        captured.land()
        if rng.random() < 0.5:
            with suppress(Killed), pytest.MonkeyPatch.context() as patch:  # nothing to do, where nothing came
                do_before(patch, NAMES[rng.randrange(4, len(NAMES))], dies)
                applied(file, lake)
            if rng.random() < 0.5:
                log.step()
                captured.land()
        app = applied(file, lake)
        assert not app.states, app.states
        assert in_silver(lake) == log.expected(captured.landed)
    log.answer_all()
    while captured.landed < len(log.events):
        captured.land()
    applied(file, lake)
    assert in_silver(lake) == log.rows.copy()
    known = control.newest(lake, tables.PREWRITES, by=tables.PREWRITES.key, order=["answer_ts", "recorded_at"])
    assert set(known["state"].to_pylist()) <= {PrewriteState.COMMITTED, PrewriteState.ROLLED_BACK}
