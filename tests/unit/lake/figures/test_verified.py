"""What the last verification said of each table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tidegate.config import Tables
from tidegate.lake import control
from tidegate.lake.figures.verified import Verified, verified
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import Selection, rows_of
from tidegate.tables import FOLLOWED
from tidegate.tables.snapshot_tables import VERIFICATION


def row(table: str, outcome: str, through: int, minute: int, **other: Any) -> dict[str, Any]:
    empty = {field.name: "" if field.type == "string" else 0 for field in VERIFICATION.schema}
    return empty | {
        "verification": f"{minute}",
        "source": "s",
        "database": "d",
        "table": table,
        "silver": f"d.{table}",
        "outcome": outcome,
        "verified_through": through,
        "recorded_at": datetime(2026, 11, 1, 0, minute, tzinfo=UTC),
        **other,
    }


def test_the_last_run_counts_and_of_shards_the_weakest(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    assert verified(lake) == {}
    rows = [
        row("t", "different", 5, 1),
        row("t", "equal", 9, 2, silver_rows=12),
        row("t", "", 0, 3, chunk=1, silver_rows=3),
        row("a", "equal", 7, 4, silver="d.all", silver_rows=5),
        row("b", "unsettled", 8, 5, silver="d.all", silver_rows=6),
        row("h", "held", 0, 6),
    ]
    control.append(lake, VERIFICATION, rows)
    assert verified(lake) == {
        "d.t": Verified("equal", 9, "2026-11-01T00:02:00+00:00", 12),
        "d.all": Verified("unsettled", 7, "2026-11-01T00:04:00+00:00", 11),
        "d.h": Verified("held", 0, "2026-11-01T00:06:00+00:00"),
    }


def test_a_later_cuts_run_counts_though_the_clock_was_put_back_before_it(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, VERIFICATION, [row("t", "equal", 5, 40, cut_ts=5), row("t", "different", 5, 1, cut_ts=9)])
    assert verified(lake)["d.t"].outcome == "different"


@pytest.mark.parametrize("outcome", ["different", "dropped"])
def test_a_table_that_no_source_had_counts_by_its_source_again(tmp_path: Path, outcome: str) -> None:
    """It was dropped and made anew, or hidden from the account for a while: that verdict names no source."""
    lake = LakeFiles(str(tmp_path))
    gone = row("d.t", outcome, 0, 2, source="", database="", silver="d.t")
    control.append(lake, VERIFICATION, [row("t", "equal", 5, 1), row("old", "equal", 5, 1, silver="d.t"), gone])
    assert verified(lake)["d.t"].outcome == outcome
    control.append(lake, VERIFICATION, [row("t", "equal", 9, 3)])
    assert verified(lake)["d.t"] == Verified("equal", 9, "2026-11-01T00:03:00+00:00", 0)


def test_a_source_that_the_pipeline_left_proves_nothing_any_more(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    old = row("t", "different", 5, 1, source="old")
    control.append(lake, VERIFICATION, [old, row("t", "equal", 9, 2), old | {"silver": "d.gone", "table": "gone"}])
    assert verified(lake)["d.t"].outcome == "different"
    selection = Selection(frozenset({"s"}), Tables(include=("d.*",)))
    control.append(lake, FOLLOWED, rows_of(1, "p", [], selection, 0))
    assert verified(lake) == {"d.t": Verified("equal", 9, "2026-11-01T00:02:00+00:00", 0)}
