"""A new lake takes the whole value log of a Pump or a changefeed: its first segments are the baseline.

MySQL's and MariaDB's baseline lies in the lake alone: tests/integration/capture/test_another_lake.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.integration.tidb.test_pump_ddl import COMMITTED, DDL, SECOND, of_type, resolved
from tests.kit.tidb import encode
from tests.kit.tidb.pump_world import Client, Counter, Jobs, pump_run, running, until
from tests.support.captures import landed_segments
from tests.support.changefeed_world import ChangefeedWorld
from tests.support.changefeed_writer import CREATE_PLAIN, PLAIN, Change, Changefeed, plain, ts
from tidegate.capture.value_log.log import ValueLog
from tidegate.errors import StrayValueLog
from tidegate.tidb.records.payload import BinlogType


def _captured(folder: Path) -> Counter:
    """A Pump's first run: the tables that are there, and a transaction."""
    counter = Counter(SECOND)
    with running(pump_run(folder, counter, jobs=Jobs())):
        client = Client(f"unix:{folder}/p.sock")
        until(lambda: resolved(folder) > 0)
        client.write(encode.binlog(BinlogType.PREWRITE, DDL, key=b"k"))
        client.write(encode.binlog(BinlogType.COMMIT, DDL, COMMITTED))
        counter.floor = 200 * SECOND
        until(lambda: resolved(folder) > COMMITTED)
        client.close()
    return counter


def test_a_new_lake_of_a_pump_has_the_tables_and_all_that_was_acknowledged(tmp_path: Path) -> None:
    counter = _captured(tmp_path)
    before = landed_segments(tmp_path / "lake")
    shutil.rmtree(tmp_path / "lake")
    with running(pump_run(tmp_path, counter, jobs=Jobs())):
        until(lambda: len(landed_segments(tmp_path / "lake")) >= len(before))
    again = [(segment.seq, segment.payload_crc32c) for segment in landed_segments(tmp_path / "lake")]
    assert again[: len(before)] == [(segment.seq, segment.payload_crc32c) for segment in before]
    assert len(of_type(tmp_path, BinlogType.TABLES)) == 1
    assert [binlog.start_ts for binlog in of_type(tmp_path, BinlogType.PREWRITE)] == [DDL]


def test_a_pumps_log_that_lacks_its_beginning_is_refused_by_a_new_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ValueLog.__init__, "__kwdefaults__", {"file_bytes": 1, "budget": None})  # a file each
    counter = _captured(tmp_path)
    shutil.rmtree(tmp_path / "lake")
    assert not list((tmp_path / "state").rglob("000001.vlog")), "all of it was in bronze"
    run = pump_run(tmp_path, counter, jobs=Jobs())
    with pytest.raises(StrayValueLog, match=r"goes on with seq \d+ .*bronze ends with seq 0.*: move it away"):
        run.run(5)


def test_a_new_lake_of_a_changefeed_has_its_tables_and_rows(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.ddl("shop.quiet", ts(2), CREATE_PLAIN.format("shop", "quiet"), 3, PLAIN)
    feed.ddl("shop.t", ts(2), CREATE_PLAIN.format("shop", "t"), 3, PLAIN)
    feed.rows("shop.t", Change(ts(3), plain(1, "one")))
    feed.checkpoint(ts(7))
    world = ChangefeedWorld(tmp_path, str(feed.path))
    world.applied(ts(7))
    shutil.rmtree(tmp_path / "lake")
    again = ChangefeedWorld(tmp_path, str(feed.path))
    feed.rows("shop.t", Change(ts(8), plain(2, "two")))
    feed.checkpoint(ts(9))
    assert not again.applied(ts(9)).states
    assert again.silver("shop", "t") == [{"id": 1, "word": "one"}, {"id": 2, "word": "two"}]
    assert again.silver("shop", "quiet") == []
