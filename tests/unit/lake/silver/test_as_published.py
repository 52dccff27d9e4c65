"""Whether a log is still the one that was published, by one look at its newest commit."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.support.memory_store import MemoryStore
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.stores.store import Entry
from tidegate.lake.silver.as_published import is_quiet, own_ts, said_by
from tidegate.lake.silver.others_changes import changes_by_others
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.standing.silver import Said

APP = "tidegate/shop/d.t"
SHAPE = SilverShape((SilverColumn("id", "int"),), ("id",))


def _filled(log: DeltaLog, *stamps: int) -> DeltaLog:
    create_silver(log, SHAPE)
    for at_ts in stamps:
        log.commit(log.state(), Change([], "UPSERT", {APP: at_ts}))
    return log


def _said(log: DeltaLog) -> Said:
    """As the row says that is published now."""
    state = log.state()
    cells = {"silver_id": state.table_id, "silver_ts": own_ts(state, APP)}
    return said_by({"delta_version": state.version, "published_at": datetime.now(UTC), **cells})


def test_a_table_that_nothing_happened_to_is_quiet(tmp_path: Path) -> None:
    log = _filled(DeltaLog(str(tmp_path / "t")), 50, 100)
    said = _said(log)
    assert is_quiet(log, said)
    log.commit(log.state(), Change([], "OPTIMIZE"))
    assert not is_quiet(log, said)


def test_a_newest_commit_that_another_overwrote_is_looked_at(tmp_path: Path) -> None:
    log = _filled(DeltaLog(str(tmp_path / "t")), 50, 100)
    said = _said(log)
    time.sleep(1.1)  # more than clocks may differ by
    (tmp_path / "t" / "_delta_log" / commit_name(said.version)).unlink()
    other = DeltaLog(str(tmp_path / "t"))
    other.commit(other.state(), Change([], "OPTIMIZE"))
    assert other.state().version == said.version
    assert not is_quiet(log, said)


def test_a_copy_that_brought_its_old_times_along_is_looked_at(tmp_path: Path) -> None:
    """As cp -a leaves it: of the same length, by others' commits, and older by its files' times than the row."""
    log = _filled(DeltaLog(str(tmp_path / "t")), 50, 100)
    said = _said(log)
    time.sleep(1.1)  # more than clocks may differ by
    shutil.rmtree(tmp_path / "t")
    _filled(DeltaLog(str(tmp_path / "t")), 50).commit(DeltaLog(str(tmp_path / "t")).state(), Change([], "OPTIMIZE"))
    newest = tmp_path / "t" / "_delta_log" / commit_name(said.version)
    os.utime(newest, (1, 1))
    assert not is_quiet(DeltaLog(str(tmp_path / "t")), said)


def test_an_object_store_tells_when_a_name_was_put() -> None:
    class Dated(MemoryStore):
        at_ms = 0

        def names(self, start: str = "") -> list[Entry]:
            return [entry._replace(modified_ms=self.at_ms) for entry in super().names(start)]

    store = Dated()
    log = _filled(DeltaLog("memory", store=store), 50, 100)
    said = _said(log)
    store.at_ms = said.published_ms + 1000
    assert is_quiet(log, said)
    store.at_ms += 1
    assert not is_quiet(log, said)


def test_a_quiet_table_costs_a_store_one_list_and_no_read() -> None:
    """So an apply that starts asks ten thousand lists of a store that has ten thousand tables, and reads nothing."""
    asked: list[str] = []

    class Counted(MemoryStore):
        def names(self, start: str = "") -> list[Entry]:
            asked.append("list")
            return [entry._replace(modified_ms=0) for entry in super().names(start)]

        def get(self, name: str) -> bytes | None:
            asked.append("read")
            return super().get(name)

    store = Counted()
    log = _filled(DeltaLog("memory", store=store), *range(50, 90))
    said = _said(log)
    asked.clear()
    assert is_quiet(DeltaLog("memory", store=store), said)
    assert asked == ["list"]


def test_rows_that_another_writer_changed_are_seen_and_ours_are_not(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([7], pa.int32())})
    write_deltalake(tmp_path / "t", rows)
    log = DeltaLog(str(tmp_path / "t"))
    known = log.state().version
    write_deltalake(tmp_path / "t", rows, mode="append")
    log.commit(log.state(), Change([], "UPSERT", {APP: 100}))
    table = DeltaTable(tmp_path / "t")
    table.delete("id = 7")
    write_deltalake(tmp_path / "t", rows, mode="append")
    write_deltalake(tmp_path / "t", rows, mode="append")
    DeltaTable(tmp_path / "t").optimize.compact()
    newest = log.state().version
    changes = changes_by_others(log, APP, known, newest)
    assert [(each.version, each.operation) for each in changes] == [
        (known + 1, "WRITE"),
        (known + 3, "DELETE"),
        (known + 4, "WRITE"),
        (known + 5, "WRITE"),
    ]
    assert newest == known + 6, "compaction changes no row"
    assert all(each.engine.startswith("delta-rs") for each in changes)
    assert changes_by_others(log, APP, newest, newest) == []
