"""Many windows on one table: the last cost what the first did, and the table is what a dictionary says."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.apply_steps import compact_silver as step
from tests.support.seeds import many
from tests.support.upsert_table import NAME, PATH, UP, Table, changes_of
from tidegate import config
from tidegate.errors import CommitConflict
from tidegate.limits import CHECKPOINT_COMMITS, UPKEEP_SAVED_BYTES_MAX

pytestmark = pytest.mark.spark

# Eight files of one size become one of the next: after 64 windows three sizes lie side by side, and a table that has
# stopped growing goes through all of them again every 64 windows.
WINDOWS = many(136, 260)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_last_of_many_windows_costs_what_the_first_did(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table.create(spark, tmp_path / "lake")
    real = step.compact

    def kept(*arguments: object) -> step.Compaction | None:
        done = real(*arguments)  # type: ignore[arg-type]
        table.compactions += [done] if done else []
        return done

    monkeypatch.setattr(step, "compact", kept)
    random_ = random.Random(5)
    costs = [table.window(changes_of(random_, table.model, number * 100, 80)) for number in range(WINDOWS)]
    table.app.checkpoints.close()
    table.assert_equal()
    assert behind_checkpoint(table) <= 2 * CHECKPOINT_COMMITS, "a reader's cost grows with the log"
    early, late = costs[8:72], costs[-64:]
    cpu = [sum(cost.cpu_seconds for cost in part) / len(part) for part in (early, late)]
    print(
        f"CPU per window {cpu[0]:.3f} -> {cpu[1]:.3f} s; files {max(c.files for c in costs)} at most,"
        f" {costs[-1].files} at the end; probed {max(c.probed for c in early)} -> {max(c.probed for c in late)} bytes;"
        f" {len(table.compactions)} compactions, {sum(c.rows for c in table.compactions)} rows moved for"
        f" {table.rows_written} written"
    )
    assert len(table.model) > 4000
    assert table.compactions
    assert max(cost.files for cost in costs) <= 24
    # Twice what the live rows take, and the few files of late.
    live = sum(file.size for file in table.snapshot().files)
    assert max(cost.probed for cost in late) <= 3 * live
    assert sum(done.rows for done in table.compactions) <= 12 * table.rows_written
    assert cpu[1] <= 2 * cpu[0], "a window costs more and more"


def behind_checkpoint(table: Table) -> int:
    """Commits that a reader has to read one by one, as delta-rs and DuckDB find them."""
    log = Path(table.app.lake.uri(PATH), "_delta_log")
    return table.snapshot().version - int(json.loads((log / "_last_checkpoint").read_text())["version"])


def test_without_upkeep_files_pile_up(spark: SparkSession, tmp_path: Path) -> None:
    """The other side of the promise: the bounds above do fail when nothing is packed."""
    table = Table.create(spark, tmp_path / "lake")
    table.app.pipeline = table.app.pipeline.model_copy(update={"apply": config.Apply(upkeep_bytes=0)})
    random_ = random.Random(5)
    costs = [table.window(changes_of(random_, table.model, number * 100, 20)) for number in range(30)]
    assert costs[-1].files > 24
    table.assert_equal()


def test_a_compaction_that_comes_too_late_is_dropped_and_leaves_no_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table.create(spark, tmp_path / "lake")
    for number in range(9):
        done, _ = table.write([(UP, number * 10 + i, "a") for i in range(10)])
    real = step.rewrite

    def beaten(*arguments: object) -> object:
        found = real(*arguments)  # type: ignore[arg-type]
        spark.sql(f"DELETE FROM delta.`{table.app.lake.spark_uri(PATH)}` WHERE id = 3")
        return found

    monkeypatch.setattr(step, "rewrite", beaten)
    on_disk = set((tmp_path / "lake" / PATH).glob("*.parquet"))
    table.compact(done)
    del table.model[3]
    assert set((tmp_path / "lake" / PATH).glob("*.parquet")) == on_disk
    table.assert_equal()
    monkeypatch.setattr(step, "rewrite", real)
    table.app.memory(step.Upkeep).saved.clear()  # it is looked at as by a new application
    table.compact(done)
    assert len(table.snapshot().files) == 1
    table.assert_equal()


def test_a_window_earns_its_own_share_and_what_was_saved_is_bounded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table.create(spark, tmp_path / "lake")
    budgets: list[object] = []
    monkeypatch.setattr(step, "compact", lambda *arguments: budgets.append(arguments[-1]))
    for number in range(9):
        done, _ = table.write([(UP, number, "a")])
        table.compact(done)
    share = table.app.pipeline.apply.upkeep_bytes
    assert budgets == [share, 5 * share, UPKEEP_SAVED_BYTES_MAX], "after the windows 1, 5 and 9"


def test_a_fault_of_packing_stops_no_window(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = Table.create(spark, tmp_path / "lake")
    done, _ = table.write([(UP, 1, "a")])

    def broken(*_: object) -> None:
        raise CommitConflict("no", where=NAME)

    monkeypatch.setattr(step, "compact", broken)
    table.compact(done)
    assert "d.t: not compacted" in caplog.text
