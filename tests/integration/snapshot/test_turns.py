"""Which table a reader takes next: none waits for one that can't be read now, nor for a mark that was lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.captures import info_of
from tests.support.replica_pair import until
from tests.support.segments import segment
from tests.support.servers import FreshDatabase
from tidegate.config import parse
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.servers.hosts import server_at
from tidegate.snapshot import reader
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableProgress
from tidegate.snapshot.progress.held_back import is_held_back
from tidegate.snapshot.progress.requests import events_of, request, told
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.snapshot.reading.table_reader import ChunkBounds
from tidegate.snapshot.watermark import Mark, MarkKind
from tidegate.snapshot.work import SnapshotWork
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import SNAPSHOTS, WATERMARK, WATERMARK_DATABASE, SegmentFlag, State

pytestmark = pytest.mark.server


def test_a_table_that_is_busy_keeps_nobody_waiting_that_was_asked_for_later(
    mysql9: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SNAPSHOT_LOCK_AGAIN_SECONDS", 3.0)
    database, lake, lines = fresh_database(mysql9), LakeFiles(str(tmp_path)), list[str]()
    mysql9.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mysql9.user}'@'%'")
    mysql9.query(f"GRANT LOCK TABLES ON *.* TO '{mysql9.user}'@'%'")
    mysql9.query(f"CREATE TABLE {database}.bare (a INT)")
    mysql9.query(f"CREATE TABLE {database}.keyed (a INT PRIMARY KEY)")
    mysql9.query(f"INSERT INTO {database}.keyed VALUES (1), (2)")
    for name in ("bare", "keyed"):
        request(lake, "p", [("s", database, name)])

    def read() -> bool:
        return {one.table: one.rows for one in told(lake, "p")}["keyed"] == 2

    with mysql9.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO bare VALUES (1)")
        SnapshotReader("p", "s", info_of(mysql9), lake, report=lines.append).run(lambda: read() or len(lines) >= 3)
        connection.rollback()
    assert read(), lines


def test_a_table_whose_lock_is_not_granted_fails_alone(
    mysql9: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    granted, refused, lake = fresh_database(mysql9), fresh_database(mysql9), LakeFiles(str(tmp_path))
    mysql9.query("DROP USER IF EXISTS locks@'%'")
    mysql9.query("CREATE USER locks@'%' IDENTIFIED BY 'secret'")
    mysql9.query("GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO locks@'%'")
    mysql9.query(f"GRANT LOCK TABLES ON {granted}.* TO locks@'%'")
    mysql9.query(f"GRANT CREATE, SELECT, INSERT, UPDATE, LOCK TABLES ON {WATERMARK_DATABASE}.* TO locks@'%'")
    for database in (refused, granted):
        mysql9.query(f"CREATE TABLE {database}.bare (a INT)")
        mysql9.query(f"CREATE TABLE {database}.keyed (a INT PRIMARY KEY)")
        mysql9.query(f"INSERT INTO {database}.bare VALUES (1), (2)")
        mysql9.query(f"INSERT INTO {database}.keyed VALUES (1), (2)")
    names = [(database, table) for database in (refused, granted) for table in ("bare", "keyed")]
    request(lake, "p", [("s", *name) for name in names])
    looks = iter(range(12))
    reading = SnapshotReader("p", "s", info_of(mysql9, user="locks", password="secret"), lake)
    reading.run(lambda: next(looks, None) is None)
    states = {table.name: table for table in told(lake, "p")}
    assert [name for name in names if states[name].state is SnapshotState.FAILED] == [(refused, "bare")]
    assert "GRANT LOCK TABLES" in str(states[refused, "bare"].reason)
    assert {states[name].rows for name in names if name != (refused, "bare")} == {2}


@pytest.mark.parametrize("begun", [True, False], ids=["in the middle", "by the window of its first wave"])
def test_a_table_that_is_held_keeps_no_other_one_from_being_read(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, begun: bool
) -> None:
    """Its waves are answered once a person lets it go on."""
    database, lake = fresh_database(mariadb), LakeFiles(str(tmp_path))
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    for name in ("held", "other"):
        mariadb.query(f"CREATE TABLE {database}.{name} (a INT PRIMARY KEY, b VARCHAR(200))")
        mariadb.query(f"INSERT INTO {database}.{name} SELECT seq, REPEAT('x', 200) FROM {database}.seq_1_to_400")
    request(lake, "p", [("s", database, name) for name in ("held", "other")])
    looks = 0

    def answered() -> bool:
        """As apply does, once between two waves, but for all that came of the held table behind its first wave, or
        with it.
        """
        nonlocal looks
        looks += 1
        events = events_of(lake, "p")
        known = {(one.token, one.table) for one in events if one.event is EventKind.APPLIED}
        waves = [one for one in events if one.event is EventKind.WAVE and (one.token, one.table) not in known]
        if not begun or "held" in {table for _, table in known}:
            waves = [one for one in waves if one.table != "held"]
        told_now = [replace(one, event=EventKind.APPLIED, low_ts=5, recorded_at=datetime.now(UTC)) for one in waves]
        control.append(lake, SNAPSHOTS, [one.to_row() for one in told_now])
        found = {one.table: one for one in told(lake, "p")}
        return looks > 100 or found["other"].state is SnapshotState.ENDED

    held = Standing(State.HELD, "its columns", Cause.MISMATCH)
    chunk = ChunkBounds(20, 1 << 20, 2.0)

    def kept_back(table: TableProgress) -> bool:
        return is_held_back(table, held if table.table == "held" else None)

    small = ReaderSettings(parallel=1, chunk=chunk, wave_bytes=1, is_held_back=kept_back)
    SnapshotReader("p", "s", info_of(mariadb), lake, small).run(answered)
    found = {one.table: one for one in told(lake, "p")}
    assert found["other"].state is SnapshotState.ENDED
    assert found["other"].rows == 400
    assert len(found["held"].waiting) == small.waves_waiting, "no more of it is read than apply may be late"


def test_an_end_mark_that_died_with_its_server_is_written_again(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """Capture never had it, so apply never ends the table's snapshot."""
    database, lake = fresh_database(any_server), LakeFiles(str(tmp_path))
    any_server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{any_server.user}'@'%'")
    any_server.query(f"CREATE TABLE {database}.t (a INT PRIMARY KEY)")
    text = f"pipeline: p\nlake: {{path: x}}\nsources: {{s: {{conn_id: c, flavour: {any_server.flavour}}}}}\n"
    pipeline = parse(f"{text}tables: {{include: ['{database}.*']}}\n", where="p.yaml")
    snapshot = request(lake, "p", [("s", database, "t")])
    dead, here = (999, "dead"), server_at(info_of(any_server))

    def event(kind: EventKind) -> SnapshotEvent:
        return SnapshotEvent(snapshot, "p", "s", kind, datetime.now(UTC), database, "t", wave=1, token="w")

    events = [
        replace(event(EventKind.WAVE), spans=(WHOLE,), options={"server": dead}),
        replace(event(EventKind.APPLIED), low_ts=5),
        replace(event(EventKind.ENDED), options={"server": dead}),
    ]
    control.append(lake, SNAPSHOTS, [one.to_row() for one in events])
    newest = replace(segment(1), source="s", server_id=here[0], server_uuid=here[1], flags=SegmentFlag(0))
    Bronze(lake, "s").append([newest])
    work = SnapshotWork(pipeline, lake, lambda _: info_of(any_server), lambda _: None)
    (found,) = work.read()
    assert (found.state, found.ended_at) == (SnapshotState.ENDED, here)
    ((text,),) = any_server.query(f"SELECT mark FROM {WATERMARK} WHERE pipeline = 'p' AND source = 's'")
    mark = Mark.from_text(str(text))
    assert mark is not None
    assert (mark.kind, mark.snapshot, [one.name for one in mark.tables]) == (MarkKind.END, snapshot, [(database, "t")])
    assert work.read() == [], "nothing is left"


def unasked(source: str) -> ConnectionInfo | None:
    raise AssertionError(f"nobody looks at a replica of {source}")


def test_a_source_whose_table_comes_to_wait_is_read_while_another_one_is(
    mariadb: Server, mysql9: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """Nobody applies here, so the first one's reader has to wait for the answer to its wave."""
    lake, servers = LakeFiles(str(tmp_path)), {"one": mariadb, "two": mysql9}
    databases = {name: fresh_database(server) for name, server in servers.items()}
    for name, server in servers.items():
        server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
        for table in ("t", "u"):
            server.query(f"CREATE TABLE {databases[name]}.{table} (a INT PRIMARY KEY)")
    sources = ", ".join(f"{name}: {{conn_id: {name}, flavour: {of.flavour}}}" for name, of in servers.items())
    text = f"pipeline: p\nlake: {{path: x}}\nsources: {{{sources}}}\ntables: {{include: ['*.[tu]']}}\n"
    lines: list[str] = []
    work = SnapshotWork(parse(text, where="p.yaml"), lake, lambda name: info_of(servers[name]), lines.append)
    work.replica_of = unasked  # no bound looks at a replica

    def is_read(source: str, table: str = "t") -> bool:
        return any(one.waiting for one in told(lake, "p") if (one.source, one.table) == (source, table))

    request(lake, "p", [("one", databases["one"], "t")])
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(work.read)
        try:
            until(lambda: is_read("one") or reading.done())
            request(lake, "p", [("two", databases["two"], "t")])
            until(lambda: is_read("two") or reading.done())
            request(lake, "p", [("one", databases["one"], "u")])
            until(lambda: is_read("one", "u") or reading.done())
        finally:
            work.stop.set()
        assert {one.source for one in reading.result()} == {"one", "two"}
    assert is_read("two")
    assert any(one.startswith("one: 0 of 2 tables are read") for one in lines), "who is asked for later counts, too"
