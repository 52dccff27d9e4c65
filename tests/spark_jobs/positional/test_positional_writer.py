"""The positional writer beside MERGE: who is chosen, how much is probed where, and what becomes of staged files."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.positional import probe
from spark_jobs.session.background import BackgroundSession
from spark_jobs.session.failures import TablesFailed
from spark_jobs.window.application import Application
from spark_jobs.window.plan import MergeOnly
from tests.spark_jobs.merge.test_silver_writer import DEL, UP, Rows, Shop
from tests.support.key_indexes import of_small_files
from tidegate import tables
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict
from tidegate.tables import State
from tidegate.upsert.cost import KEY_RECORD_BYTES

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Callable[..., Shop]:
    return lambda writer="auto", **given: Shop(spark, tmp_path, writer, **given)


def operations(it: Shop, table: str) -> list[str]:
    """The table's history, oldest first."""
    commits = DeltaTable(it.app.lake.uri(tables.silver_path("d", table))).history()
    return [commit["operation"] for commit in reversed(commits)]


def data_files(it: Shop, table: str) -> set[str]:
    return {path.name for path in Path(it.app.lake.uri(tables.silver_path("d", table))).rglob("part-*.parquet")}


def many(count: int, commit_ts: int, **row: Any) -> Rows:
    return [(commit_ts, UP, {"id": i, "a": f"v{i}"} | row) for i in range(count)]


def keyed(it: Shop, count: int = 0) -> Shop:
    """d.t with a key, and in it `count` rows up to 20."""
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
    if count:
        it.apply(0, 20, {"t": many(count, 12)})
    return it


def test_tables_with_a_key_and_without_go_by_position(shop: Callable[..., Shop]) -> None:
    it = keyed(shop())
    it.ddl(11, "CREATE TABLE bag (a VARCHAR(20))")
    window = it.apply(0, 30, {"t": many(3, 12), "bag": [(13, UP, {"a": "x"})]})
    assert operations(it, "t")[-1] == "UPSERT"
    assert operations(it, "bag")[-1] == "UPSERT"
    assert window.writers() == "2 by position"


def test_equal_rows_without_a_key_are_counted_by_both_writers(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE bag (a VARCHAR(20), n INT)")
    rng, bag, low = random.Random(5), Counter[tuple[str, int | None]](), 10
    for number in range(6):
        changes: Rows = []
        for at in range(40):
            value = (rng.choice("xyz"), rng.choice([1, None]))
            op = DEL if bag[value] and rng.random() < 0.5 else UP
            bag[value] += 1 if op == UP else -1
            changes.append((low + 1 + at, op, {"a": value[0], "n": value[1]}))
        # The same window by MERGE, now and then: both must leave what the other can go on from.
        it.app.memory(MergeOnly)["d.bag"] = "" if number % 3 else "odd"
        it.apply(low, low + 50, {"bag": changes})
        low += 50
        assert Counter((row["a"], row["n"]) for row in it.silver("bag")) == +bag
    assert set(operations(it, "bag")[-6:]) == {"MERGE", "UPSERT"}


def test_what_a_spark_job_probes_is_what_the_driver_would(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = keyed(shop())
    it.ddl(11, "CREATE TABLE u (id INT PRIMARY KEY, a VARCHAR(20))")
    for number in range(3):
        low = 20 * number
        it.apply(low, low + 20, {"t": many(50, low + 15), "u": many(9, low + 15)})
    monkeypatch.setattr("spark_jobs.positional.probe.PROBE_DRIVER_ROWS_MAX", 0)
    monkeypatch.setattr(BackgroundSession, "is_local", lambda _: False)
    monkeypatch.setattr("spark_jobs.positional.probe.PROBE_TASK_ROWS", 60)
    gone: Rows = [(70, DEL, {"id": i, "a": ""}) for i in range(0, 50, 2)]
    it.apply(60, 80, {"t": [*gone, (71, UP, {"id": 4, "a": "back"})], "u": many(3, 71, a="new")})
    assert sorted(row["id"] for row in it.silver("t")) == sorted([4, *range(1, 50, 2)])
    assert {row["a"] for row in it.silver("u") if row["id"] < 3} == {"new"}
    assert len(it.silver("u")) == 9


def test_windows_are_right_by_indexes_while_others_rewrite_the_table(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_small_files(monkeypatch, 0)
    it, rng = keyed(shop()), random.Random(5)
    uri, rows = it.app.lake.uri(tables.silver_path("d", "t")), dict[int, str]()
    rewrites = ["OPTIMIZE delta.`{}`", "VACUUM delta.`{}`", "REORG TABLE delta.`{}` APPLY (PURGE)", ""]
    for number in range(8):
        low = 20 * (number + 1)
        changes: Rows = []
        for at in range(15):
            key, op = rng.randrange(40), rng.choice([UP, UP, DEL])
            changes.append((low + 1 + at, op, {"id": key, "a": f"w{number}"}))
            rows = {k: a for k, a in rows.items() if k != key} | ({key: f"w{number}"} if op == UP else {})
        it.apply(low, low + 20, {"t": changes})
        it.app.earlier.indexes.wait()
        assert {row["id"]: row["a"] for row in it.silver("t")} == rows
        if statement := rewrites[number % len(rewrites)]:
            it.app.spark.sql(statement.format(uri))
    assert len(it.app.earlier.indexes)
    assert "MERGE" not in operations(it, "t")


def test_files_with_an_index_are_not_for_a_spark_job(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_small_files(monkeypatch, 0)
    monkeypatch.setattr("spark_jobs.positional.probe.PROBE_DRIVER_ROWS_MAX", 0)
    monkeypatch.setattr(BackgroundSession, "is_local", lambda _: False)
    of_jobs = list[int]()
    in_workers = probe._in_workers

    def counted(app: Application, parts: list[probe.Probe]) -> None:
        of_jobs.append(sum(len(part.files) for part in parts))
        in_workers(app, parts)

    monkeypatch.setattr(probe, "_in_workers", counted)
    it = keyed(shop(), 30)
    for number in range(3):
        low = 20 * (number + 1)
        it.apply(low, low + 20, {"t": [(low + 1, UP, {"id": 3, "a": f"w{number}"})]})
        it.app.earlier.indexes.wait()
        assert [row["a"] for row in it.silver("t") if row["id"] == 3] == [f"w{number}"]
    assert of_jobs == [1, 1, 1], "the first file, then each window's new one"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("ALTER TABLE delta.`{}` ADD COLUMNS (mine STRING)", "column mine is not in the source"),
        ("ALTER TABLE delta.`{}` ADD CONSTRAINT small CHECK (id < 1000)", "it has a CHECK constraint"),
        ("ALTER TABLE delta.`{}` SET TBLPROPERTIES ('delta.enableChangeDataFeed'='true')", "change data feed is on"),
    ],
)
def test_a_table_that_an_owner_changed_goes_by_merge_and_stays_right(
    shop: Callable[..., Shop], change: str, why: str
) -> None:
    it = keyed(shop(), 3)
    it.app.spark.sql(change.format(it.app.lake.uri("silver/d/t")))
    window = it.apply(20, 40, {"t": [(21, UP, {"id": 1, "a": "new"}), (22, DEL, {"id": 2, "a": ""})]})
    assert why in window.writers()
    assert [(row["id"], row["a"]) for row in it.silver("t")] == [(0, "v0"), (1, "new")]


def test_a_change_that_comes_between_choice_and_commit_gives_the_table_to_merge(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = keyed(shop(), 3)
    before = data_files(it, "t")
    monkeypatch.setattr("spark_jobs.positional.writer.why_not", lambda _: "somebody switched something on")
    gave = it.apply(20, 40, {"t": many(2, 21, a="new")})
    assert data_files(it, "t") == before, "what was staged is gone"
    (state,) = gave.held.values()
    assert (state.state, state.applied_ts, gave.tables) == (State.RELEASED, 20, {}), "it catches up from there"
    assert "somebody switched something on" in state.reason
    window = it.apply(20, 40, {"t": many(2, 21, a="new")})
    assert window.writers() == "by MERGE: d.t (somebody switched something on)"
    assert [row["a"] for row in it.silver("t")] == ["new", "new", "v2"]


def test_more_keys_than_the_driver_may_hold_go_by_merge_the_largest_table_first(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
    it.ddl(11, "CREATE TABLE u (id INT PRIMARY KEY, a VARCHAR(20))")
    it.apply(0, 15, {})  # tables whose window holds DDL are written one by one
    monkeypatch.setattr("tidegate.limits.UPSERT_KEYS_BYTES_MAX", 10 * KEY_RECORD_BYTES)
    changes = {"t": many(9, 17), "u": many(3, 17)}
    held = it.apply(15, 20, changes).held
    assert {name: state.state for name, state in held.items()} == {"d.t": State.RELEASED}
    assert "keys of 9 changes" in held["d.t"].reason
    assert [row["id"] for row in it.silver("u")] == [0, 1, 2], "it fits, and doesn't wait"
    assert it.silver("t") == []
    assert it.apply(15, 18, {"t": changes["t"][:6]}, below=True).writers() == "1 by an earlier try; 1 by position"
    assert [row["id"] for row in it.silver("t")] == list(range(6))


def test_a_transaction_with_more_keys_than_the_driver_may_hold_goes_by_merge_alone(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = keyed(shop(), 1)
    monkeypatch.setattr("tidegate.limits.UPSERT_KEYS_BYTES_MAX", 5 * KEY_RECORD_BYTES)
    assert it.apply(20, 40, {"t": many(9, 22)}, below=True).held["d.t"].applied_ts == 20
    window = it.apply(20, 40, {"t": many(9, 22)}, below=True)
    assert window.writers() == "by MERGE: d.t (keys of 9 changes need 1 MiB of the driver)"
    assert len(it.silver("t")) == 9
    it.apply(40, 60, {"t": many(2, 42, a="new")})
    assert operations(it, "t")[-2:] == ["MERGE", "UPSERT"], "the next window goes by position again"


@pytest.mark.parametrize(
    ("table", "key", "limit"),
    [
        ("kept", " PRIMARY KEY", "VERSIONED_DECODED_BYTES_MAX"),
        ("bag", "", "HASHED_ROWS_DECODED_BYTES_MAX"),
    ],
)
def test_more_rows_than_the_driver_may_hold_go_by_merge_once_they_are_decoded(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch, table: str, key: str, limit: str
) -> None:
    it = shop(soft_delete="[], history: ['d.kept']")
    it.ddl(10, f"CREATE TABLE {table} (id INT{key}, a VARCHAR(20))")
    it.apply(0, 20, {table: many(2, 12)})
    with monkeypatch.context() as small:
        small.setattr(f"tidegate.limits.{limit}", 100)
        held = it.apply(20, 40, {table: many(9, 22, a="new")}, below=True).held[f"d.{table}"]
        assert (held.state, held.applied_ts) == (State.RELEASED, 20)
        assert "its 9 changes need 1 MiB of the driver" in held.reason
        assert len(it.silver(table)) == 2, "nothing of it is written"
        window = it.apply(20, 40, {table: many(9, 22, a="new")}, below=True)
        assert window.writers() == f"by MERGE: d.{table} (its 9 changes need 1 MiB of the driver, more than 0)"
    it.apply(40, 60, {table: many(1, 42, a="newer")})
    assert len(it.silver(table)) == 12
    assert operations(it, table)[-2:] == ["MERGE", "UPSERT"], "the next window goes by position again"


def test_a_conflict_is_probed_again_on_the_new_version(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = keyed(shop(), 9)
    log = it.app.lake.log("silver/d/t")
    commit, calls = log.commit, []

    def disturbed(*given: Any, **named: Any) -> TableState:
        calls.append(1)
        if len(calls) == 1:  # an analyst's UPDATE of a row that the window changes too
            it.app.spark.sql(f"UPDATE delta.`{it.app.lake.uri('silver/d/t')}` SET a = 'mine' WHERE id IN (1, 8)")
        return commit(*given, **named)

    monkeypatch.setattr(log, "commit", disturbed)
    it.apply(20, 40, {"t": many(3, 21, a="new")})
    assert len(calls) == 2
    assert [row["a"] for row in it.silver("t")] == ["new"] * 3 + ["v3", "v4", "v5", "v6", "v7", "mine"]


def test_a_conflict_without_end_stops_the_try_and_leaves_no_file(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = keyed(shop(), 3)
    before = data_files(it, "t")

    def conflict(*_: Any, **__: Any) -> TableState:
        raise CommitConflict("somebody is always first", where="d.t")

    monkeypatch.setattr(it.app.lake.log("silver/d/t"), "commit", conflict)
    monkeypatch.setattr("spark_jobs.positional.writer.CONFLICT_WAIT", 0)
    with pytest.raises(TablesFailed, match="somebody is always first"):
        it.apply(20, 40, {"t": many(3, 21, a="new")})
    assert data_files(it, "t") == before


def test_a_partitioned_silver_table_keeps_its_partitions(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), day DATE)")
    uri = it.app.lake.uri("silver/d/t")
    it.app.spark.sql(
        f"CREATE TABLE delta.`{uri}` (id INT, a STRING, day DATE, _tg_commit_ts BIGINT) USING delta"
        " PARTITIONED BY (day) TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
    )
    days = ["2026-01-01", "2026-01-02", None]
    rows: Rows = [(12, UP, {"id": i, "a": f"v{i}", "day": _date(days[i % 3])}) for i in range(9)]
    it.apply(0, 20, {"t": rows})
    moved: Rows = [(21, UP, {"id": 0, "a": "moved", "day": _date(days[1])}), (22, DEL, {"id": 4, "a": "", "day": None})]
    it.apply(20, 40, {"t": moved})
    assert operations(it, "t")[-2:] == ["MERGE", "UPSERT"], "partitioned, and with DDL in its window: by MERGE"
    found = {row["id"]: (row["a"], str(row["day"])) for row in it.silver("t")}
    assert found == {0: ("moved", days[1])} | {i: (f"v{i}", str(days[i % 3])) for i in range(1, 9) if i != 4}
    assert {path.name for path in Path(uri).rglob("day=*") if path.is_dir()} == {
        "day=2026-01-01", "day=2026-01-02", "day=__HIVE_DEFAULT_PARTITION__",
    }  # fmt: skip


def _date(text: str | None) -> Any:
    from datetime import date

    return date.fromisoformat(text) if text else None
