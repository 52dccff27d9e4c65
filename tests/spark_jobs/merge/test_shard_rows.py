"""A shard that begins anew is emptied by position: Spark isn't asked, and other shards keep their rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from spark_jobs.merge.shard_rows import empty_shard
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.made import TableToWrite
from spark_jobs.window.window import TableWindow
from tests.kit.spark import no_spark
from tidegate import config, tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved
from tidegate.errors import SparkUnavailable
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.columns import TableVersion
from tidegate.upsert.files.data_file import write
from tidegate.upsert.files.file_layout import FileLayout

KEY = (*tables.SHARDS, "id")
PATH = "silver/d/t"
Row = tuple[str, str, str, int]


def text(writer: str) -> str:
    return (
        f"pipeline: p\nlake: {{path: x}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\napply: {{writer: {writer}}}\n"
        "tables: {include: ['d_1.*'], routes: [{match: 'd_1.t_1', to: d.t}]}\n"
    )


def made(folder: Path, *, writer: str = "auto", partitions: tuple[str, ...] = ()) -> SilverWriter:
    lake = LakeFiles(str(folder))
    columns = [*(SilverColumn(name, "string") for name in tables.SHARDS), SilverColumn("id", "bigint")]
    create_silver(lake.log(PATH), SilverShape(tuple(columns), KEY))
    app = Application(BackgroundSession(no_spark), config.parse(text(writer), where="p.yaml"), lake, BronzeIndex(lake))
    return SilverWriter(app, TableToWrite(TableWindow("d.t", "d", "t", routed=True, after_ts=0)), {})


def insert(writer: SilverWriter, rows: list[Row]) -> None:
    state = writer.log.state()
    layout = FileLayout.of(state, KEY)
    columns = dict(zip(KEY, zip(*rows, strict=True), strict=True))
    table = pa.table(
        {
            name: pa.array(columns.get(name, [None] * len(rows)), layout.schema.field(name).type)
            for name in layout.schema.names
        }
    )
    adds = write(writer.app.lake, PATH, table, layout)
    writer.log.commit(state, Change(moved([], adds, data_change=True), "WRITE", {writer.app_id: 1}))


def there(writer: SilverWriter) -> list[Row]:
    found = pl.read_delta(str(Path(writer.app.lake.root) / PATH)).select(KEY)
    return sorted(found.rows())


def version(commit_ts: int, *shard: str) -> TableVersion:
    return TableVersion(*shard, 1, commit_ts, "", 0, "snapshot", "", (), (), "utf8mb4")  # type: ignore[misc]


def test_all_rows_of_a_shard_go_and_no_others_and_what_comes_after_stays(tmp_path: Path) -> None:
    writer = made(tmp_path)
    gone, near, far = ("a", "d_1", "t_1"), ("b", "d_1", "t_1"), ("a", "d_1", "t_10")
    rows: list[Row] = [(*shard, number) for shard in (gone, near, far) for number in range(500)]
    insert(writer, rows[::2])
    insert(writer, rows[1::2])
    insert(writer, [(*far, 1000)])  # a file that has none
    before = writer.log.state()
    empty_shard(writer, version(10, *gone))
    kept = sorted([*rows[500:], (*far, 1000)])
    assert there(writer) == kept
    after = writer.log.state()
    assert len(after.files) == len(before.files)
    assert len({file.path for file in before.files} & {file.path for file in after.files}) == 3, "no row is written"
    insert(writer, [(*gone, 7)])
    empty_shard(writer, version(10, *gone))
    assert there(writer) == sorted([*kept, (*gone, 7)]), "an application that is behind doesn't do it again"
    empty_shard(writer, version(11, *gone))
    assert there(writer) == kept
    empty_shard(writer, version(12, *far))
    assert len(writer.log.state().files) == 2, "of a file without live rows nothing stays"


def test_a_shard_without_rows_costs_one_commit_and_reads_nothing(tmp_path: Path) -> None:
    writer = made(tmp_path)
    insert(writer, [("b", "d_1", "t_1", 1)])
    (Path(writer.app.lake.root) / PATH / writer.log.state().files[0].local_path).rename(tmp_path / "aside")
    empty_shard(writer, version(10, "a", "d_1", "t_1"))
    assert writer.log.state().transaction(writer.ddl_id("rows", version(10, "a", "d_1", "t_1"))) == 10


def test_where_merge_is_asked_for_spark_does_it(tmp_path: Path) -> None:
    writer = made(tmp_path, writer="merge")
    insert(writer, [("a", "d_1", "t_1", 1)])
    with pytest.raises(SparkUnavailable):
        empty_shard(writer, version(10, "a", "d_1", "t_1"))
