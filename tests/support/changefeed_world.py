"""The whole road over a changefeed's path: capture, apply on Spark, silver.

In:  a folder; the path, or a prefix of an object store.
Out: capture() until the checkpoint is captured; apply(); silver's rows as delta-rs and DuckDB read them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from spark_jobs.apply import run as run_apply
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.spark import no_spark
from tidegate import config, tables
from tidegate.capture.run import CaptureRun
from tidegate.changefeed.opened import changefeed_run
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles


class ChangefeedWorld:
    """extra, kept: more keys of the source and of `tables`, each behind a comma; more: further lines of the file."""

    def __init__(
        self,
        folder: Path,
        path: str,
        *,
        extra: str = "",
        kept: str = "",
        more: str = "",
        options: dict[str, str] | None = None,
    ) -> None:
        self.folder, self.options = folder, options or {}
        file = folder / "changefeed.yaml"
        said = f"flavour: ticdc, path: '{path}', time_zone: UTC, look_seconds: 0.05{extra}"
        said += "" if "protocol" in extra else ", protocol: canal-json"
        file.write_text(
            f"pipeline: changefeed\nlake: {{path: {folder / 'lake'}}}\n"
            f"sources: {{one: {{{said}}}}}\n"
            f"tables: {{include: ['*.*']{kept}}}\n"
            "capture: {land_seconds: 0.05, heartbeat_seconds: 0.5}\n"
            f"apply: {{mode: batch}}\n{more}"
        )
        self.file, self.pipeline = file, config.load(file)
        self.lake = LakeFiles(str(folder / "lake"))
        self.lines: list[str] = []

    def run(self) -> CaptureRun:
        return changefeed_run(self.pipeline, "one", self.options, self.folder / "state", self.lake)

    def capture(self, *, idle_seconds: float = 0.8) -> int:
        """The last resolved_ts."""
        return self.run().run(60, idle_seconds=idle_seconds).resolved_ts

    def apply(self, spark: SparkSession) -> Application:
        app = Application(BackgroundSession(lambda: spark), self.pipeline, self.lake, BronzeIndex(self.lake))
        run_apply(app, report=self.lines.append)
        return app

    def applied(self, upto_ts: int) -> Application:
        """Capture up to there, and apply, of small tables, without Spark."""
        idle_seconds = 0.1
        while self.capture(idle_seconds=idle_seconds) < upto_ts:
            idle_seconds *= 2  # a run may end before a slow look does
        app = Application(BackgroundSession(no_spark), self.pipeline, self.lake, BronzeIndex(self.lake))
        run_apply(app, report=self.lines.append)
        return app

    def silver(self, database: str, table: str, columns: str = "*", key: str = "id") -> list[dict[str, Any]]:
        found = DeltaTable(f"{self.folder / 'lake'}/{tables.silver_path(database, table)}")
        rows = pa.table(QueryBuilder().register("t", found).execute(f"SELECT {columns} FROM t ORDER BY {key}"))
        return [{name: value for name, value in row.items() if name[:4] != "_tg_"} for row in rows.to_pylist()]
