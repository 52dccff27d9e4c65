"""Apply takes waves of a changefeed's tables, read at its TiDB at a timestamp, as it takes a Pump's; no Spark."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.changefeed_world import ChangefeedWorld
from tests.support.changefeed_writer import ID, PLAIN, Cell, Change, Changefeed, plain, text, ts
from tidegate import tables
from tidegate.lake import control
from tidegate.schema.model.columns import Column, Index, IndexKind, TableVersion
from tidegate.segments.crc32c import crc32c
from tidegate.snapshot.chunks.chunk import Chunk, schema_of, shape_of, to_payload
from tidegate.snapshot.chunks.chunk_table import ChunkWriter
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.snapshot.watermark import Manifest, Mark, MarkKind
from tidegate.tables import State

SIZED = {**PLAIN, "size": {"ColumnType": "ENUM"}}
TOLD_BY_TIDB = '{"id":104,"name":"sized"}'


def shown_by_tidb(table: str, *more: Column) -> TableVersion:
    """As its DDL history has it: with the members of an ENUM, and an id that no line of a file names."""
    columns = (
        Column(1, "id", "bigint(20)", nullable=False),
        Column(2, "word", "varchar(40)", charset="utf8mb4"),
        *more,
    )
    return TableVersion(
        "one", "shop", table, 1, 1, "", 0, "baseline", "", columns, (1,), "utf8mb4",
        indexes=(Index("PRIMARY", IndexKind.PRIMARY, (1,)),), origin=TOLD_BY_TIDB,
    )  # fmt: skip


MEMBERS = Column(3, "size", "enum('small','large')", charset="utf8mb4")


@dataclass
class Snapshot:
    """Of one table, as its reader tells it."""

    world: ChangefeedWorld
    version: TableVersion
    numbers: Any = field(default_factory=lambda: itertools.count(1))
    writer: ChunkWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = ChunkWriter(self.world.lake, "one", 1)
        self.say(EventKind.REQUESTED)
        self.say(EventKind.RANGES, spans=(WHOLE,))

    def say(self, kind: EventKind, **cells: Any) -> None:
        place = ("s1", "changefeed", "one", kind, datetime.now(UTC), "shop", self.version.table)
        control.append(self.world.lake, tables.SNAPSHOTS, [SnapshotEvent(*place, **cells).to_row()])

    def read(self, rows: Sequence[Mapping[str, Any]], low_ts: int) -> None:
        """A wave of one chunk, as the table was right below low_ts."""
        number = next(self.numbers)
        token, schema = f"s1{number:030x}", schema_of(self.version)
        payload = bytes(to_payload([pa.RecordBatch.from_pylist(list(rows), schema)], schema))
        chunk = Chunk(
            source="one", snapshot="s1", database="shop", table=self.version.table, wave=number, chunk=1,
            low_token=token, high_token=token, key_after=None, key_upto=None, rows=len(rows), version=1,
            shape=shape_of(schema), payload=payload, payload_bytes=len(payload), payload_crc32c=crc32c(payload),
            null_dates=0, server_id=0, server_uuid="", read_at=datetime.now(UTC),
        )  # fmt: skip
        self.writer.append([chunk])
        manifest = Manifest.of(chunk.name, [chunk])
        self._mark(Mark("s1", number, MarkKind.HIGH, token, (manifest,), ""), low_ts, low_ts)
        cells = {"spans": (WHOLE,), "rows": len(rows), "definition": self.version.to_row()}
        self.say(EventKind.WAVE, wave=number, token=token, **cells)

    def end(self, high_ts: int) -> None:
        self._mark(Mark("s1", 0, MarkKind.END, "s1end", (Manifest("shop", self.version.table),)), None, high_ts)
        self.say(EventKind.ENDED)

    def _mark(self, mark: Mark, low_ts: int | None, high_ts: int) -> None:
        options = {"mark": mark.to_text(), "server_uuid": ""}
        place = ("s1", "changefeed", "one", EventKind.MARKED, datetime.now(UTC))
        event = SnapshotEvent(*place, wave=mark.wave, token=mark.token, low_ts=low_ts, high_ts=high_ts, options=options)
        control.append(self.world.lake, tables.SNAPSHOTS, [event.to_row()])

    @property
    def answers(self) -> list[tuple[str, str]]:
        events = [SnapshotEvent.from_row(row) for row in control.read(self.world.lake, tables.SNAPSHOTS).to_pylist()]
        kinds = (EventKind.APPLIED, EventKind.REFUSED, EventKind.DONE)
        told = sorted((one for one in events if one.event in kinds), key=lambda one: one.recorded_at)
        return [(str(one.event), one.reason) for one in told]


def world_of(tmp_path: Path, feed: Changefeed) -> ChangefeedWorld:
    return ChangefeedWorld(tmp_path, str(feed.path), extra=", sql_conn_id: tidb_sql")


def line(id_: int, word: str, size: int) -> dict[str, Cell]:
    return plain(id_, word) | {"size": Cell(str(size), None)}


def test_rows_from_before_and_an_enum_s_members_come_with_a_snapshot(tmp_path: Path) -> None:
    """Lines below the wave's timestamp are in it, those above are applied to it; the found schema file comes again."""
    feed = Changefeed(tmp_path / "feed")
    feed.found("shop.sized", ts(0), SIZED)
    feed.rows("shop.sized", Change(ts(3), line(2, "new", 1)))
    feed.checkpoint(ts(5))
    world = world_of(tmp_path, feed)
    app = world.applied(ts(5))
    assert app.states["shop.sized"].state is State.HELD
    assert app.states["shop.sized"].lacks_rows
    snapshot = Snapshot(world, shown_by_tidb("sized", MEMBERS))
    rows = [{"id": 1, "word": "before", "size": "large"}, {"id": 2, "word": "new", "size": "small"}]
    snapshot.read(rows, ts(6))
    feed.rows(
        "shop.sized", Change(ts(5) + 1, line(2, "new", 1)), Change(ts(8), line(1, "later", 2), line(1, "before", 2))
    )
    feed.rows("shop.sized", Change(ts(9), None, line(2, "new", 1)))
    feed.checkpoint(ts(10))
    app = world.applied(ts(10))
    assert snapshot.answers == [("applied", "")]
    assert world.silver("shop", "sized") == [{"id": 1, "word": "later", "size": "large"}]
    snapshot.end(ts(11))
    feed.checkpoint(ts(12))
    app = world.applied(ts(12))
    assert snapshot.answers[-1] == ("done", "")
    assert app.states["shop.sized"].state is State.ACTIVE
    last = app.histories["one"].last(("shop", "sized"))
    assert last is not None
    assert (last.kind, last.columns[2].type, last.origin) == ("snapshot", MEMBERS.type, "")


def test_a_statement_between_a_wave_and_its_place_refuses_it_and_one_behind_is_followed(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.found("shop.t", ts(0), PLAIN)
    feed.rows("shop.t", Change(ts(3), plain(2, "new")))
    feed.checkpoint(ts(5))
    world = world_of(tmp_path, feed)
    world.applied(ts(5))
    snapshot = Snapshot(world, shown_by_tidb("t"))
    snapshot.read([{"id": 1, "word": "before"}], ts(6))
    grown = {**PLAIN, "n": {"ColumnType": "INT"}}
    feed.ddl("shop.t", ts(7), "ALTER TABLE `t` ADD COLUMN `n` INT DEFAULT 7", 5, grown)
    feed.ddl("", ts(7) + 1, "CREATE PLACEMENT POLICY p FOLLOWERS=2", 51)
    feed.checkpoint(ts(9))
    world.applied(ts(9))
    ((answer, reason),) = snapshot.answers
    assert answer == "refused"
    assert "a DDL changed the table" in reason
    n = Column(3, "n", "int(11)", default="7")
    snapshot.version = replace(shown_by_tidb("t"), columns=(*snapshot.version.columns, n))
    snapshot.read([{"id": 1, "word": "before", "n": 7}], ts(10))
    snapshot.end(ts(11))
    feed.rows("shop.t", Change(ts(12), plain(5, "x") | {"n": Cell("8", "8")}))
    feed.checkpoint(ts(12))
    world.applied(ts(12))
    feed.ddl("shop.t", ts(13), "ALTER TABLE `t` DROP COLUMN `word`", 6, {"id": ID, "n": grown["n"]})
    feed.checkpoint(ts(15))
    app = world.applied(ts(15))
    assert [one for one, _ in snapshot.answers] == ["refused", "applied", "done"]
    assert app.states["shop.t"].state is State.ACTIVE
    assert world.silver("shop", "t") == [{"id": 1, "n": 7}, {"id": 5, "n": 8}]


def test_a_table_of_which_the_files_say_nothing_can_be_asked_for(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.ddl("shop.other", ts(1), "CREATE TABLE other (id BIGINT PRIMARY KEY, word VARCHAR(40))", 3, PLAIN)
    feed.checkpoint(ts(2))
    world = world_of(tmp_path, feed)
    world.applied(ts(2))
    snapshot = Snapshot(world, shown_by_tidb("quiet"))
    snapshot.read([{"id": 1, "word": "before"}], ts(3))
    snapshot.end(ts(4))
    feed.checkpoint(ts(6))
    world.applied(ts(6))
    assert [one for one, _ in snapshot.answers] == ["applied", "done"]
    assert world.silver("shop", "quiet") == [{"id": 1, "word": "before"}]
    feed.found("shop.quiet", ts(0), PLAIN)
    feed.rows("shop.quiet", Change(ts(8), {"id": Cell("1", "1"), "word": text("after")}, plain(1, "before")))
    feed.checkpoint(ts(9))
    app = world.applied(ts(9))
    assert world.silver("shop", "quiet") == [{"id": 1, "word": "after"}]
    assert app.states["shop.quiet"].state is State.ACTIVE
