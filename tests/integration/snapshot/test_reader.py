"""A snapshot of real tables while they change: its chunks and the log, by the rule, are what the server has.

In:  MariaDB and MySQL; tables with keys of several kinds; a writer that inserts, updates, deletes and moves keys.
Out: waves found in the server's own binlog, their chunks in a lake. Apply's part is played by what it will be made of.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

from tests.kit.decoding import ALL_TIME, current_binlog, segment_of_file
from tests.support.captures import info_of
from tests.support.servers import FreshDatabase
from tidegate.binlog.rows.decode import decode_segment
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.limits import SNAPSHOT_WAVE_ATTEMPTS_MAX
from tidegate.local.server import Server
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import ZeroDates
from tidegate.snapshot.chunks.chunk import changes_of
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, chunk_refs
from tidegate.snapshot.chunks.ranges import divide
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.load_guard import LoadBounds
from tidegate.snapshot.marks.marks import MarkWriter
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableProgress
from tidegate.snapshot.progress.requests import events_of, request, tell, told
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.result.literals import span_condition
from tidegate.snapshot.reading.table_reader import ChunkBounds
from tidegate.snapshot.watermark import Mark, MarkKind, watermark_version
from tidegate.snapshot.waves import SeenMark, follow, refusals
from tidegate.tables import COMMIT_TS, OP, OP_DELETE, SNAPSHOTS, WATERMARK_DATABASE, WATERMARK_TABLE

pytestmark = pytest.mark.server

TABLES = {
    "numbers": "id INT PRIMARY KEY, v VARCHAR(40)",
    "pairs": "a VARCHAR(9) COLLATE utf8mb4_general_ci, id INT, v VARCHAR(40), PRIMARY KEY (a, id)",
    "bytes": "id INT NOT NULL, k VARBINARY(12) NOT NULL UNIQUE, v VARCHAR(40)",
    "listed": "e ENUM('b', 'a', 'c'), id INT, v VARCHAR(40), PRIMARY KEY (e, id)",
}
ROWS = 400
PLACES = ["before landing", "before the high mark", "before the events", "before the end's events"]
DEATHS = [*zip(["mariadb", "mysql9"] * 2, PLACES, strict=True)]
SMALL = ReaderSettings(parallel=3, chunk=ChunkBounds(40, 1 << 20, 2.0), wave_bytes=8000, wave_seconds=5.0)


def row_of(table: str, n: int, v: str) -> tuple[str, tuple[Any, ...]]:
    """An INSERT of row n."""
    match table:
        case "numbers":
            return "INSERT INTO numbers VALUES (%s, %s)", (n, v)
        case "pairs":
            return "INSERT INTO pairs VALUES (%s, %s, %s)", (("ab", "B", "\u00e4x", "Zebra's")[n % 4], n, v)
        case "bytes":
            return "INSERT INTO bytes VALUES (%s, %s, %s)", (n, random.Random(n).randbytes(9), v)
    return "INSERT INTO listed VALUES (%s, %s, %s)", ("abc"[n % 3], n, v)


class Beside(threading.Thread):
    """Works beside a reader until the `with` statement ends."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.join()


class Writer(Beside):
    """Changes the tables."""

    def __init__(self, server: Server, database: str) -> None:
        super().__init__()
        self._server, self._database = server, database
        self.changes = 0

    def run(self) -> None:
        r = random.Random(3)
        with self._server.connect(self._database) as connection, connection.cursor() as cursor:
            while not self.stopped.is_set():
                table, n = r.choice(list(TABLES)), r.randrange(ROWS)
                self.changes += 1
                match r.randrange(4):
                    case 0:
                        cursor.execute(f"UPDATE {table} SET v = %s WHERE id = %s", (f"u{self.changes}", n))
                    case 1:
                        cursor.execute(f"DELETE FROM {table} WHERE id = %s", (n,))
                    case 2:
                        sql, values = row_of(table, n, f"i{self.changes}")
                        cursor.execute(sql.replace("INSERT", "REPLACE"), values)
                    case 3:  # a key moves, if its new place is free
                        key = "id" if table != "bytes" else "k"
                        value = n + ROWS if table != "bytes" else random.Random(n + ROWS).randbytes(9)
                        cursor.execute(f"UPDATE IGNORE {table} SET {key} = %s WHERE id = %s", (value, n))
                time.sleep(0.001)


class Answers(Beside):
    """Apply, as far as the reader sees it: each wave that it recorded is answered."""

    def __init__(self, lake: LakeFiles, refused: set[int]) -> None:
        super().__init__()
        self._lake, self._refused = lake, refused

    def run(self) -> None:
        while not self.stopped.is_set():
            events = events_of(self._lake, "p") if control.exists(self._lake, SNAPSHOTS) else []
            known = {(one.token, one.name) for one in events if one.event in (EventKind.APPLIED, EventKind.REFUSED)}
            rows = []
            for wave in events:
                if wave.event is EventKind.WAVE and (wave.token, wave.name) not in known:
                    kind = EventKind.REFUSED if wave.wave in self._refused else EventKind.APPLIED
                    made = SnapshotEvent(
                        wave.snapshot, "p", "s", kind, datetime.now(UTC), *wave.name, wave=wave.wave, token=wave.token
                    )
                    rows.append(made.to_row())
            control.append(self._lake, SNAPSHOTS, rows)
            time.sleep(0.05)


@pytest.fixture
def world(any_server: Server, fresh_database: FreshDatabase, tmp_path: Path) -> Iterator[World]:
    any_server.query("SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2")
    yield World(any_server, fresh_database(any_server), LakeFiles(str(tmp_path)))
    any_server.query(f"DROP DATABASE IF EXISTS {WATERMARK_DATABASE}")


class World:
    """A server's database with the tables, filled before its log is followed; a lake."""

    def __init__(self, server: Server, database: str, lake: LakeFiles) -> None:
        self.server, self.database, self.lake = server, database, lake
        self.info = info_of(server)
        server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
        server.query(f"GRANT LOCK TABLES ON *.* TO '{server.user}'@'%'")
        with server.connect(database) as connection, connection.cursor() as cursor:
            for table, columns in TABLES.items():
                cursor.execute(f"CREATE TABLE {table} ({columns})")
                for n in range(ROWS):
                    cursor.execute(*row_of(table, n, f"v{n}"))
        server.query("FLUSH BINARY LOGS")
        self.log = current_binlog(server)

    def ask(self) -> str:
        return request(self.lake, "p", [("s", self.database, table) for table in TABLES])

    def reader(self, settings: ReaderSettings = SMALL) -> SnapshotReader:
        return SnapshotReader("p", "s", self.info, self.lake, settings)

    def progress(self) -> dict[str, TableProgress]:
        return {one.table: one for one in told(self.lake, "p", "s")}

    def versions(self) -> dict[str, TableVersion]:
        with self.server.connect() as connection:
            read = read_schema(connection, "s", lambda d, _: d == self.database, Position.of("binlog.1", 4))
        return {one.table: one for one in read if one.table}

    def applied(self) -> tuple[dict[str, list[dict[str, Any]]], int]:
        """Each table's rows by the rule, and how many waves counted."""
        versions = self.versions()
        given = {(self.database, table): [version] for table, version in versions.items()}
        mark_table = (WATERMARK_DATABASE, WATERMARK_TABLE)
        decoded = decode_segment(
            segment_of_file(self.log.read_bytes()),
            given | {mark_table: [watermark_version("s")]},
            dict.fromkeys([*given, mark_table], ALL_TIME),
        )
        assert decoded.problems == ()
        marks: list[SeenMark] = []
        changes: dict[str, list[pa.RecordBatch]] = {table: [] for table in TABLES}
        for change in decoded.changes:
            if (change.database, change.table) == mark_table:
                texts = [(row[COMMIT_TS], Mark.from_text(row["mark"])) for row in change.batch.to_pylist()]
                marks += [SeenMark(commit_ts, self.uuid, mark) for commit_ts, mark in texts if mark]
            else:
                changes[change.table].append(change.batch)
        found = follow((), marks)
        assert {(one.database, one.table) for one in found.whole} == {(self.database, table) for table in TABLES}
        waves = [wave for wave in found.ended if not wave.refused]
        for wave in waves:
            refs = chunk_refs(self.lake, "s", [wave.token])
            assert refusals(wave, [ref.chunk for ref in refs], ()) == {}
            for ref in refs:
                changes[ref.chunk.table] += changes_of(ref.read(self.lake), wave.low_ts)
        return {table: self.net(versions[table], batches) for table, batches in changes.items()}, len(waves)

    def net(self, version: TableVersion, batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
        """The last change per key, in order of commit_ts; a transaction's own order is kept."""
        rows = [row for batch in batches for row in batch.to_pylist()]
        kept: dict[Any, dict[str, Any]] = {}
        for row in sorted(rows, key=lambda row: (row[COMMIT_TS], row["_tg_seq"], row["_tg_ordinal"])):
            key = tuple(row[name] for name in version.key_names)
            kept.pop(key, None)
            if row[OP] != OP_DELETE:
                kept[key] = {name: cell for name, cell in row.items() if not name.startswith("_tg_")}
        return sorted(kept.values(), key=repr)

    @property
    def uuid(self) -> str:
        rows = self.server.query("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid')")
        return str(rows[0][1]) if rows else ""

    def truth(self, table: str) -> list[dict[str, Any]]:
        names = [column.name for column in self.versions()[table].columns]
        rows = self.server.query(f"SELECT `{'`, `'.join(names)}` FROM `{self.database}`.{table}")
        return sorted((dict(zip(names, row, strict=True)) for row in rows), key=repr)


def test_a_snapshot_beside_writes_is_the_table(world: World) -> None:
    """Small waves, a refused one among them, and a reader that is stopped and started again."""
    world.ask()
    with Writer(world.server, world.database) as writer, Answers(world.lake, refused={2}):
        looks = iter([False, False, True])
        world.reader().run(stop=lambda: next(looks))
        assert any(one.left for one in world.progress().values())
        world.reader().run()
    progress = world.progress()
    assert {one.table: one.reason for one in progress.values() if one.state is not SnapshotState.ENDED} == {}
    assert all(one.left == () and one.refused for one in progress.values() if one.refused)
    applied, waves = world.applied()
    assert waves > 3
    assert writer.changes > 50
    for table in TABLES:
        assert applied[table] == world.truth(table), table


@pytest.mark.parametrize(("any_server", "place"), DEATHS, indirect=["any_server"])
def test_a_reader_that_dies_is_gone_on_with_and_nothing_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Each time with the second landing, each of a chunk, in the second wave, or at the end; then another one comes."""
    calls = {"landed": 0, "marked": 0, "told": 0}

    def dies(owner: type, name: str, count: str, at: Callable[[tuple[Any, ...]], bool]) -> None:
        real = getattr(owner, name)

        def killed(*given: Any, **more: Any) -> Any:
            calls[count] += at(given)
            if at(given) and calls[count] == 2:
                raise KeyboardInterrupt
            return real(*given, **more)

        monkeypatch.setattr(owner, name, killed)

    def tells(*kinds: EventKind) -> Callable[[tuple[Any, ...]], bool]:
        return lambda given: any(event.event in kinds for event in given[1])

    match place:
        case "before landing":
            monkeypatch.setattr("tidegate.snapshot.wave_reading.SNAPSHOT_LAND_BYTES", 1)
            dies(ChunkWriter, "append", "landed", lambda _: True)
        case "before the high mark":
            dies(MarkWriter, "write", "marked", lambda given: given[1].kind is MarkKind.HIGH)
        case "before the events":
            dies(SnapshotReader, "_record", "told", tells(EventKind.WAVE))
        case _:
            calls["told"] = 1
            dies(SnapshotReader, "_record", "told", tells(EventKind.ENDED))
    world.ask()
    with Writer(world.server, world.database), Answers(world.lake, refused=set()):
        with pytest.raises(KeyboardInterrupt):
            world.reader().run()
        monkeypatch.undo()
        world.reader().run()
    applied, _ = world.applied()
    for table in TABLES:
        assert applied[table] == world.truth(table), table


def test_a_person_pauses_goes_on_and_cancels(world: World) -> None:
    snapshot = world.ask()
    looks = iter([False, True])
    world.reader().run(stop=lambda: next(looks))
    tell(world.lake, "p", snapshot, EventKind.PAUSED)
    before = len(events_of(world.lake, "p"))
    world.reader().run()
    assert len(events_of(world.lake, "p")) == before
    assert {one.state for one in world.progress().values()} == {SnapshotState.PAUSED}
    tell(world.lake, "p", snapshot, EventKind.RESUMED)
    with Answers(world.lake, refused=set()):
        world.reader(
            ReaderSettings(parallel=2, load=LoadBounds(threads_running=10_000), bytes_per_second=1 << 30)
        ).run()
    assert {one.state for one in world.progress().values()} == {SnapshotState.ENDED}
    assert {one.rows for one in world.progress().values()} == {ROWS}, "nothing is read twice"
    tell(world.lake, "p", world.ask(), EventKind.CANCELLED)
    world.reader().run()


def test_a_table_that_cant_be_read_is_given_up_alone_with_the_reason(world: World) -> None:
    with world.server.connect(world.database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE keyless (v INT) ENGINE = MyISAM")
        cursor.execute("CREATE TABLE nulls (k INT NULL UNIQUE)")
        cursor.execute("CREATE TABLE hollow (k INT PRIMARY KEY)")
        cursor.execute("CREATE TABLE discarded (k INT PRIMARY KEY)")
        cursor.execute("ALTER TABLE discarded DISCARD TABLESPACE")
    names = ("keyless", "nulls", "hollow", "missing", "discarded", "numbers")
    request(world.lake, "p", [("s", world.database, table) for table in names], {"where": "1 = 1"})
    with Answers(world.lake, refused=set()):
        world.reader().run()
    progress = world.progress()
    failed = {name for name, one in progress.items() if one.state is SnapshotState.FAILED}
    assert failed == {"keyless", "missing", "discarded"}
    assert "discarded" in progress["discarded"].reason
    assert "no such table" in progress["missing"].reason
    assert "MyISAM can't show it" in progress["keyless"].reason
    assert progress["nulls"].state is progress["hollow"].state is SnapshotState.ENDED
    assert (progress["hollow"].rows, progress["numbers"].rows) == (0, ROWS)


def test_a_table_whose_key_comes_into_another_order_is_begun_anew(world: World) -> None:
    """By 'ab' < 'B' it was read up to some place, beyond which 'B' < 'ab' has other rows."""
    request(world.lake, "p", [("s", world.database, table) for table in ("pairs", "numbers", "listed")])
    with Answers(world.lake, refused=set()):
        looks = iter([False, False, True])
        world.reader().run(stop=lambda: next(looks))
        assert all(one.left and one.waves for one in world.progress().values())
        world.server.query(f"ALTER TABLE {world.database}.pairs MODIFY a VARCHAR(9) COLLATE utf8mb4_bin")
        world.server.query(f"ALTER TABLE {world.database}.numbers MODIFY id BIGINT")
        world.server.query(f"ALTER TABLE {world.database}.listed MODIFY e ENUM('b', 'a', 'c', 'd')")
        world.reader().run()
        progress = world.progress()
        assert {name for name, one in progress.items() if one.state is SnapshotState.FAILED} == {"pairs"}
        assert "its key is ordered as text utf8mb4 utf8mb4_bin, integer now, and was as" in progress["pairs"].reason
        assert (progress["numbers"].rows, progress["listed"].rows) == (ROWS, ROWS)
        request(world.lake, "p", [("s", world.database, "pairs")])
        world.reader().run()
    assert [one.rows for one in told(world.lake, "p", "s") if one.table == "pairs"][-1] == ROWS


def test_a_date_that_no_calendar_has_is_what_the_pipeline_file_says_of_the_logs(world: World) -> None:
    with world.server.connect(world.database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        for table in ("dated (id INT PRIMARY KEY, d DATE)", "bare (id INT, d DATE)"):
            cursor.execute(f"CREATE TABLE {table}")
            cursor.execute(f"INSERT INTO {table.split()[0]} VALUES (1, '0000-00-00'), (2, '2024-01-01')")
        connection.commit()
    for zero_dates in ZeroDates:
        request(world.lake, "p", [("s", world.database, table) for table in ("dated", "bare", "numbers")])
        with Answers(world.lake, refused=set()):
            world.reader(replace(SMALL, zero_dates=zero_dates)).run()
        progress = world.progress()
        states = {progress[table].state for table in ("dated", "bare")}
        assert states == {SnapshotState.FAILED if zero_dates is ZeroDates.ERROR else SnapshotState.ENDED}
        assert progress["numbers"].state is SnapshotState.ENDED
    assert "zero_dates: error" in progress["dated"].reason


def test_a_table_that_apply_never_takes_is_given_up(world: World) -> None:
    request(world.lake, "p", [("s", world.database, "numbers")])
    with Answers(world.lake, refused=set(range(1, 1000))):
        world.reader().run()
    (told_of,) = world.progress().values()
    assert (told_of.state, told_of.rows) == (SnapshotState.FAILED, 0)
    assert SNAPSHOT_WAVE_ATTEMPTS_MAX <= len(told_of.refused) < 2 * SNAPSHOT_WAVE_ATTEMPTS_MAX


@pytest.mark.parametrize("kind", ["numbers", "pairs", "bytes", "listed", "words"])
def test_ranges_touch_and_are_about_even_where_keys_can_be_guessed(world: World, kind: str) -> None:
    with world.server.connect(world.database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE words (k VARCHAR(30) CHARACTER SET latin1 PRIMARY KEY, v INT)")
        for n in range(ROWS):
            cursor.execute("INSERT INTO words VALUES (%s, %s)", (f"order-{random.Random(n).randrange(10**8):08}", n))
        cursor.execute(f"ANALYZE TABLE {kind}")
        cursor.fetchall()
    version = world.versions()[kind]
    with WorkerConnection(world.info) as asked:
        spans = divide(version, asked.ask, 4)
        place = f"`{world.database}`.{kind}"
        conditions = [span_condition(version.key_names, span) or "1" for span in spans]
        counts = [asked.ask(f"SELECT COUNT(*) FROM {place} WHERE {condition}")[0][0] for condition in conditions]
        assert divide(version, asked.ask, 1) == (WHOLE,)
    assert sum(counts) == ROWS
    assert (spans[0].after, spans[-1].upto) == (None, None)
    assert [span.upto for span in spans[:-1]] == [span.after for span in spans[1:]]
    if kind in ("numbers", "bytes", "words"):
        assert len(counts) >= 4
        assert max(counts) < ROWS / 2
