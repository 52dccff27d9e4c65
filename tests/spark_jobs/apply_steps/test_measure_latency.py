"""What a window's markers tell becomes rows of control/latency; what goes wrong stops nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from spark_jobs.apply_steps.measure_latency import measure_latency
from spark_jobs.window.application import Application
from spark_jobs.window.window import TableWindow, Window
from tests.spark_jobs.apply_steps.test_record_ledger import application
from tidegate import tables
from tidegate.lake import control

WROTE = {tables.MARKER: 0}


def _marked(app: Application, seconds_ago: float) -> Window:
    """A window that has brought a marker."""
    written_us = int((time.time() - seconds_ago) * 1e6)
    rows = pa.table({"slot": [1], "written_us": [written_us], "ahead_us": [0], tables.COMMIT_TS: [25]})
    mark = Transaction(tables.app_id("shop", tables.MARKER), 40)
    place = app.lake.uri(tables.silver_path(tables.MARKER_DATABASE, tables.MARKER_TABLE))
    write_deltalake(place, rows, commit_properties=CommitProperties(app_transactions=[mark]))
    window = Window(20, 40, [])
    entry = TableWindow(tables.MARKER, tables.MARKER_DATABASE, tables.MARKER_TABLE, routed=False, after_ts=20)
    window.taking.tables[tables.MARKER] = entry
    return window


def test_a_marker_says_how_long_it_took_and_the_windows_line_has_it(tmp_path: Path) -> None:
    app = application(tmp_path)
    window = _marked(app, seconds_ago=3)
    latency = measure_latency(app, window, WROTE)
    (row,) = control.read(app.lake, tables.LATENCY).to_pylist()
    assert 3 <= row["seconds"] < 60
    assert row["cut_ts"] == 40
    assert latency is not None
    assert latency.markers == 1


def test_a_window_that_did_not_write_the_marker_table_measures_nothing(tmp_path: Path) -> None:
    app = application(tmp_path)
    window = _marked(app, seconds_ago=3)
    assert (measure_latency(app, window, {}), control.read(app.lake, tables.LATENCY).num_rows) == (None, 0)


def test_a_marker_file_that_is_gone_stops_no_window(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = application(tmp_path)
    window = _marked(app, seconds_ago=3)
    for file in (tmp_path / tables.silver_path(tables.MARKER_DATABASE, tables.MARKER_TABLE)).glob("*.parquet"):
        file.unlink()
    assert measure_latency(app, window, WROTE) is None
    assert "latency was not measured" in caplog.text
