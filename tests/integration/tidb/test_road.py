"""Streams recorded from a real TiDB go through bronze and apply, and silver is what TiDB's own SELECT said.

Each table of a case is equal, or held by name where TiDB changed its rows in a way that silver can't follow: HELD says
which. `make test-long` takes the cases with much DDL too, of which each statement costs seconds.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild
from spark_jobs.session.background import BackgroundSession
from tests.kit.tidb.replay.command import recorded_tables
from tests.kit.tidb.road import applied, compared, lake_with, segments_of
from tests.support.readers import by_polars
from tests.support.seeds import LONG
from tidegate import tables
from tidegate.errors import ConfigError
from tidegate.lake.bronze.table import Bronze
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.standing.causes import Cause
from tidegate.tables import SegmentFlag
from tidegate.tidb.records.enclosed import joined, payloads_of
from tidegate.tidb.records.payload import BinlogType, answer_payload, binlog_of, fake_payload

pytestmark = [pytest.mark.spark, pytest.mark.long]

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tidb"
MUCH_DDL = (
    "l01_conversions", "l02_partitions", "l04_concurrent", "l05_divided", "p05_ddl", "p06_ddl_concurrent", "p12_fuzz",
)  # fmt: skip
CASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir() and (LONG or path.name not in MUCH_DDL))
_MODIFIED: Final = "the server rewrote rows"
_CAME_BACK: Final = "it was there with rows that the source's log doesn't tell"
_DIVIDED: Final = "alter changed rows that the binlog does not show"
_COMPUTED: Final = "the server computed it for each row"
# The types of their column x don't hold all values of the one before.
_CONVERTED: Final = (
    "m2 m3 m4 m5 m7 m8 m9 m10 m11 m12 m13 m14 m16 m17 m18 m19 m20 m21 m22 m23 m24 m26 m29 m30 m31 m32 m33 m34 m35 m36"
    " m42 m43 m44 m45 m49 m50 m51 m53 m54 m55"
)
# Case -> table -> what its reason says.
HELD: Final[dict[str, dict[str, str]]] = {
    "l01_conversions": {f"w1.{name}": _MODIFIED for name in _CONVERTED.split()},
    "l02_partitions": {
        "w2.h": "HASH is NULL", "w2.hh": "HASH is NULL", "w2.kk": "by KEY", "w2.ks": "by KEY",
        "w2.r": "isn't certain: values of the partitioning columns are null dates", "w2.tt_old": _CAME_BACK,
        "w2.ro": _DIVIDED,
    },
    "l03_ddl": {"w3.c": "w4.b, which is held", "w3.drp": _CAME_BACK, "w3.t1": _COMPUTED, "w4.b": _CAME_BACK},
    "l04_concurrent": {"y.c": _MODIFIED, "y.t": _MODIFIED},
    "p05_ddl": {"p05_ddl_db2.f": _CAME_BACK, "p05_ddl_db2.moved": _CAME_BACK},
    "p06_ddl_concurrent": {"p06_ddl_concurrent_db.t": _MODIFIED},
    "p08_generated": {"p08_generated_db.g": _COMPUTED},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_stream_is_in_silver_as_select_said(case: str, spark: SparkSession, tmp_path: Path) -> None:
    pipeline, lake = lake_with(tmp_path, segments_of(GOLDEN / case, 40))
    lines: list[str] = []
    app = applied(pipeline, lake, spark, lines)
    recorded = recorded_tables(GOLDEN / case / "tables")
    found = {f"{one['db']}.{one['table']}": said for one in recorded if (said := compared(app, one))}
    wrong = {name: said for name, said in found.items() if not said.startswith("held: ")}
    assert not wrong, lines
    assert found.keys() == HELD.get(case, {}).keys()
    assert [name for name, reason in HELD.get(case, {}).items() if reason not in found[name]] == []
    held = {name: app.states[name] for name in found}
    assert [name for name, of in held.items() if not of.lacks_rows and of.cause is not Cause.WAITS_WITH] == []


def test_what_waits_for_its_commit_comes_in_the_window_of_that(spark: SparkSession, tmp_path: Path) -> None:
    """Each step of bronze is applied by an application of its own, so many prewrites lie below the window."""
    case = GOLDEN / "p04_bank"
    segments = segments_of(case, 7)
    pipeline, lake = lake_with(tmp_path, {source: [] for source in segments})
    lines: list[str] = []
    while any(segments.values()):
        for source, mine in segments.items():
            Bronze(lake, source).append(mine[:3])
            del mine[:3]
        app = applied(pipeline, lake, spark, lines)
    assert len([line for line in lines if " 0 changes" not in line]) > 4
    assert {one["table"]: compared(app, one) for one in recorded_tables(case / "tables")} == {"acc": "", "jrn": ""}
    rebuild = Rebuild.plan(pipeline, lake, "p04_bank_db.acc", str(app.cut_ts), "again")
    rebuild.run(BackgroundSession(lambda: spark), lines.append)
    paths = [tables.silver_path("p04_bank_db", name) for name in ("acc", "again")]
    rows = [sorted(map(str, by_polars(str(tmp_path / "lake" / path)).to_pylist())) for path in paths]
    assert rows[0] == rows[1] != []


def test_a_pipeline_file_that_would_lose_a_pump_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    segments = segments_of(GOLDEN / "p03_txn", 40)
    first, second = sorted(segments)
    pipeline, lake = lake_with(tmp_path, segments)
    applied(pipeline, lake, spark, [])
    reordered = lake_with(tmp_path, {second: [], first: []})[0]
    with pytest.raises(ConfigError, match=f"put {first} before the others"):
        applied(reordered, lake, spark, [])
    last = segments[second][-1]
    ahead_ts = last.max_commit_ts + 1
    Bronze(lake, second).append([behind(last, [fake_payload(ahead_ts)], ahead_ts)])
    alone = lake_with(tmp_path, {first: []})[0]
    with pytest.raises(ConfigError, match=f"Pump {second} is no longer in the pipeline file"):
        applied(alone, lake, spark, [])
    with pytest.raises(ConfigError, match=f"those of their cluster are recorded under {first}'s"):
        applied(lake_with(tmp_path, {second: []})[0], lake, spark, [])


def test_a_pump_that_tidb_has_written_to_does_not_join(spark: SparkSession, tmp_path: Path) -> None:
    segments = segments_of(GOLDEN / "p03_txn", 40)
    pipeline, lake = lake_with(tmp_path, {"pump_0": []})
    applied(pipeline, lake, spark, [])
    joined_by, _ = lake_with(tmp_path, {"pump_0": [], "pump_1": segments["pump_1"]})
    with pytest.raises(ConfigError, match="Pump pump_1 joins, and TiDB has written to it already"):
        applied(joined_by, lake, spark, [])


def test_a_commit_that_comes_when_the_cut_has_passed_it_holds_what_may_lack_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    segments = segments_of(GOLDEN / "p03_txn", 40)
    pipeline, lake = lake_with(tmp_path, segments)
    app = applied(pipeline, lake, spark, [])
    assert not any(state.state == tables.State.HELD for state in app.states.values())
    said = [binlog_of(payload) for one in segments["pump_0"] for payload in payloads_of(one)]
    again = next(one for one in said if one.tp is BinlogType.COMMIT and one.ddl_job_id == 0)
    cut_ts = app.cut_ts
    late = (again.start_ts + 1, cut_ts - 1)
    for commit, held in (((again.start_ts, again.commit_ts), False), (late, True)):
        cut_ts += 1000
        for name, mine in segments.items():
            payloads = [answer_payload(*commit, b"k")] if name == "pump_0" else []
            mine.append(behind(mine[-1], [*payloads, fake_payload(cut_ts)], cut_ts))
            Bronze(lake, name).append(mine[-1:])
        app = applied(pipeline, lake, spark, [])
        reasons = [state.reason for state in app.states.values() if state.state == tables.State.HELD]
        assert bool(reasons) == held, reasons
    assert all(f"transaction {late[0]} of pump_0" in reason for reason in reasons)
    assert app.cut_ts == cut_ts


def behind(last: Segment, payloads: list[bytes], tso: int) -> Segment:
    """The next segment of a Pump, which is resolved at a timestamp."""
    payload = joined(payloads)
    place = {"seq": last.seq + 1, "start_pos": last.end_pos, "end_pos": last.end_pos + len(payload)}
    stamps = {"prev_commit_ts": last.resolved_ts, "min_commit_ts": 1, "max_commit_ts": tso, "resolved_ts": tso}
    counts = {"event_count": len(payloads), "txn_count": len(payloads) - 1, "flags": SegmentFlag.HAS_ANSWER}
    return replace(last, **place, **stamps, **counts, payload=payload, payload_crc32c=crc32c(payload))
