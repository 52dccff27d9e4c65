"""An ALTER of a table that is in silver: its files written anew by apply itself, beside Spark's statements.

In:  a folder; rows of the table. Spark is warm: what its start costs (some seconds) is in neither figure.
Out: rows that only the report shows: rows of the table per CPU second, ours and Spark's, each on a copy of the table.

`python -m benchmarks.columns 75000 1000000`: minutes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.commit import warm_session
from benchmarks.cpu import Meter
from benchmarks.figures import Row, in_turns
from benchmarks.sizes import QUICK
from spark_jobs.merge.schema import change_schema
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.made import TableToWrite
from spark_jobs.window.plan import PlannedPhase
from spark_jobs.window.shape.shapes import shape_of
from spark_jobs.window.window import TableWindow
from tidegate import config
from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.phases import DdlPhase
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.replay.history import SchemaHistory
from tidegate.tables import COMMIT_TS, silver_path
from tidegate.upsert.files import data_file
from tidegate.upsert.files.file_layout import FileLayout

STATEMENTS: Final = {
    "ADD COLUMN NOT NULL DEFAULT": "ALTER TABLE t ADD COLUMN channel VARCHAR(20) NOT NULL DEFAULT 'web'",
    "ADD COLUMN NULL, DROP COLUMN": "ALTER TABLE t ADD COLUMN phone VARCHAR(40) NULL, DROP COLUMN height",
}
_TABLE: Final = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL, status VARCHAR(20) NOT NULL, placed DATETIME(6),"
    " total DECIMAL(14,4), height FLOAT, remark VARCHAR(500))"
)
_FILES: Final = 4
_RUNS: Final = 3


@dataclass
class Table:
    """A silver table of so many rows, and the statement that changes it."""

    folder: Path
    statement: str

    def __post_init__(self) -> None:
        history = SchemaHistory("s")
        for at, sql in enumerate((_TABLE, self.statement), 1):
            history.replay(
                DdlStatement(
                    sql=sql, database="d", sql_mode=0, commit_ts=at, file="b.000001", pos=at,
                    timestamp_us=at, charset="utf8mb4", server_version="9.7.0",
                )
            )  # fmt: skip
        self.history = history
        self.old, self.new = history.versions("d", "t")

    def make(self, rows: int) -> None:
        """All rows, in a few files."""
        lake, shape = LakeFiles(str(self.folder)), shape_of([self.old], routed=False)
        log = lake.log(silver_path("d", "t"))
        state = create_silver(log, shape)
        layout = FileLayout.of(state, shape.key)
        adds: list[Any] = []
        for ids in np.array_split(np.arange(rows), _FILES):
            adds += data_file.write(lake, silver_path("d", "t"), layout.fit(_rows(ids, layout)), layout)
        log.commit(state, Change(moved([], adds, data_change=True), "WRITE"))

    def change(self, folder: Path, writer: str, spark: Any) -> None:
        """The statement on a copy of the table."""
        text = (
            f"pipeline: bench\nlake: {{path: {folder}}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\n"
            f"tables: {{include: ['d.*']}}\napply: {{writer: {writer}}}\n"
        )
        lake = LakeFiles(str(folder))
        app = Application(BackgroundSession(lambda: spark), config.parse(text, where="b.yaml"), lake, BronzeIndex(lake))
        app.histories["s"] = self.history
        entry = TableWindow("d.t", "d", "t", routed=False, after_ts=1)
        change_schema(SilverWriter(app, TableToWrite(entry), {}), _planned(self.old, self.new))


def _planned(old: TableVersion, new: TableVersion) -> PlannedPhase:
    shapes = [shape_of([version], routed=False) for version in (new, old)]
    return PlannedPhase(DdlPhase(new.commit_ts, ((old, new),)), (new,), *shapes)


def _rows(ids: Any, layout: FileLayout) -> pa.Table:
    dice = np.random.default_rng(int(ids[0]))
    count = len(ids)
    columns = {
        "id": ids,
        "customer": dice.integers(0, 1_000_000, count),
        "status": dice.choice(["placed", "paid", "shipped"], count),
        "placed": pa.array(dice.integers(10**15, 2 * 10**15, count)).cast(pa.timestamp("us")),
        "total": pa.array(dice.integers(0, 10**9, count)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(14, 4)),
        "height": dice.random(count, np.float32),
        "remark": pa.array([f"{number} {'x' * (number % 60)}" for number in dice.integers(0, 10**9, count).tolist()]),
        COMMIT_TS: np.full(count, 1),
    }
    return pa.table({field.name: pa.array(columns[field.name]).cast(field.type) for field in layout.schema})


def measure(folder: Path, meter: Meter, sizes: Sequence[int]) -> list[Row]:
    """A row for each statement and size. Raises Missing where Spark's jars can't be had."""
    rows = []
    with warm_session() as spark:
        for count in sizes:
            for what, statement in STATEMENTS.items():
                shutil.rmtree(folder, ignore_errors=True)
                table = Table(folder / "table", statement)
                table.make(count)
                rows.append(_measured(table, count, what, meter, spark))
    return rows


def _measured(table: Table, count: int, what: str, meter: Meter, spark: Any) -> Row:
    seconds: dict[str, list[float]] = {"auto": [], "merge": []}

    def once(writer: str) -> float:
        copy = table.folder.parent / writer
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(table.folder, copy)
        run = meter.run(lambda: table.change(copy, writer, spark))
        seconds[writer].append(run.wall_seconds)
        return count / max(run.cpu_seconds, 0.01)

    once("auto")
    once("merge")
    ours, theirs = in_turns(_RUNS, lambda: once("auto"), lambda: once("merge"))
    size = sum(path.stat().st_size for path in table.folder.rglob("*.parquet")) / 1e6
    best = {writer: min(found) for writer, found in seconds.items()}
    return Row(
        f"columns_{count}",
        f"{what} on {count:,} rows that are in silver",
        "rows per CPU second",
        ours,
        theirs,
        peer="Spark, warm",
        note=f"{size:.1f} MB in {_FILES} files; least seconds: {best['auto']:.2f}, Spark's {best['merge']:.2f}",
    )


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or QUICK.columns_rows
    with tempfile.TemporaryDirectory(prefix="tidegate-columns-") as folder:
        for row in measure(Path(folder) / "tables", Meter(), sizes):
            told = row.as_json()
            ratio = f"{told['theirs']} of {row.peer}: {told['ratio']}x"
            print(f"{row.title}: {told['ours']} {row.unit}, {ratio} ({row.note})")


if __name__ == "__main__":
    main()
