"""Waves of one timestamp that outlast a run: which ranges are a whole table, and which wave is gone on with."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.unit.snapshot.test_timestamp_reading import Recorded
from tidegate.snapshot.beginning import why_otherwise
from tidegate.snapshot.chunks.spans import WHOLE, Span, is_whole
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, Tally, View
from tidegate.snapshot.reading.result.literals import key_literals
from tidegate.snapshot.reading.result.plan import make_read_plan
from tidegate.snapshot.reading.tidb_definitions import Definitions

A, B, C = ("1",), ("2",), ("3",)
LANES = (Span(None, A), Span(A, B), Span(B, None))
AT = datetime(2026, 1, 1, tzinfo=UTC)


def test_spans_are_a_whole_table_only_without_gap_and_overlap() -> None:
    assert is_whole([WHOLE])
    assert is_whole([LANES[2], LANES[0], LANES[1]])
    assert is_whole([*LANES, LANES[1]]), "a statement's rows in two chunks"
    assert not is_whole([])
    assert not is_whole(LANES[:2])
    assert not is_whole([LANES[0], LANES[2]])
    assert not is_whole([*LANES, Span(A, C)])
    assert not is_whole([*LANES, WHOLE])
    assert not is_whole([*LANES, Span(C, C)])


def event(kind: EventKind, seconds: int, **cells: object) -> SnapshotEvent:
    return replace(SnapshotEvent("n", "p", "s", kind, AT + timedelta(seconds=seconds), "d", "t"), **cells)


def tally(*events: SnapshotEvent) -> Tally:
    found = Tally()
    found.take_in([event(EventKind.REQUESTED, 0), *events])
    return found


def test_a_view_is_gone_on_with_until_its_wave_is_told_or_another_one_began() -> None:
    (key,) = tally().tables
    first = event(EventKind.VIEW, 1, wave=1, token="a", low_ts=10)
    second = event(EventKind.VIEW, 2, wave=3, token="b", low_ts=20)
    assert tally().tables[key].view is None
    assert tally(first).tables[key].view == View(1, "a", 10)
    assert tally(second, first).tables[key].view == View(3, "b", 20)
    read = event(EventKind.WAVE, 3, wave=3, token="b", spans=(WHOLE,))
    assert tally(first, second, read).tables[key].view is None
    marked = replace(event(EventKind.MARKED, 3, wave=3, token="b"), database="", table="")
    assert tally(first, second, marked).marked == {"b"}


def test_what_is_read_by_rows_numbers_says_so_and_is_given_up_when_a_key_comes() -> None:
    versions = Definitions(Recorded()).at("s", [("p07_charset_db", "cs")], 1 << 62)  # type: ignore[arg-type]
    keyed = versions["p07_charset_db", "cs"]
    described = json.loads(keyed.origin) | {"pk_is_handle": False, "is_common_handle": False, "index_info": []}
    bare = replace(keyed, key=(), indexes=(), origin=json.dumps(described))
    plan = make_read_plan(bare)
    assert plan.key == ("_tidb_rowid",)
    assert plan.select_list.endswith("CAST(CAST(`_tidb_rowid` AS SIGNED) AS CHAR)")
    only = replace(plan, columns=plan.columns[-1:])
    assert key_literals(only, b"\x00\x00\x03-17") == ("-17",)
    begun = event(EventKind.RANGES, 1, spans=LANES, options={"read_by": ["_tidb_rowid"]})
    (progress,) = tally(begun).tables.values()
    assert progress.read_by == ("_tidb_rowid",)
    assert why_otherwise(progress, bare) == ""
    assert "its key came or went" in why_otherwise(progress, keyed)
    assert why_otherwise(replace(progress, left=(WHOLE,)), keyed) == ""
    assert why_otherwise(replace(progress, read_by=keyed.key_names), replace(keyed)) == ""
