"""vacuum: what a reader of the last hours may need stays, what no version names goes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tidegate.delta.cleaning.vacuum import vacuum
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.table.actions import add, metadata, moved, protocol

HOUR = 3600
SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


class Table:
    """A table whose commits and files lie hours back."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.log = DeltaLog(str(place))
        self.log.update(lambda _: Change([protocol(()), metadata(SCHEMA, {})], "CREATE TABLE"))
        self._age(commit_name(0), 100)

    def file(self, name: str, hours: float) -> None:
        (self.place / name).write_bytes(b"1")
        self._set(self.place / name, hours)

    def write(self, hours: float, *names: str) -> None:
        for name in names:
            self.file(name, hours)
        bodies = [{"path": name, "size": 1, "partitionValues": {}, "modificationTime": 1} for name in names]
        state = self.log.update(lambda _: Change([add(body, data_change=True) for body in bodies], "WRITE"))
        self._age(commit_name(state.version), hours)

    def remove(self, hours: float, *names: str) -> None:
        state = self.log.update(
            lambda read: Change(moved([read.live[name, ""] for name in names], [], data_change=True), "DELETE")
        )
        self._age(commit_name(state.version), hours)

    def vacuumed(self, keep_hours: float = 12) -> list[str]:
        log = DeltaLog(str(self.place))
        before = log.state().version
        gone = vacuum(log, log_store(str(self.place), {}), keep_seconds=keep_hours * HOUR)
        assert log.state().version == before
        assert {path.name for path in self.place.glob("*.parquet")}.isdisjoint(gone)
        return gone

    def _age(self, commit: str, hours: float) -> None:
        self._set(self.place / "_delta_log" / commit, hours)
        self.log.forget()

    def _set(self, path: Path, hours: float) -> None:
        stamp = time.time() - hours * HOUR
        os.utime(path, (stamp, stamp))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


def test_only_what_no_version_of_the_last_hours_had_goes(table: Table) -> None:
    table.write(50, "live.parquet", "gone.parquet", "gone too.parquet", "just gone.parquet")
    table.remove(30, "gone.parquet")
    table.remove(13, "gone too.parquet")
    table.remove(11, "just gone.parquet")
    table.write(11, "short.parquet")
    table.remove(5, "short.parquet")
    table.file("of a killed writer.parquet", 20)
    table.file("being committed.parquet", 0.1)
    table.file("not ours.bin", 500)
    assert sorted(table.vacuumed()) == ["gone too.parquet", "gone.parquet", "of a killed writer.parquet"]
    assert table.vacuumed() == []
    assert len(table.log.state().files) == 1


def test_a_file_that_waited_for_its_commit_is_no_orphan(table: Table) -> None:
    """Written before the hours that are kept, committed and removed within them."""
    table.file("late.parquet", 12.5)
    table.write(11)
    body = {"path": "late.parquet", "size": 1, "partitionValues": {}, "modificationTime": 1}
    table.log.update(lambda _: Change([add(body, data_change=True)], "WRITE"))
    table.remove(3, "late.parquet")
    assert table.vacuumed() == []


def test_a_quiet_table_loses_what_was_removed_long_ago(table: Table) -> None:
    table.write(50, "a.parquet", "b.parquet")
    table.remove(40, "a.parquet")
    assert table.vacuumed() == ["a.parquet"]


def test_where_the_log_does_not_reach_back_nothing_goes(table: Table) -> None:
    for number in range(3):
        table.write(30 - number, f"{number}.parquet")
    table.remove(11, "0.parquet")
    table.remove(10, "1.parquet")
    table.file("orphan.parquet", 100)
    assert table.log.state().version == 5
    for version in range(4):
        (table.place / "_delta_log" / commit_name(version)).unlink()
    assert vacuum(table.log, log_store(str(table.place), {}), keep_seconds=12 * HOUR) == []
    assert len(list(table.place.glob("*.parquet"))) == 4
