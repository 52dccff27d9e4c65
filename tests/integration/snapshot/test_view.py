"""Tables without a key are read from one view: what waits for it goes first, and a reader that dies begins anew."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.integration.snapshot.test_reader import Answers, World, world
from tidegate.snapshot import view_reading
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, chunk_refs
from tidegate.snapshot.marks.marks import MarkWriter
from tidegate.snapshot.progress.events import EventKind, SnapshotState
from tidegate.snapshot.progress.requests import events_of, request
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.snapshot.reading.table_reader import ChunkBounds
from tidegate.snapshot.watermark import Mark, MarkKind

pytestmark = pytest.mark.server
__all__ = ["world"]  # a fixture

ROWS = 40
PIECES = ReaderSettings(parallel=2, chunk=ChunkBounds(10, 1 << 20, 2.0))


@pytest.fixture
def wide(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A table without a key whose chunks are landed one by one."""
    monkeypatch.setattr(view_reading, "SNAPSHOT_LAND_BYTES", 1)
    monkeypatch.setattr(view_reading, "SNAPSHOT_LOOK_SECONDS", 0.0)
    with world.server.connect(world.database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE wide (a INT, b LONGTEXT)")
        cursor.executemany("INSERT INTO wide VALUES (%s, REPEAT('x', 2000000))", [(n % 9,) for n in range(ROWS)])
    request(world.lake, "p", [("s", world.database, "wide")])
    return world


def reader_of(world: World, lines: list[str]) -> SnapshotReader:
    return SnapshotReader("p", "s", world.info, world.lake, PIECES, lines.append)


def waits(world: World, for_it: bool) -> bool:
    shown = world.server.query("SHOW FULL PROCESSLIST")
    return any("metadata lock" in str(row[6]) for row in shown) == for_it


def test_a_ddl_goes_before_the_reading_and_the_wave_is_none(wide: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view holds a DDL up to its end, and whoever comes behind the DDL."""
    wide.server.query(f"GRANT PROCESS ON *.* TO '{wide.server.user}'@'%'")
    alter = threading.Thread(
        target=wide.server.query, args=(f"ALTER TABLE {wide.database}.wide ADD COLUMN c INT DEFAULT 7",)
    )
    real, lines = ChunkWriter.append, list[str]()

    def slow(writer: ChunkWriter, chunks: Any) -> None:
        real(writer, chunks)
        if not alter.ident:
            alter.start()
            while not waits(wide, for_it=True):
                time.sleep(0.02)

    monkeypatch.setattr(ChunkWriter, "append", slow)
    monkeypatch.setattr("tidegate.snapshot.reader.SNAPSHOT_LOCK_AGAIN_SECONDS", 0.2)
    try:
        with Answers(wide.lake, refused=set()):
            reader_of(wide, lines).run()
    finally:  # the server serves other tests, too
        wide.server.query(f"REVOKE PROCESS ON *.* FROM '{wide.server.user}'@'%'")
    alter.join(120)
    assert any("a DDL waits for the reading of" in line for line in lines), lines
    progress = wide.progress()["wide"]
    assert (progress.state, progress.rows, progress.waves) == (SnapshotState.ENDED, ROWS, 1)


@pytest.mark.parametrize("stops", [False, True])
def test_a_reading_that_ends_in_the_middle_begins_anew(
    wide: World, monkeypatch: pytest.MonkeyPatch, *, stops: bool
) -> None:
    real, calls, stop = ChunkWriter.append, list[int](), threading.Event()

    def dies(writer: ChunkWriter, chunks: Any) -> None:
        calls.append(len(chunks))
        if len(calls) == 2 and stops:
            stop.set()
        elif len(calls) == 2:
            raise KeyboardInterrupt
        real(writer, chunks)

    monkeypatch.setattr(ChunkWriter, "append", dies)
    if stops:
        reader_of(wide, []).run(stop.is_set)
    else:
        with pytest.raises(KeyboardInterrupt):
            reader_of(wide, []).run()
    assert not [one for one in events_of(wide.lake, "p") if one.event is EventKind.WAVE]
    monkeypatch.undo()
    with Answers(wide.lake, refused=set()):
        reader_of(wide, []).run()
    progress = wide.progress()["wide"]
    assert (progress.state, progress.rows, progress.waves) == (SnapshotState.ENDED, ROWS, 1)
    (wave,) = [one for one in events_of(wide.lake, "p") if one.event is EventKind.WAVE]
    assert sum(ref.chunk.rows for ref in chunk_refs(wide.lake, "s", [wave.token])) == ROWS


def test_a_view_that_is_opened_as_the_log_changes_its_file_is_opened_again(
    wide: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB tells the new file's beginning before what ends the old one is committed."""
    real, lines, marks = MarkWriter.write, list[str](), list[Mark]()

    def rotates(writer: MarkWriter, mark: Mark) -> None:
        real(writer, mark)
        marks.append(mark)
        if len(marks) == 1:
            wide.server.query("FLUSH BINARY LOGS")

    monkeypatch.setattr(MarkWriter, "write", rotates)
    monkeypatch.setattr("tidegate.snapshot.reader.SNAPSHOT_LOCK_AGAIN_SECONDS", 0.2)
    with Answers(wide.lake, refused=set()):
        reader_of(wide, lines).run()
    lows = [mark.kind for mark in marks].count(MarkKind.LOW)
    assert (lows, "another file" in " ".join(lines)) == ((2, True) if wide.server.flavour == "mariadb" else (1, False))
    assert wide.progress()["wide"].rows == ROWS


def test_an_engine_that_an_alter_brought_since_the_request_is_seen(
    wide: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows have no earlier states, so the view would show what came behind its place, and the log once more."""
    real = SnapshotReader._exact_wave

    def altered(self: SnapshotReader, *given: Any) -> None:
        wide.server.query(f"ALTER TABLE {wide.database}.wide ENGINE = MyISAM")
        real(self, *given)

    monkeypatch.setattr(SnapshotReader, "_exact_wave", altered)
    with Answers(wide.lake, refused=set()):
        reader_of(wide, []).run()
    progress = wide.progress()["wide"]
    assert (progress.state, progress.waves) == (SnapshotState.FAILED, 0)
    assert "MyISAM can't show it" in progress.reason
