"""A silver table that is written by position, window by window as apply does it, and what it should hold.

In:  a Spark session and a folder.
Out: Table.window(changes): what it cost; Table.assert_equal(): against a dictionary, as read by DuckDB and by delta-rs.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_jobs.apply_steps import compact_silver as step
from spark_jobs.apply_steps.checkpoint_tables import checkpoint_tables
from spark_jobs.positional.writer import Outcome, upsert_of, write_upserts
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.made import Applied, StagedTable, TableToWrite
from spark_jobs.window.plan import TablePlan, TableWriter
from spark_jobs.window.window import TableWindow, Taking, Window
from tests.kit.spark import no_spark
from tests.support.readers import by_delta_rs, by_duckdb
from tidegate import config, tables
from tidegate.delta.table.state import TableState
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.stage import Target, staged
from tidegate.upsert.target import StagedUpsert, StagePhase, UpsertTarget

NAME, PATH = "d.t", "silver/d/t"
TEXT = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"
UP, DEL = tables.OP_UPSERT, tables.OP_DELETE


@dataclass
class Cost:
    """Of one window. probed: bytes of the files that statistics could not rule out."""

    cpu_seconds: float = 0.0
    files: int = 0
    probed: int = 0


@dataclass
class Table:
    """A silver table with a key, written window by window as apply does: upsert, then upkeep."""

    app: Application
    layout: FileLayout
    model: dict[int, str] = field(default_factory=dict)
    windows: int = 0
    compactions: list[step.Compaction] = field(default_factory=list)
    rows_written: int = 0

    @classmethod
    def create(cls, spark: SparkSession | None, folder: Path) -> Table:
        lake = LakeFiles(str(folder))
        shape = SilverShape((SilverColumn("id", "bigint"), SilverColumn("note", "string")), ("id",))
        create_silver(lake.log(PATH), shape)
        session = BackgroundSession(no_spark if spark is None else lambda: spark)
        app = Application(session, config.parse(TEXT, where="p.yaml"), lake, BronzeIndex(lake))
        return cls(app, FileLayout.of(app.lake.log(PATH).state(), ("id",)))

    def snapshot(self) -> TableState:
        return self.app.lake.log(PATH).state()

    def write(self, changes: list[tuple[int, int, str]], *, few: bool = False) -> tuple[Applied, int]:
        """One window of (op, id, note); the window, and the bytes of the files that had to be probed.

        few: few rows wait in memory for the commit, as those of a window that the driver decodes do.
        """
        applied, outcome, probed = self.tried(changes, few=few)
        assert isinstance(outcome, int), outcome
        return applied, probed

    def tried(self, changes: list[tuple[int, int, str]], *, few: bool) -> tuple[Applied, Outcome, int]:
        """write() with any outcome."""
        low, self.windows = self.windows, self.windows + 1
        phase = StagePhase(low, self.windows, self.layout)
        entry = TableWindow(NAME, "d", "t", routed=False, after_ts=low)
        target = UpsertTarget(NAME, PATH, (phase,))
        plan = TablePlan(writer=TableWriter.POSITIONAL, target=target)
        window = Window(low, self.windows, [], taking=Taking({NAME: entry}))
        count = len(changes)
        rows = pa.table(
            {
                "id": pa.array([c[1] for c in changes], pa.int64()),
                "note": pa.array([c[2] for c in changes], pa.string()),
                tables.COMMIT_TS: pa.array([self.windows] * count, pa.int64()),
                tables.OP: pa.array([c[0] for c in changes], pa.int8()),
                tables.SEQ: pa.array([1] * count, pa.int64()),
                tables.ORDINAL: pa.array(range(count), pa.int64()),
            }
        )
        keys = staged(Target(self.app.lake, PATH, self.layout), rows, "s", few_in_memory=few)
        work = TableToWrite(
            entry, plan, StagedTable(upserts=[StagedUpsert(NAME, self.windows, "keys", keys.changes, ())])
        )
        upsert = upsert_of(self.app, work, self.windows)
        assert upsert is not None
        kept = KeyFilesAtHand()
        assert kept.keep("keys", keys)
        outcome = write_upserts(self.app, kept, [upsert])[NAME]
        for op, number, note in changes:
            self.model.pop(number, None)
            if op == UP:
                self.model[number] = note
        self.rows_written += sum(1 for change in changes if change[0] == UP)
        assert upsert.probe is not None
        versions = {NAME: outcome} if isinstance(outcome, int) else {}
        return Applied(window, count, versions, {NAME: plan}), outcome, sum(file.size for file in upsert.probe.files)

    def compact(self, done: Applied) -> None:
        step.compact_silver(self.app, done.window, done.plans, done.versions)

    def window(self, changes: list[tuple[int, int, str]]) -> Cost:
        before = cpu_seconds()
        done, probed = self.write(changes)
        self.compact(done)
        checkpoint_tables(self.app, done.versions)
        return Cost(cpu_seconds() - before, len(self.snapshot().files), probed)

    def assert_equal(self) -> None:
        """As read by DuckDB and by delta-rs."""
        for read in (by_duckdb, by_delta_rs):
            rows = read(self.app.lake.uri(PATH))
            assert dict(zip(rows["id"].to_pylist(), rows["note"].to_pylist(), strict=True)) == self.model
            assert rows.num_rows == len(self.model)


def cpu_seconds() -> float:
    """User and system time of this process and of the JVM that it started."""
    ticks = 0
    for process in (os.getpid(), *_children(os.getpid())):
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in text.split()]


def changes_of(random_: random.Random, model: dict[int, str], next_id: int, count: int) -> list[tuple[int, int, str]]:
    """60% inserts, 30% updates, 10% deletes, while the table grows; as many deletes as inserts once it is large."""
    inserts, deletes = (count * 6 // 10, count // 10) if len(model) < 5000 else (count * 35 // 100, count * 35 // 100)
    known = random_.sample(sorted(model), min(len(model), count - inserts))
    note = f"{next_id} " + "x" * 60
    made = [(DEL, number, "") for number in known[:deletes]] + [(UP, number, note) for number in known[deletes:]]
    return made + [(UP, next_id + number, note) for number in range(inserts)]
