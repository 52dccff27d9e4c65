"""ALTERs that give rows values, change or take columns: by files of ours, without Spark, and once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.merge.schema import change_schema
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.session.failures import TablesFailed
from spark_jobs.window.made import TableToWrite
from spark_jobs.window.shape.shapes import planned_phases, version_changes
from spark_jobs.window.window import TableWindow, Window
from tests.spark_jobs.merge.test_silver_writer import DEL, UP, Done, Rows, Shop
from tests.support.readers import READERS
from tidegate import limits, tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved
from tidegate.delta.table.state import TableState
from tidegate.errors import LakeUnavailable, SchemaMismatch
from tidegate.merge.phases import DdlPhase
from tidegate.table_names import Physical
from tidegate.upsert import reshape as upsert_reshape
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import rewrite

PATH = "silver/d/t"
NEEDS_SPARK = "needs no Spark"

pytestmark = pytest.mark.small_files("apart")


@pytest.fixture
def shop(tmp_path: Path) -> Callable[..., Shop]:
    return lambda **given: Shop(None, tmp_path, "positional", **given)


def silver(it: Shop, table: str = "t", *, system: bool = False) -> list[dict[str, Any]]:
    """The same by all readers."""
    found = {}
    for name, read in READERS.items():
        rows = read(it.app.lake.uri(tables.silver_path("d", table))).to_pylist()
        shown = [{k: row[k] for k in sorted(row) if system or not k.startswith(tables.SYSTEM_PREFIX)} for row in rows]
        found[name] = sorted(shown, key=repr)
    assert found["Polars"] == found["delta-rs"] == found["DuckDB"]
    return found["DuckDB"]


def state(it: Shop, table: str = "t") -> TableState:
    return it.app.lake.log(tables.silver_path("d", table)).state()


def on_disk(it: Shop) -> set[str]:
    return {path.name for path in Path(it.app.lake.uri(PATH)).glob("*.parquet")}


def named(it: Shop) -> set[str]:
    """Every data file that some commit of the table's log names."""
    log = it.app.lake.log(PATH)
    commits = [log.actions(version) or [] for version in range(log.state().version + 1)]
    return {action["add"]["path"] for commit in commits for action in commit if "add" in action}


def two_files(it: Shop) -> None:
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT NOT NULL)")
    rows: Rows = [(11, UP, {"id": number, "a": f"v{number}", "b": number}) for number in range(6)]
    it.apply(0, 13, {"t": rows})
    it.apply(13, 15, {"t": [(14, UP, {"id": 9, "a": None, "b": 9}), (14, DEL, {"id": 2, "a": "v2", "b": 2})]})


def held(done: Done) -> list[str]:
    return [one.reason for one in done.held.values()]


def test_values_types_names_and_columns_that_go_need_no_spark(shop: Callable[..., Shop]) -> None:
    it = shop()
    two_files(it)
    it.ddl(
        20,
        "ALTER TABLE t ADD COLUMN channel VARCHAR(20) NOT NULL DEFAULT 'web' AFTER id, DROP COLUMN a,"
        " RENAME COLUMN b TO bb, MODIFY COLUMN id BIGINT NOT NULL",
    )
    assert not held(it.apply(15, 30, {"t": [(21, UP, {"id": 2**40, "channel": "app", "bb": 1})]}))
    ids = [0, 1, 3, 4, 5, 9]
    assert silver(it) == sorted(
        [
            *({"bb": number, "channel": "web", "id": number} for number in ids),
            {"bb": 1, "channel": "app", "id": 2**40},
        ],
        key=repr,
    )
    assert not any(file.deletion_vector for file in state(it).files)
    assert on_disk(it) == named(it)


def test_a_table_without_a_key_gets_its_hashes_anew_and_keeps_its_rows_findable(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (a VARCHAR(20))")
    it.apply(0, 15, {"t": [(11, UP, {"a": "x"}), (12, UP, {"a": "x"}), (13, UP, {"a": None})]})
    it.ddl(20, "ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 3, CHANGE a aa VARCHAR(30)")
    it.ddl(23, "ALTER TABLE t ADD COLUMN later INT")
    deletes: Rows = [(21, DEL, {"aa": "x", "n": 3}), (24, DEL, {"aa": None, "n": 3, "later": None})]
    assert not held(it.apply(15, 30, {"t": deletes}))
    assert silver(it) == [{"aa": "x", "later": None, "n": 3}]


def test_a_table_without_rows_takes_any_columns(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
    it.apply(0, 15, {})
    it.ddl(20, "ALTER TABLE t DROP COLUMN id, MODIFY COLUMN a INT NOT NULL, ADD PRIMARY KEY (a)")
    assert not held(it.apply(15, 25, {}))
    it.ddl(30, "ALTER TABLE t ADD COLUMN id INT NOT NULL")
    assert not held(it.apply(25, 35, {"t": [(31, UP, {"a": 5, "id": 1})]}))
    assert silver(it) == [{"a": 5, "id": 1}]


def test_not_null_is_believed_where_statistics_know_no_null(shop: Callable[..., Shop]) -> None:
    it = shop()
    it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    it.apply(0, 15, {"t": [(11, UP, {"id": 1, "a": 1, "b": None})]})
    it.ddl(20, "ALTER TABLE t MODIFY COLUMN a INT NOT NULL")
    before = state(it).files
    assert not held(it.apply(15, 25, {}))
    assert state(it).files == before, "nothing is to be written"
    it.ddl(30, "ALTER TABLE t MODIFY COLUMN b INT NOT NULL")
    with pytest.raises(TablesFailed, match=NEEDS_SPARK):
        it.apply(25, 35, {})


def test_wider_shards_and_their_columns_are_followed_without_spark(shop: Callable[..., Shop]) -> None:
    it = shop(routes="[{match: 'd.s_.*', to: d.s}]")
    it.ddl(10, "CREATE TABLE s_1 (id INT PRIMARY KEY, a INT)")
    it.ddl(11, "CREATE TABLE s_2 (id INT PRIMARY KEY, a INT)")
    it.apply(0, 15, {"s_1": [(12, UP, {"id": 1, "a": 1})], "s_2": [(13, UP, {"id": 1, "a": 2})]})
    it.ddl(20, "ALTER TABLE s_2 MODIFY COLUMN a BIGINT, ADD COLUMN n INT NOT NULL DEFAULT 7")
    assert not held(it.apply(15, 30, {}))
    assert silver(it, "s") == [{"a": 1, "id": 1, "n": None}, {"a": 2, "id": 1, "n": 7}]
    it.ddl(31, "ALTER TABLE s_1 ADD COLUMN n INT NOT NULL DEFAULT 8")
    assert not held(it.apply(30, 40, {}))
    assert silver(it, "s") == [{"a": 1, "id": 1, "n": 8}, {"a": 2, "id": 1, "n": 7}]


@pytest.mark.parametrize(
    ("zero_dates", "statement", "why"),
    [
        ("error", "ALTER TABLE t ADD COLUMN d DATE NOT NULL", "column d holds a date"),
        ("error", "ALTER TABLE t ADD COLUMN d DATETIME DEFAULT 0", "column d holds a date"),
        ("error", "ALTER TABLE t ADD COLUMN d DATE NULL, ADD COLUMN e DATE NOT NULL DEFAULT '2024-02-29'", None),
        ("null", "ALTER TABLE t ADD COLUMN d DATE NOT NULL DEFAULT '2024-00-00'", None),
        (
            "null",
            "ALTER TABLE t ADD COLUMN d DATE NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (id, d)",
            "column d of the key holds 0000-00-00",
        ),
    ],
)
def test_an_added_zero_date_holds_its_table_where_one_of_the_log_does(
    shop: Callable[..., Shop], zero_dates: str, statement: str, why: str | None
) -> None:
    it = shop()
    settings = it.app.pipeline.apply.model_copy(update={"zero_dates": zero_dates})
    it.app.pipeline = it.app.pipeline.model_copy(update={"apply": settings})
    two_files(it)
    it.ddl(20, statement)
    reasons = held(it.apply(15, 25, {}))
    assert [why in reason for reason in reasons] == [True] if why else not reasons


@pytest.mark.parametrize("limit", ["RESHAPE_CLUSTER_BYTES", "apply.writer"])
def test_spark_keeps_what_is_too_much_for_one_process_and_what_the_pipeline_file_gives_it(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    it = shop()
    two_files(it)
    if limit == "apply.writer":
        it.app.pipeline = Shop(None, Path(it.app.lake.root), "merge").app.pipeline
    else:
        monkeypatch.setattr(limits, limit, 2 * limits.RESHAPE_FILE_BYTES - 1)
    it.ddl(20, "ALTER TABLE t ADD COLUMN channel VARCHAR(20) NOT NULL DEFAULT 'web'")
    with pytest.raises(TablesFailed, match=NEEDS_SPARK):
        it.apply(15, 25, {})
    assert on_disk(it) == named(it), "nothing was begun"


class Between:
    """Does something right before a commit of columns, or loses its answer. written: files that were written anew."""

    def __init__(self, it: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: list[Callable[[], object]] = []
        self.answer_is_lost = False
        self.written: list[str] = []
        log = it.app.lake.log(PATH)
        commit, write = log.commit, upsert_reshape.Reshaping.written

        def watched(read: TableState, change: Change, **named: Any) -> TableState:
            ours = change.operation == "REPLACE COLUMNS"
            if ours and self.before:
                self.before.pop(0)()
            done = commit(read, change, **named)
            if ours and self.answer_is_lost:
                self.answer_is_lost = False
                raise LakeUnavailable("the connection broke")
            return done

        def counted(turn: Any, lake: Any, path: str, file: Any) -> Any:
            self.written.append(file.path)
            return write(turn, lake, path, file)

        monkeypatch.setattr(log, "commit", watched)
        monkeypatch.setattr(upsert_reshape.Reshaping, "written", counted)


def test_what_another_commit_left_as_it_is_is_not_written_again(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = shop()
    two_files(it)
    between, log = Between(it, monkeypatch), it.app.lake.log(PATH)

    def packed() -> None:
        """One of the two files is moved by somebody else."""
        read = state(it)
        files = [file for file in read.files if file.deletion_vector]
        adds = rewrite(it.app.lake, PATH, files, FileLayout.of(read, ("id",)))
        log.commit(read, Change(moved(files, adds, data_change=False), "OPTIMIZE"))

    between.before = [packed, packed]
    it.ddl(20, "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7")
    assert not held(it.apply(15, 25, {}))
    assert [(row["id"], row["c"]) for row in sorted(silver(it), key=lambda row: row["id"])] == [
        (number, 7) for number in (0, 1, 3, 4, 5, 9)
    ]
    assert len(between.written) == 3, "the file with a deletion vector, which became another, and once the other one"
    assert on_disk(it) == named(it), "what was written in vain is gone"


def test_of_two_applies_one_gives_the_values(shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = shop(), shop()
    two_files(one)
    for it in (one, other):
        if it is other:
            it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT NOT NULL)")
        it.ddl(20, "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7")
    between = Between(one, monkeypatch)
    later: Rows = [(21, UP, {"id": 1, "a": "new", "b": 1, "c": 1})]
    between.before = [lambda: other.apply(15, 30, {"t": later})]
    assert not held(one.apply(15, 30, {"t": later}))
    rows = {row["id"]: row["c"] for row in silver(one)}
    assert rows == {0: 7, 1: 1, 3: 7, 4: 7, 5: 7, 9: 7}, "the value that came since stays"
    assert on_disk(one) == named(one)


def test_an_application_that_is_behind_brings_back_no_column_that_went_since(shop: Callable[..., Shop]) -> None:
    one, other = shop(), shop()
    for it in (one, other):
        it.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
        it.ddl(20, "ALTER TABLE t ADD COLUMN c INT")
    other.ddl(30, "ALTER TABLE t DROP COLUMN c")
    assert not held(other.apply(0, 40, {"t": [(31, UP, {"id": 1, "a": 1})]}))
    one.app.positions.forget_applied("d.t")
    window = Window(0, 25, [])
    entry = window.taking.tables["d.t"] = TableWindow(
        "d.t", "d", "t", routed=False, after_ts=15, physical={Physical("s", "d", "t")}
    )
    changes = version_changes(one.app, entry, 25)
    (planned,) = (found for found in planned_phases(one.app, entry, changes, 25) if isinstance(found.phase, DdlPhase))
    change_schema(SilverWriter(one.app, TableToWrite(entry), {}), planned)
    assert silver(other) == [{"a": 1, "id": 1}]


def test_a_commit_whose_answer_was_lost_is_not_made_again(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = shop()
    two_files(it)
    between = Between(it, monkeypatch)
    between.answer_is_lost = True
    it.ddl(20, "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7")
    with pytest.raises(TablesFailed, match="the connection broke"):
        it.apply(15, 25, {})
    version = state(it).version
    written = len(between.written)
    assert not held(it.apply(15, 25, {}))
    assert (state(it).version, len(between.written)) == (version, written)
    assert {row["c"] for row in silver(it)} == {7}
    assert on_disk(it) == named(it), "files of a commit whose fate isn't known are let be"


def test_no_commit_names_a_file_that_a_vacuum_may_have_deleted(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = shop()
    two_files(it)
    monkeypatch.setattr(limits, "COMMIT_SECONDS_MAX", -3600)  # all files are as old as that
    it.ddl(20, "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7")
    with pytest.raises(TablesFailed, match=NEEDS_SPARK):
        it.apply(15, 25, {})
    assert on_disk(it) == named(it)


def test_a_file_that_somebody_else_wrote_with_other_values_is_left_to_spark(
    shop: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = shop()
    two_files(it)
    changed, seen = upsert_reshape.Reshaping._changed, []

    def refused(turn: Any, rows: Any) -> Any:
        if seen:
            raise SchemaMismatch("a value that doesn't fit", remedy="none")
        seen.append(rows)
        return changed(turn, rows)

    monkeypatch.setattr(upsert_reshape.Reshaping, "_changed", refused)
    it.ddl(20, "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7")
    with pytest.raises(TablesFailed, match=NEEDS_SPARK):
        it.apply(15, 25, {})
    assert on_disk(it) == named(it)
