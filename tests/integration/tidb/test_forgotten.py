"""A Pump's value log that a person gives up: bronze has the loss as a gap, and no table passes for whole behind it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from tests.kit.tidb import encode
from tests.kit.tidb.pump_world import Client, Counter, pump_run, running
from tests.kit.tidb.road import applied, lake_with, segments_of
from tests.support.captures import bronze_segments
from tidegate.capture.owing import Owing
from tidegate.capture.value_log.log import ValueLog
from tidegate.cli.main import app
from tidegate.errors import StrayValueLog, UsageError
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.segments.segment import Segment
from tidegate.standing.causes import Cause
from tidegate.tables import EVERY_TABLE, SegmentFlag
from tidegate.tidb.records.enclosed import payloads_of
from tidegate.tidb.records.payload import BinlogType, binlog_of

BANK = Path(__file__).resolve().parents[2] / "golden" / "tidb" / "p04_bank"


def lost_log(lake: LakeFiles, source: str, folder: Path) -> str:
    """A log on a machine that acknowledges, and burns; its id."""
    log = ValueLog(folder)
    Owing(lake, source).begin(log)
    log.close()
    shutil.rmtree(folder)
    return log.id


def forgotten(file: Path, source: str, log_id: str, state_dir: Path) -> Result:
    words = ["vlog", "owed", str(file), "--source", source, "--forget", log_id, "--state-dir", str(state_dir)]
    return CliRunner().invoke(app, words)


def file_of(folder: Path) -> Path:
    file = folder / "test.yaml"
    file.write_text(
        f"pipeline: test\nlake: {{path: {folder / 'lake'}}}\n"
        f"sources: {{one: {{conn_id: one, flavour: tidb, listen: ['unix:{folder}/p.sock']}}}}\n"
        "tables: {include: ['*.*']}\n"
    )
    return file


def commit(folder: Path, start_ts: int) -> None:
    client = Client(f"unix:{folder}/p.sock")
    assert client.write(encode.binlog(BinlogType.PREWRITE, start_ts, key=b"k")) == ""
    assert client.write(encode.binlog(BinlogType.COMMIT, start_ts, start_ts + 1)) == ""
    client.close()


def test_a_pump_goes_on_behind_the_gap_that_its_lost_log_leaves(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    with running(pump_run(tmp_path, Counter(1000))):
        commit(tmp_path, 500)
    before = bronze_segments(tmp_path / "lake")
    log_id = lost_log(lake, "one", tmp_path / "burnt")
    with pytest.raises(StrayValueLog, match=log_id), running(pump_run(tmp_path, Counter(2000))):
        pass
    done = forgotten(file_of(tmp_path), "one", log_id, tmp_path / "state")
    assert done.exit_code == 0, done.output
    assert f"segment {before[-1].seq + 1} of bronze says so" in done.output
    with running(pump_run(tmp_path, Counter(3000))):
        commit(tmp_path, 2500)
    segments = bronze_segments(tmp_path / "lake")
    gap = segments[len(before)]
    assert (gap.seq, gap.tables) == (before[-1].seq + 1, (EVERY_TABLE,))
    assert gap.flags == SegmentFlag.GAP | SegmentFlag.HAS_DDL
    assert gap.min_commit_ts > before[-1].resolved_ts == gap.resolved_ts
    later = [binlog_of(payload) for segment in segments[len(before) :] for payload in payloads_of(segment)]
    assert 2501 in {binlog.commit_ts for binlog in later}


def test_a_log_on_this_machine_is_not_given_up(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    with running(pump_run(tmp_path, Counter(1000))):
        commit(tmp_path, 500)
    log = ValueLog(tmp_path / "state" / "value_log" / "test" / "one")
    Owing(lake, "one").begin(log)
    log.close()
    before = bronze_segments(tmp_path / "lake")
    done = forgotten(file_of(tmp_path), "one", log.id, tmp_path / "state")
    assert isinstance(done.exception, UsageError), done.output
    assert [debt.log for debt in Owing(lake, "one").debts()] == [log.id]
    assert bronze_segments(tmp_path / "lake") == before


@pytest.mark.spark
def test_what_a_pump_lost_holds_every_table_of_its_cluster(tmp_path: Path, spark: SparkSession) -> None:
    segments = segments_of(BANK, 40)
    assert len(segments) > 1
    source = max(segments)  # not the one that the cluster's tables are named after
    halves = {name: of[: len(of) // 2] for name, of in segments.items()}
    pipeline, lake = lake_with(tmp_path, halves)
    lines: list[str] = []
    made = applied(pipeline, lake, spark, lines)
    assert not [name for name, state in made.states.items() if state.lacks_rows]
    done = forgotten(tmp_path / "road.yaml", source, lost_log(lake, source, tmp_path / "burnt"), tmp_path / "state")
    assert done.exit_code == 0, done.output
    for name, of in segments.items():
        rest = of[len(of) // 2 :]
        Bronze(lake, name).append([_behind_gap(segment) for segment in rest] if name == source else rest)
    made = applied(pipeline, lake, spark, lines)
    held = {name: state for name, state in made.states.items() if state.cause is Cause.NEEDS_ROWS}
    assert held.keys() == made.names.flows().keys(), lines
    assert all("lost transactions" in state.reason and state.lacks_rows for state in held.values())


def _behind_gap(segment: Segment) -> Segment:
    return replace(segment, seq=segment.seq + 1, start_pos=segment.start_pos + 1, end_pos=segment.end_pos + 1)
