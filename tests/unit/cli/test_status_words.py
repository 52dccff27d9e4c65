"""`tidegate status` in trouble: a source that is down, purged binlog, tables held alike, the value log's disk."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.support.pipeline_views import CUT, source, view
from tidegate.capture.chaser import ChaserState
from tidegate.capture.health import why
from tidegate.capture.silence import LeasedWork, LeaseHolder
from tidegate.capture.source import Retention
from tidegate.capture.standing import CaptureStanding, SourceAnswer, SourceStanding
from tidegate.capture.status_file import CaptureStatus
from tidegate.cli.status import _capture_lines, status_lines
from tidegate.lake.figures.status import TableStatus
from tidegate.metrics.measured import samples
from tidegate.pipelines.plain import plain
from tidegate.tables import State
from tidegate_airflow.page.pipeline_view import pipeline_view
from tidegate_airflow.page.tables_list import TablesAsked

DOWN = replace(source("eu", "host away: connection refused"), is_down=True, lag_seconds=480.0)
PURGED = replace(
    source("eu"),
    nothing_missing=False,
    lag_seconds=480.0,
    purge=Retention(0.0, "gone", "binlog.000009", 0),
    server=SourceAnswer(1, "binlog.000012:4"),
)


def stands(of: SourceStanding, *tables: TableStatus) -> CaptureStanding:
    return CaptureStanding("shop", CUT, of.lag_seconds, (of,), tables, (), ())


def said(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def captured(state: ChaserState = ChaserState.DIRECT) -> CaptureStatus:
    return CaptureStatus(
        *(state, time.time() - 60, "", 0, 0.0, 0, 0.0, "", 9, 9, 3_000_000, 7_000_000, 44_400_000_000, 1e6, 44_400.0),
        *(None, 0.0, False, 0, time.time() - 60, time.time(), 1),
    )


def test_a_source_that_is_down_is_waited_for_and_its_capture_isnt_asked_for() -> None:
    """It said "8 min behind", and later to unpause capture, which tries again by itself."""
    text = said(status_lines(stands(DOWN)))
    assert "shop: complete up to 8 min ago; whether more is missing isn't known: eu doesn't answer" in text
    assert "-> capture tries again by itself, and goes on once it answers" in text
    assert "unpause" not in text
    assert "Capture tries again by itself." in why(stands(DOWN))
    shown = pipeline_view(replace(view(), standing=stands(DOWN)), TablesAsked())
    assert "capture tries again by itself" in shown
    figures = dict(_figures(stands(DOWN)))
    assert "tidegate_capture_down" not in figures, "nobody knows"
    assert figures["tidegate_source_up"] == 0


def _figures(of: CaptureStanding) -> list[tuple[str, float]]:
    return [(sample.metric, sample.value) for sample in samples(replace(view(), standing=of), {})]


def test_purged_binlog_is_said_with_its_way_out() -> None:
    """It said "8 min behind" alone."""
    text = said(status_lines(stands(PURGED)))
    assert "shop: 8 min behind: the server of eu has purged the binlog that capture stopped in" in text
    assert "the server's oldest binlog file is binlog.000009" in text
    assert "-> `tidegate accept shop eu` shows the loss" in text
    assert "`tidegate accept shop eu` says what is lost" in why(stands(PURGED))
    assert "purged at the server" in pipeline_view(replace(view(), standing=stands(PURGED)), TablesAsked())


def test_tables_held_for_one_reason_are_said_once() -> None:
    """All tables of a source wait once its log was lost: the same ten lines stood there for each."""
    held = [
        TableStatus(
            name,
            State.HELD,
            CUT,
            3,
            f"{name} at binlog.000003:4 of main: the source lost transactions",
            "2026-11-29T10:07:32+00:00",
            way_out=f"tidegate snapshot start shop {name}",
        )
        for name in (*(f"shop.t{number}" for number in range(10)), "shop.t1_more")
    ]
    other = replace(held[0], table="shop.other", reason="ALTER TABLE waits for approval", way_out="approve it")
    lines = status_lines(stands(source("eu"), *held, other))
    text = said(lines)
    names = ", ".join(f"shop.t{number}" for number in range(8))
    assert f"{names} and 3 more are held since 2026-11-29T10:07:32+00:00: <table> at binlog.000003:4" in text
    assert "-> tidegate snapshot start shop <table>" in text
    assert text.count("the source lost transactions") == 1
    assert "shop.other is held since 2026-11-29T10:07:32+00:00: ALTER TABLE waits" in text


@pytest.mark.parametrize("state", [ChaserState.DIRECT, ChaserState.CHASING])
def test_the_value_logs_disk_is_in_status_and_on_the_page(state: ChaserState) -> None:
    capture = captured(state)
    if state is ChaserState.DIRECT:
        capture = replace(capture, behind_bytes=0)
        assert "the value log has 7.0 MB on its disk, and room for 44.4 GB" in said(_capture_lines({"eu": capture}))
    shown = pipeline_view(replace(view(), captures={"eu": capture}), TablesAsked())
    assert ("the value log has 7.0 MB on its disk, and room for 44.4 GB" in shown) == (state is ChaserState.DIRECT)
    lacks = "the lake lacks 3.0 MB. The value log has 7.0 MB and room for 44.4 GB, which lasts"
    assert (lacks in shown) == (state is not ChaserState.DIRECT)
    assert plain(replace(view(), captures={"eu": capture}))["capture"]["eu"]["value_log_bytes"] == 7_000_000


def test_a_full_disk_of_the_lake_is_why_silver_is_behind() -> None:
    """The page said that capture hangs, or that its machine is gone; and status named the purge in 30 days."""
    fails = "/lake: a file can't be written: No space left on device; make room on its disk: docs/runbooks/disk-full.md"
    retention = Retention(30 * 86_400.0, "age", "b.1", 0)
    status = replace(captured(ChaserState.CHASING), lake_error=fails, retention=retention)
    look = replace(view(), at=time.time(), captures={"eu": status})
    assert f"The lake takes nothing of what capture of eu reads: {fails}." in look.why
    assert "No space left on device; make room on its disk" in pipeline_view(look, TablesAsked())
    assert "takes nothing" not in replace(look, at=time.time() + 90).why, (
        "a capture that is silent says nothing any more"
    )
    text = said(_capture_lines({"eu": status}))
    assert "make room on its disk" in text
    assert "may purge" not in text


def test_work_that_runs_is_not_asked_for_in_a_new_lake() -> None:
    new = replace(stands(replace(source("eu"), captured=None)), cut_ts=0)
    assert "is capture running? Look at the DAG" in said(status_lines(new))
    since = time.time() - 90
    capture = LeaseHolder(LeasedWork.CAPTURE, "eu", "vm", since)
    text = said(status_lines(replace(new, holders=(capture,))))
    assert "nothing was ever captured into it; capture runs on vm for 90.0 s" in text
    assert "running?" not in text
    landed = replace(stands(source("eu")), cut_ts=0)
    assert "nothing is applied yet: is apply running?" in said(status_lines(landed))
    apply = LeaseHolder(LeasedWork.APPLY, "shop", "vm", since)
    text = said(status_lines(replace(landed, holders=(apply,))))
    assert "nothing is applied yet; apply runs on vm for 90.0 s, in its first window" in text
