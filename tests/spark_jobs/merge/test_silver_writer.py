"""Silver follows its table's DDL: rows meet the columns of their own time, and a second try changes nothing.

Every case by both writers: MERGE, and the positional upsert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.apply_steps.choose_writers import choose_writers
from spark_jobs.apply_steps.merge_into_silver import merge_into_silver
from spark_jobs.apply_steps.prepare_silver import prepare_silver
from spark_jobs.merge.schema import change_schema
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.positional.staging import UpsertStage
from spark_jobs.session.background import BackgroundSession
from spark_jobs.session.failures import TablesFailed
from spark_jobs.window.application import Application
from spark_jobs.window.made import Applied, StagedChanges, StagedTable, TableToWrite
from spark_jobs.window.plan import TableWriter
from spark_jobs.window.shape.moves import find_moves
from spark_jobs.window.shape.shapes import version_changes
from spark_jobs.window.window import StagedFile, TableWindow, Window
from tests.kit.spark import no_spark
from tests.support.readers import by_duckdb
from tidegate import config, tables
from tidegate.binlog.rows.decode import TableChanges
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.merge.phases import DdlPhase
from tidegate.schema.ddl.statement import DdlStatement, StatementTime
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import canonical
from tidegate.schema.replay.history import SchemaHistory
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.row_hash import row_hashes

pytestmark = pytest.mark.spark

Rows = list[tuple[int, int, dict[str, Any]]]


class Done(Applied):
    """... and which of its tables went on."""

    @property
    def tables(self) -> Mapping[str, TableWindow]:
        return self.window.tables

    @property
    def held(self) -> Mapping[str, Standing]:
        return self.window.held


class Shop:
    """Sources with a schema history each, usually one, and a way to apply windows of ready-made changes."""

    SOURCES = ("s",)

    def __init__(
        self,
        spark: SparkSession | None,
        folder: Path,
        writer: str,
        routes: str = "[]",
        soft_delete: str = "[]",
        rules: str = "",
    ) -> None:
        """spark: None where it must need none. rules: more keys of `tables`, each behind a comma."""
        sources = ", ".join(f"{source}: {{conn_id: c_{source}, flavour: mysql}}" for source in self.SOURCES)
        text = (
            f"pipeline: shop\nlake: {{path: {folder}}}\nsources: {{{sources}}}\n"
            f"tables: {{include: ['d.*'], routes: {routes}, soft_delete: {soft_delete}{rules}}}\n"
            f"apply: {{writer: {writer}}}\n"
        )
        pipeline = config.parse(text, where="shop.yaml")
        lake = LakeFiles(str(folder))
        background = BackgroundSession(no_spark if spark is None else lambda: spark)
        self.app = Application(background, pipeline, lake, BronzeIndex(lake))
        for source in self.SOURCES:
            self.app.histories[source] = SchemaHistory(source)
        self.times: dict[tuple[str, int], StatementTime] = {}
        self.files = 0

    def ddl(self, commit_ts: int, sql: str, source: str = "s") -> None:
        stamp = int(datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC).timestamp() * 1e6)
        statement = DdlStatement(
            sql=sql, database="d", sql_mode=0, commit_ts=commit_ts, file="b.000001", pos=commit_ts,
            timestamp_us=stamp, charset="utf8mb4", server_version="9.7.0",
        )  # fmt: skip
        self.app.histories[source].replay(statement)
        self.times[(source, commit_ts)] = statement.ran

    def apply(self, low: int, cut: int, changes: dict[str, Rows], *, below: bool = False) -> Done:
        """changes: table of s, or `source.table` -> (commit_ts, op, row). below: in a window below the cut."""
        window = Window(low, cut, [], catches_up={} if below else None)
        for physical in {Physical(s, *pair) for s, history in self.app.histories.items() for pair in history.tables()}:
            database, table, routed = self.app.names.logical(*physical.pair)
            name = f"{database}.{table}"
            entry = window.taking.tables.setdefault(
                name, TableWindow(name, database, table, routed, max(low, self.app.positions.applied(name)))
            )
            entry.physical.add(physical)
        window.taking.moves = find_moves(self.app, low, cut)
        versions = {name: version_changes(self.app, entry, cut) for name, entry in window.tables.items()}
        plans = choose_writers(self.app, window, (), versions)
        prepare_silver(self.app, window, plans)
        staged = StagedChanges({name: StagedTable() for name in window.tables}, KeyFilesAtHand())
        stage = UpsertStage(self.app.lake, "staging", self.app.key_seed, staged.key_files)
        for name, entry in window.tables.items():
            plan = plans[name]
            for physical in sorted(entry.physical):
                named = physical.table if physical.source == "s" else f"{physical.source}.{physical.table}"
                mine = [c for c in changes.get(named, []) if c[0] > entry.after_ts]
                for version, decoded in self._decoded(physical, mine):
                    rows = plan.past.staged(decoded) if self._version(physical, version).key else decoded
                    if plan.writer is not TableWriter.POSITIONAL:
                        staged.tables[name].files.append(self._stage(physical, version, rows))
                    else:
                        assert plan.target is not None
                        stage.add(plan.target, physical.source, TableChanges("d", physical.table, version, rows))
        for upsert in stage.flush():
            staged.tables[upsert.name].upserts.append(upsert)
        written = merge_into_silver(self.app, window, self.times, (), plans, staged)
        return Done(window, len(changes), written, plans)

    def versions(self, physical: Physical) -> Sequence[TableVersion]:
        return self.app.histories[physical.source].versions(*physical.pair)

    def _decoded(self, physical: Physical, changes: Rows) -> Iterator[tuple[int, pa.RecordBatch]]:
        for version in self.versions(physical):
            later = [v.commit_ts for v in self.versions(physical) if v.commit_ts > version.commit_ts]
            mine = [c for c in changes if version.commit_ts <= c[0] < min(later, default=1 << 62)]
            if not mine:
                continue
            columns: dict[str, pa.Array] = {
                tables.OP: pa.array([c[1] for c in mine], pa.int8()),
                tables.COMMIT_TS: pa.array([c[0] for c in mine], pa.int64()),
                tables.SEQ: pa.array([1] * len(mine), pa.int64()),
                tables.ORDINAL: pa.array(range(len(mine)), pa.int64()),
            }
            for column in version.columns:
                columns[column.name] = pa.array([c[2][column.name] for c in mine], canonical(column).arrow)
            yield version.version, pa.RecordBatch.from_pydict(columns)

    def _version(self, physical: Physical, number: int) -> TableVersion:
        (found,) = [v for v in self.versions(physical) if v.version == number]
        return found

    def _stage(self, physical: Physical, version: int, rows: pa.RecordBatch) -> StagedFile:
        self.files += 1
        path = f"staging/{self.files}.parquet"
        if not (found := self._version(physical, version)).key:
            hashed = row_hashes({column.name: rows.column(column.name) for column in found.columns})
            rows = rows.append_column(tables.ROW_HASH, hashed)
        self.app.lake.make_folder("staging")
        pq.write_table(pa.Table.from_batches([rows]), self.app.lake.uri(path))
        stamps = rows.column(tables.COMMIT_TS).to_pylist()
        return StagedFile(*physical, version, path, rows.num_rows, rows.nbytes, min(stamps), max(stamps))

    def silver(self, table: str) -> list[dict[str, Any]]:
        rows = by_duckdb(self.app.lake.uri(tables.silver_path("d", table))).to_pylist()
        shown = ({name: row[name] for name in row if not name.startswith(tables.SYSTEM_PREFIX)} for row in rows)
        return sorted(shown, key=repr)


@pytest.fixture(params=["merge", "positional"])
def shop(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Callable[..., Shop]:
    return lambda **given: Shop(spark, tmp_path, request.param, **given)


UP, DEL = tables.OP_UPSERT, tables.OP_DELETE


def test_rows_before_and_after_an_added_column_land_in_one_window(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
    it.ddl(
        20, "ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 7, ADD COLUMN at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP"
    )
    at = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    window = it.apply(0, 30, {"t": [
        (11, UP, {"id": 1, "a": "x"}), (12, UP, {"id": 2, "a": "y"}),
        (21, UP, {"id": 2, "a": "z", "n": 1, "at": None}), (22, UP, {"id": 3, "a": "w", "n": 2, "at": None}),
    ]})  # fmt: skip
    assert not window.held
    assert it.silver("t") == [
        {"id": 1, "a": "x", "n": 7, "at": at},
        {"id": 2, "a": "z", "n": 1, "at": None},
        {"id": 3, "a": "w", "n": 2, "at": None},
    ]
    assert it.app.lake.log("silver/d/t").state().transaction("tidegate/shop/d.t") == 30


def test_a_window_tried_again_changes_nothing(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT, a VARCHAR(20))")
    changes: dict[str, Rows] = {"t": [(11, UP, {"id": 1, "a": "x"}), (12, UP, {"id": 1, "a": "x"})]}
    first = it.apply(0, 30, changes)
    again = it.apply(0, 30, changes)
    it.app.positions.forget_applied("d.t")
    third = it.apply(0, 30, changes)
    assert it.silver("t") == [{"id": 1, "a": "x"}, {"id": 1, "a": "x"}]
    assert first.versions == again.versions == third.versions == {"d.t": 1}, "nothing was committed"


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_of_two_applications_none_writes_again_what_the_other_wrote_of_its_window(
    shop: Callable[..., Shop], key: str
) -> None:
    one, other = shop(), shop()
    for it in (one, other):
        it.ddl(10, f"CREATE TABLE t (id INT{key}, a VARCHAR(20))")
    changes: dict[str, Rows] = {"t": [(11, UP, {"id": 1, "a": "x"}), (12, UP, {"id": 2, "a": "x"})]}
    later: dict[str, Rows] = {"t": [*changes["t"], (21, DEL, {"id": 1, "a": "x"}), (22, UP, {"id": 3, "a": "x"})]}
    assert other.app.positions.applied("d.t") == 0
    one.apply(0, 20, changes)
    with pytest.raises(TablesFailed, match="another apply wrote to it"):
        other.apply(0, 30, later)  # it doesn't know yet
    assert other.silver("t") == [{"id": 1, "a": "x"}, {"id": 2, "a": "x"}]
    other.apply(0, 30, later)
    assert other.silver("t") == [{"id": 2, "a": "x"}, {"id": 3, "a": "x"}]


def test_a_statement_directly_after_the_last_cut_is_followed_at_the_first_try(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    it.apply(0, 15, {"t": [(11, UP, {"id": 1, "a": 1})]})
    it.ddl(16, "ALTER TABLE t RENAME COLUMN a TO n")
    it.apply(15, 20, {"t": [(17, UP, {"id": 2, "n": 2})]})
    assert it.silver("t") == [{"id": 1, "n": 1}, {"id": 2, "n": 2}]


def test_truncate_drop_and_a_new_table_of_the_same_name(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
    it.apply(0, 15, {"t": [(11, UP, {"id": 1, "a": "x"})]})
    it.ddl(20, "TRUNCATE TABLE t")
    it.apply(15, 25, {"t": [(16, UP, {"id": 9, "a": "gone"}), (21, UP, {"id": 2, "a": "y"})]})
    assert it.silver("t") == [{"id": 2, "a": "y"}]
    it.ddl(30, "DROP TABLE t")
    it.apply(25, 35, {})
    assert it.silver("t") == []
    it.ddl(40, "CREATE TABLE t (code CHAR(3) PRIMARY KEY, v DECIMAL(10,2))")
    it.apply(35, 45, {"t": [(41, UP, {"code": "abc", "v": 1})]})
    assert [(r["code"], str(r["v"])) for r in it.silver("t")] == [("abc", "1.00")]


def test_drop_rename_and_widen_rewrite_the_table_in_one_commit(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, c INT)")
    it.apply(0, 15, {"t": [(11, UP, {"id": 1, "a": "x", "b": 2, "c": 3})]})
    it.ddl(20, "ALTER TABLE t DROP COLUMN c, RENAME COLUMN b TO bb, MODIFY COLUMN id BIGINT NOT NULL")
    window = it.apply(15, 25, {"t": [(21, UP, {"id": 2, "a": "y", "bb": 5})]})
    assert not window.held
    assert it.silver("t") == [{"id": 1, "a": "x", "bb": 2}, {"id": 2, "a": "y", "bb": 5}]


def test_a_column_added_to_a_table_without_a_key_keeps_its_rows_findable(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (a VARCHAR(20))")
    it.apply(0, 15, {"t": [(11, UP, {"a": "x"}), (12, UP, {"a": "x"}), (13, UP, {"a": None})]})
    it.ddl(20, "ALTER TABLE t ADD COLUMN n INT DEFAULT 3")
    it.apply(15, 25, {"t": [(21, DEL, {"a": "x", "n": 3}), (22, DEL, {"a": None, "n": 3})]})
    assert it.silver("t") == [{"a": "x", "n": 3}]


def test_rows_that_another_writer_took_the_occurrence_from_are_not_passed_over(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (a VARCHAR(20))")
    it.apply(0, 15, {"t": [(11, UP, {"a": "x"}), (12, UP, {"a": "x"})]})
    place = it.app.lake.uri(tables.silver_path("d", "t"))
    it.app.spark.sql(f"UPDATE delta.`{place}` SET _tg_occurrence = NULL WHERE _tg_occurrence = 1").collect()
    change: dict[str, Rows] = {"t": [(21, DEL, {"a": "x"})]}
    if it.app.pipeline.apply.writer == config.Writer.MERGE:
        with pytest.raises(TablesFailed, match="rows without _tg_occurrence"):
            it.apply(15, 25, change)
    else:
        assert "rows without _tg_occurrence" in it.apply(15, 25, change).held["d.t"].reason
    assert it.silver("t") == [{"a": "x"}, {"a": "x"}]


def test_values_that_the_server_rewrote_hold_their_table_and_no_other(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
    it.ddl(11, "CREATE TABLE u (id INT PRIMARY KEY)")
    it.apply(0, 15, {"t": [(12, UP, {"id": 1, "a": "12"})]})
    it.ddl(20, "ALTER TABLE t MODIFY COLUMN a INT")
    window = it.apply(15, 25, {"t": [(21, UP, {"id": 2, "a": 5})], "u": [(22, UP, {"id": 4})]})
    assert set(window.held) == {"d.t"}
    assert "the server rewrote rows" in window.held["d.t"].reason
    assert it.silver("t") == [{"id": 1, "a": "12"}]
    assert it.silver("u") == [{"id": 4}]


def test_shards_flow_into_one_table_and_keep_apart(shop: Callable[..., Shop]) -> None:
    it = shop(routes="[{match: 'd.orders_\\d+', to: d.orders}]")
    it.ddl(10, "CREATE TABLE orders_1 (id INT PRIMARY KEY, a VARCHAR(20))")
    it.ddl(11, "CREATE TABLE orders_2 (id INT PRIMARY KEY, a VARCHAR(20))")
    it.apply(0, 15, {"orders_1": [(12, UP, {"id": 1, "a": "x"})], "orders_2": [(13, UP, {"id": 1, "a": "y"})]})
    it.ddl(20, "ALTER TABLE orders_2 ADD COLUMN n INT DEFAULT 1")
    it.ddl(22, "TRUNCATE TABLE orders_1")
    it.apply(15, 30, {"orders_1": [(23, UP, {"id": 5, "a": "z"})], "orders_2": [(24, UP, {"id": 2, "a": "w", "n": 2})]})
    assert it.silver("orders") == [
        {"id": 1, "a": "y", "n": 1},
        {"id": 2, "a": "w", "n": 2},
        {"id": 5, "a": "z", "n": None},
    ]


def test_a_column_of_a_shard_without_a_key_changes_no_row_of_another_one(spark: SparkSession, tmp_path: Path) -> None:
    """The server gave its default to rows of that shard; the other one has the column already, or not yet."""
    it = Shop(spark, tmp_path, "merge", routes="[{match: 'd.s_.*', to: d.s}]")
    it.ddl(10, "CREATE TABLE s_1 (id INT, a INT)")
    it.ddl(11, "CREATE TABLE s_2 (id INT, a INT)")
    it.apply(0, 15, {"s_1": [(12, UP, {"id": 1, "a": 1})], "s_2": [(13, UP, {"id": 2, "a": 2})]})
    it.ddl(20, "ALTER TABLE s_2 ADD COLUMN n INT DEFAULT 7")
    window = it.apply(15, 30, {})
    assert not window.held
    assert it.silver("s") == [{"id": 1, "a": 1, "n": None}, {"id": 2, "a": 2, "n": 7}]
    it.ddl(31, "ALTER TABLE s_1 ADD COLUMN n INT DEFAULT 8")
    it.apply(30, 40, {})
    assert it.silver("s") == [{"id": 1, "a": 1, "n": 8}, {"id": 2, "a": 2, "n": 7}]


def test_an_application_that_is_behind_does_no_ddl_again_to_rows_that_came_since(
    spark: SparkSession, tmp_path: Path
) -> None:
    it = Shop(spark, tmp_path, "merge", routes="[{match: 'd.s_.*', to: d.s}]")
    for at, sql in (
        (10, "CREATE TABLE t (id INT PRIMARY KEY, a INT)"),
        (11, "CREATE TABLE e (id INT PRIMARY KEY, a INT)"),
        (12, "CREATE TABLE s_1 (id INT PRIMARY KEY, a INT)"),
        (13, "CREATE TABLE s_2 (id INT PRIMARY KEY, a INT)"),
        (20, "TRUNCATE TABLE t"),
        (21, "TRUNCATE TABLE e"),
        (22, "DROP TABLE s_1"),
        (23, "CREATE TABLE s_1 (id INT PRIMARY KEY, a INT, more INT)"),
        (24, "TRUNCATE TABLE s_2"),
        (25, "ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 7"),
    ):
        it.ddl(at, sql)
    old = {"id": 1, "a": 1}
    before: dict[str, Rows] = {name: [(15, UP, old)] for name in ("t", "s_1", "s_2")}
    assert not it.apply(0, 16, before).held
    new = {"id": 2, "a": 2}
    after = {
        "t": [(26, UP, {**new, "n": 8})],
        "e": [(26, UP, new)],
        "s_1": [(26, UP, {**new, "more": 3})],
        "s_2": [(26, UP, new)],
    }
    done = it.apply(16, 30, after)
    assert not done.held
    wanted = {name: it.silver(name) for name in ("t", "e", "s")}
    assert wanted == {
        "t": [{"id": 2, "a": 2, "n": 8}],
        "e": [new],
        "s": [{**new, "more": 3}, {**new, "more": None}],
    }
    for entry in done.tables.values():
        writer = SilverWriter(it.app, TableToWrite(entry, done.plans[entry.name]), it.times)
        for planned in done.plans[entry.name].phases:
            if isinstance(planned.phase, DdlPhase):
                change_schema(writer, planned)
    assert {name: it.silver(name) for name in ("t", "e", "s")} == wanted


def test_a_statement_at_the_very_moment_of_a_snapshot_is_in_what_was_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet server's view has the commit_ts of the last statement, be it a swap or what silver can't follow."""
    it = Shop(spark, tmp_path, "auto")
    it.ddl(10, "CREATE TABLE a (id INT PRIMARY KEY, v INT)")
    it.ddl(11, "CREATE TABLE b (id INT PRIMARY KEY, w INT)")
    it.ddl(12, "CREATE TABLE c (id INT PRIMARY KEY, f BIT)")
    before: dict[str, Rows] = {"a": [(15, UP, {"id": 1, "v": 1})], "b": [(15, UP, {"id": 2, "w": 2})]}
    assert not it.apply(0, 16, before).held
    it.ddl(20, "RENAME TABLE a TO tmp, b TO a, tmp TO b")
    it.ddl(20, "ALTER TABLE c MODIFY f VARCHAR(9)")
    history = it.app.histories["s"]
    for name in ("a", "b", "c"):
        last = history.versions("d", name)[-1]
        history.add([replace(last, version=last.version + 1, kind="snapshot", ddl="", pos=0, moved=None)])
    monkeypatch.setattr(f"{__name__}.find_moves", lambda *_: [])  # the cut is at the swap: what follows has none
    read = {"a": {"id": 2, "w": 7}, "b": {"id": 1, "v": 7}, "c": {"id": 3, "f": "x"}}
    done = it.apply(19, 30, {name: [(21, UP, row)] for name, row in read.items()})
    assert not done.held
    assert {name: it.silver(name) for name in read} == {name: [row] for name, row in read.items()}
