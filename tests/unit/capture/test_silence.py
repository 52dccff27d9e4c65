"""Capture or apply that has stopped is said, with what it means and what begins it again; resting work is not.

In:  leases as processes leave them: renewed, released, killed; a lake with and without what waits.
Out: silences by type, the lines of `tidegate status`, its JSON.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.pipeline_views import source, view
from tidegate import tables
from tidegate.capture.health import why
from tidegate.capture.silence import LastSign, LeasedWork, Silence, last_sign
from tidegate.capture.standing import CaptureStanding, SourceAnswer, standing
from tidegate.cli.status import status_lines
from tidegate.commit_ts import compose
from tidegate.config import Pipeline, parse
from tidegate.delta.leases.lease_entry import LeaseEntry, Process
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.figures.status import TableStatus
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import take_lease
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind, State

NOW = 1_790_000_000.0
ELSEWHERE = Process("host", "another boot", "pid", 7, 1)
# Takes a lease, and says so; then it is killed.
_HOLDER = """
import sys, time
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import take_lease
take_lease(LakeFiles(sys.argv[1]), sys.argv[2], sys.argv[3], report=print)
print("held", flush=True)
time.sleep(600)
"""


def entry(ago: float, *, released: bool = False) -> LeaseEntry:
    written_ms = int((NOW - ago) * 1000)
    return LeaseEntry(3, 1, "a", "capture of main", ELSEWHERE, 30.0, written_ms, written_ms, released)


@pytest.mark.parametrize(
    ("newest", "waits_since", "sign"),
    [
        (None, 0.0, None),  # it never began: status says that otherwise
        (entry(9), 0.0, None),
        (entry(59), None, None),
        (entry(61), None, LastSign.SILENT),
        (entry(100, released=True), 0.0, None),  # Airflow begins it again within seconds
        (entry(400, released=True), None, None),  # nothing waits: it rests
        (entry(400, released=True), NOW - 30, None),  # something has come just now
        (entry(400, released=True), NOW - 130, LastSign.ENDED),
        (entry(900, released=True), None, LastSign.ENDED),  # it rests no longer than a run of capture
    ],
)
def test_work_is_silent_when_its_lease_says_so(
    newest: LeaseEntry | None, waits_since: float | None, sign: LastSign | None
) -> None:
    last = last_sign(newest, NOW, waits_since=waits_since, rests_seconds=600.0)
    assert (None if last is None else last[0]) is sign
    assert last is None or (newest is not None and last[1] == newest.written_ms / 1000)


def shop(lake: LakeFiles) -> Pipeline:
    return parse(
        f"pipeline: shop\nlake: {{path: {lake.root}}}\nsources: {{main: {{conn_id: shop_db, flavour: mariadb}}}}\n"
        "tables: {include: ['shop.*']}\n",
        where="shop.yaml",
    )


def captured(lake: LakeFiles, ts: int, of: str = "main") -> None:
    payload = b"payload"
    Bronze(lake, of).append(
        [
            Segment(
                *(of, 1, SegmentKind.BINLOG, 1, "", "binlog.000001", 4, 11, "", 0, ts, ts, ts, ("shop.t",)),
                *(SegmentFlag(0), 1, 1, b"", payload, crc32c(payload), datetime.now(UTC)),
            )
        ]
    )


def looked_at(lake: LakeFiles, position: str = "binlog.000001:2000") -> CaptureStanding:
    return standing(shop(lake), lake, lambda _: SourceAnswer(1, position))


@pytest.mark.parametrize(("of", "work"), [("main", LeasedWork.CAPTURE), ("shop", LeasedWork.APPLY)])
def test_a_killed_capture_or_apply_is_said_with_what_begins_it_again(tmp_path: Path, of: str, work: LeasedWork) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    captured(lake, compose(int(time.time() * 1000)))
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, lake.root, of, work], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert looked_at(lake).silences == ()
    assert [(each.work, each.of) for each in looked_at(lake).holders] == [(work, of)]
    holder.kill()
    holder.communicate()
    stands = looked_at(lake)
    assert stands.holders == ()
    (silence,) = stands.silences
    assert (silence.work, silence.of, silence.sign) == (work, of, LastSign.KILLED)
    lines = status_lines(stands)
    text = " ".join(" ".join(lines).split())
    assert f"{work} of {of} has not answered since 20" in text
    assert f"start the DAG shop__{work} in Airflow" in text
    command = "tidegate capture shop --source main" if work is LeasedWork.CAPTURE else "tidegate apply shop"
    assert any(f"`{command}`" in line for line in lines), "to be pasted"
    assert f"{work.value.capitalize()} of {of} has not answered since" in why(stands)
    (row,) = stands.to_json()["silences"]
    assert (row["work"], row["of"], row["sign"], row["dag"]) == (work, of, "killed", f"shop__{work}")


def test_work_that_ended_in_order_rests_until_something_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, now = LakeFiles(str(tmp_path / "lake")), time.time()
    ts = compose(int(now * 1000))
    captured(lake, ts)
    for of, work in (("main", "capture"), ("shop", "apply")):
        take_lease(lake, of, work, report=print).release()

    def silent(position: str) -> list[tuple[LeasedWork, LastSign]]:
        return [(each.work, each.sign) for each in looked_at(lake, position).silences]

    assert silent("binlog.000001:2000") == []
    monkeypatch.setattr("time.time", lambda: now + 300)
    assert silent("binlog.000001:2000") == [(LeasedWork.APPLY, LastSign.ENDED)], "the source may write since a second"
    cut = {"cut_ts": ts, "delta_version": -1, "applied_ts": ts, "state": "active", "published_at": datetime.now(UTC)}
    control.append(lake, tables.CUTS, [cut | {"table": name} for name in ("", "shop.t")])
    assert silent("binlog.000001:11") == [], "nothing waits for either"
    monkeypatch.setattr("time.time", lambda: now + 900)
    assert silent("binlog.000001:11") == [(LeasedWork.CAPTURE, LastSign.ENDED)], (
        "capture looks again after each run's time"
    )
    down = standing(shop(lake), lake, lambda _: SourceAnswer(error="connection refused"))
    assert down.silences == (), "capture tries again by itself to reach it, and has no lease meanwhile"
    assert down.sources[0].is_down
    refused = standing(shop(lake), lake, lambda _: SourceAnswer(error="access denied", refused=True))
    assert not refused.sources[0].is_down, "a person must end that"
    assert [each.work for each in refused.silences] == [LeasedWork.CAPTURE]


def test_of_several_sources_none_rests_and_apply_waits_for_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, now = LakeFiles(str(tmp_path / "lake")), time.time()
    two = parse(
        f"pipeline: shop\nlake: {{path: {lake.root}}}\ntables: {{include: ['shop.*']}}\n"
        "sources: {main: {conn_id: a, flavour: mariadb}, eu: {conn_id: b, flavour: mariadb}}\n",
        where="shop.yaml",
    )

    def silent() -> list[LeasedWork]:
        return [each.work for each in standing(two, lake, lambda _: SourceAnswer(1, "binlog.000001:2000")).silences]

    captured(lake, compose(int(now * 1000)))
    for of, work in (("main", "capture"), ("shop", "apply")):
        take_lease(lake, of, work, report=print).release()
    monkeypatch.setattr("time.time", lambda: now + 130)
    assert silent() == [LeasedWork.CAPTURE], "the cut waits for eu"
    monkeypatch.setattr("time.time", lambda: now + 300)
    captured(lake, compose(int(now * 1000)), "eu")
    assert silent() == [LeasedWork.CAPTURE], "main's changes are in reach since now"
    monkeypatch.setattr("time.time", lambda: now + 430)
    assert silent() == [LeasedWork.CAPTURE, LeasedWork.APPLY]


def test_what_a_silent_capture_means_is_said() -> None:
    down = Silence(LeasedWork.CAPTURE, "eu", "shop", LastSign.SILENT, NOW, "shop__capture")
    late = replace(source("eu"), nothing_missing=False, lag_seconds=720.0, behind_bytes=1_200_000)
    stands = view(3, held=False).standing
    assert stands is not None
    text = " ".join(" ".join(status_lines(replace(stands, sources=(late,), silences=(down,)))).split())
    assert "1.2 MB of binlog wait at the server." in text
    assert (
        "tomorrow? Nothing: what isn't captured is purged in 29 days at the earliest (binlog_expire_logs_seconds)"
        in text
    )


def test_a_table_that_goes_on_by_itself_says_what_it_waits_for() -> None:
    released = TableStatus("shop.a", State.RELEASED, 5, 1, "approved by root", way_out="apply's next window")
    filled = TableStatus("shop.b", State.SNAPSHOT, 5, 1, "its snapshot begins by itself as soon as a reader runs")
    stands = view(1, held=False).standing
    assert stands is not None
    stands = replace(stands, tables=(released, filled))
    lines = status_lines(stands)
    assert "; 1 table lacks rows until its snapshot ends;" in " ".join(lines)
    assert "shop.a is released, and waits:" in lines
    assert "  approved by root; apply's next window" in lines
    assert "shop.b waits for its snapshot:" in lines
    assert "shop.b waits for its snapshot:" not in status_lines(stands, {"shop.b"}), "its progress is shown below"
