"""Waves that were read at a timestamp, over streams recorded from a real TiDB: apply takes them however late they come.

A wave's rows are what silver was at an earlier cut, so what was committed since must be taken again on top of them,
from wherever in both Pumps' streams it waits.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.integration.tidb.test_road import GOLDEN, behind
from tests.kit.tidb.replay.command import recorded_tables
from tests.kit.tidb.road import applied, compared, lake_with, segments_of
from tests.support.readers import by_polars
from tidegate import tables
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.segments.segment import Segment
from tidegate.snapshot.chunks.chunk import Chunk, schema_of, shape_of, to_payload
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, claim_reader
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.marks.timestamp_marks import TimestampMarks
from tidegate.snapshot.progress.events import EventKind
from tidegate.snapshot.progress.requests import events_of, request
from tidegate.snapshot.reading.table_reader import WaveOf
from tidegate.snapshot.watermark import Manifest, MarkKind
from tidegate.tidb.records.payload import fake_payload

pytestmark = [pytest.mark.spark, pytest.mark.long]

CASE, DATABASE, NAMES, OWNER = GOLDEN / "p04_bank", "p04_bank_db", ("acc", "jrn"), "pump_0"


def halfway(folder: Path, spark: SparkSession) -> tuple[LakeFiles, dict[str, list[Segment]], Application]:
    """Silver in the middle of the stream; the segments that are left."""
    segments = segments_of(CASE, 7)
    pipeline, lake = lake_with(folder, {source: [] for source in segments})
    for source, mine in segments.items():
        half = len(mine) // 2
        Bronze(lake, source).append(mine[:half])
        del mine[:half]
    return lake, segments, applied(pipeline, lake, spark, [])


def silver_of(app: Application, name: str) -> pa.Table:
    version = app.histories[OWNER].last((DATABASE, name))
    assert version is not None
    rows = by_polars(str(Path(app.lake.root) / tables.silver_path(DATABASE, name)))
    return rows.select(schema_of(version).names).cast(schema_of(version))


def wave_of(app: Application) -> tuple[WaveOf, list[Chunk]]:
    """Both tables as silver has them at its cut, whole, and read at that timestamp."""
    snapshot = request(app.lake, app.pipeline.pipeline, [(OWNER, DATABASE, name) for name in NAMES])
    wave, chunks = WaveOf(OWNER, snapshot, 1, "0" * 32, 0, "", app.cut_ts), list[Chunk]()
    for name in NAMES:
        version, rows = app.histories[OWNER].last((DATABASE, name)), silver_of(app, name)
        assert version is not None
        payload = to_payload(rows.to_batches(), rows.schema)
        chunks.append(replace(wave.chunk(version, WHOLE, rows.num_rows, shape_of(rows.schema), payload), chunk=1))
    return wave, chunks


def land_wave(app: Application, wave: WaveOf, chunks: list[Chunk]) -> None:
    """With its high mark."""
    ChunkWriter(app.lake, OWNER, claim_reader(ControlTables(app.lake), OWNER)).append(chunks)
    marks = TimestampMarks(None, None, app.lake, app.pipeline.pipeline, OWNER)  # type: ignore[arg-type]
    marks.at_ts = wave.at_ts
    manifests = tuple(Manifest.of(one.name, [one]) for one in chunks)
    marks.write(wave.mark(MarkKind.HIGH, manifests))


def land_rest(lake: LakeFiles, segments: dict[str, list[Segment]]) -> None:
    """What is left, and that time passed since."""
    end_ts = max(mine[-1].resolved_ts for mine in segments.values()) + 1000
    for source, mine in segments.items():
        last = behind(mine[-1], [fake_payload(end_ts)], end_ts)
        Bronze(lake, source).append([*mine, last])
        segments[source] = [last]


@pytest.mark.parametrize("is_late", [True, False])
def test_a_wave_at_a_timestamp_is_taken_and_what_came_since_wins(
    *, is_late: bool, spark: SparkSession, tmp_path: Path
) -> None:
    """is_late: silver is at the stream's end when the wave becomes known; else the window goes there that takes it."""
    lake, segments, app = halfway(tmp_path, spark)
    wave, chunks = wave_of(app)
    before = {name: silver_of(app, name) for name in NAMES}
    if is_late:
        land_rest(lake, segments)
        app = applied(app.pipeline, lake, spark, [])
        for source, (last,) in segments.items():
            segments[source] = [behind(last, [fake_payload(last.resolved_ts + 1)], last.resolved_ts + 1)]
    land_wave(app, wave, chunks)
    land_rest(lake, segments)
    app = applied(app.pipeline, lake, spark, [])
    answers = (EventKind.APPLIED, EventKind.REFUSED)
    taken = [(one.event, one.name) for one in events_of(lake, "road") if one.event in answers]
    assert sorted(taken) == [(EventKind.APPLIED, (DATABASE, name)) for name in NAMES]
    assert {one["table"]: compared(app, one) for one in recorded_tables(CASE / "tables")} == {"acc": "", "jrn": ""}
    assert not any(silver_of(app, name).equals(rows) for name, rows in before.items())
    rebuild = Rebuild.plan(app.pipeline, lake, f"{DATABASE}.jrn", str(app.cut_ts), "again")
    rebuild.run(BackgroundSession(lambda: spark), [].append)
    paths = [tables.silver_path(DATABASE, name) for name in ("jrn", "again")]
    rows = [sorted(map(str, by_polars(str(tmp_path / "lake" / path)).to_pylist())) for path in paths]
    assert rows[0] == rows[1] != []


def test_a_wave_waits_until_every_pump_is_resolved_where_it_was_read(spark: SparkSession, tmp_path: Path) -> None:
    """Who took it sooner would take it for whole at a moment of which not every commit is known."""
    lake, segments, app = halfway(tmp_path, spark)
    wave, chunks = wave_of(app)
    ahead_ts = min(mine[-1].resolved_ts for mine in segments.values()) - 1
    land_wave(app, replace(wave, at_ts=ahead_ts), chunks)
    Bronze(lake, OWNER).append(segments.pop(OWNER))  # and nothing of the other Pump
    app = applied(app.pipeline, lake, spark, [])
    assert app.cut_ts < ahead_ts
    events = {one.event for one in events_of(lake, "road")}
    assert events == {EventKind.REQUESTED, EventKind.MARKED}
    for source, mine in segments.items():
        Bronze(lake, source).append(mine)
    applied(app.pipeline, lake, spark, [])
    assert {EventKind.PLACED, EventKind.APPLIED} <= {one.event for one in events_of(lake, "road")}
