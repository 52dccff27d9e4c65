"""What a start costs with a long schema history: `python -m benchmarks.schema_history [TABLES] [VERSIONS]`.

In:  how many tables and versions; 10,000 and 1,000,000 when nothing is said.
Out: CPU seconds and peak memory of a start that reads what windows need, and of one that reads all.

Each start is a process of its own. Reading everything row by row grows with the versions, so it is done with a
twentieth of them and said so.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.cpu import peak_bytes
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import needed_rows
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.replay.bounds import Bounds
from tidegate.schema.replay.history import SchemaHistory
from tidegate.tables import SCHEMA_HISTORY

COLUMNS = 10
FILE_ROWS = 20_000
SHARE_READ_WHOLE = 20
WINDOW_TABLES = 100


def make(folder: Path, tables: int, versions: int) -> None:
    """A history in which each table in turn gets a column and loses another, in files as apply leaves them."""
    usual = tuple(
        Column(n, f"column_{n}", "varchar(100)", True, "utf8mb4", "utf8mb4_general_ci") for n in range(COLUMNS)
    )
    last: dict[int, TableVersion] = {}
    next_id, rows = COLUMNS, []
    for ts in range(1, versions + 1):
        number = ts % tables
        before = last.get(number)
        if before is None:
            name, columns = f"table_{number:05}", tuple(replace(c, id=next_id + c.id) for c in usual)
            ddl, next_id = f"CREATE TABLE {name} (...)", next_id + COLUMNS
            version = TableVersion(
                "one", "shop", name, 1, ts, "binlog.000001", ts, "create", ddl, columns, (), "utf8mb4"
            )
        else:
            columns, next_id = (*before.columns[1:], replace(usual[0], id=next_id, name=f"column_{ts}")), next_id + 1
            ddl = (
                f"ALTER TABLE {before.table} DROP COLUMN {before.columns[0].name}, ADD COLUMN column_{ts} VARCHAR(100)"
            )
            version = replace(
                before, version=before.version + 1, commit_ts=ts, pos=ts, kind="alter", ddl=ddl, columns=columns
            )
        last[number] = version
        rows.append(version.to_row())
        if len(rows) == FILE_ROWS or ts == versions:
            write_deltalake(
                folder / SCHEMA_HISTORY.path, pa.Table.from_pylist(rows, schema=SCHEMA_HISTORY.schema), mode="append"
            )
            rows = []


def start(folder: Path, versions: int, *, whole: bool) -> None:
    """What an application does before its first window, and the columns of the window's tables."""
    lake = LakeFiles(str(folder))
    make(folder / "warm", 1, 1)  # what a first start imports is not what it costs
    needed_rows(LakeFiles(str(folder / "warm")), ["one"], lambda *_: 0)
    before, begun = peak_bytes(), time.process_time()
    if whole:
        history = SchemaHistory("one", control.read(lake, SCHEMA_HISTORY).to_pylist())
        names = history.tables()
    else:
        found = needed_rows(lake, ["one"], lambda *_: versions)["one"]
        history = SchemaHistory("one", found.rows, bounds=Bounds(found.next_id, found.floor, found.standing))
        names = history.tables()[:WINDOW_TABLES]
    assert all(history.version_at(*name, versions) for name in names)
    seconds, more = time.process_time() - begun, peak_bytes() - before
    print(f"{seconds:.2f} CPU-s, {more / 1e6:.0f} MB above the {before / 1e6:.0f} MB of the imports")


def main(arguments: list[str]) -> None:
    """Make both histories, then start on each in a fresh process."""
    tables, versions = (int(text) for text in [*arguments, *["10000", "1000000"][len(arguments) :]])
    part = versions // SHARE_READ_WHOLE
    with tempfile.TemporaryDirectory(prefix="tidegate-") as parent:
        for what, count in (("needed", versions), ("whole", part)):
            folder = Path(parent) / what
            make(folder, tables // (versions // count), count)
            size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.schema_history", "start", what, str(folder), str(count)],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            print(f"{count} versions, {size / 1e6:.0f} MB of files, read {what}: {done.stdout.strip()}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["start"]:
        start(Path(sys.argv[3]), int(sys.argv[4]), whole=sys.argv[2] == "whole")
    else:
        main(sys.argv[1:])
