"""Other people write to silver between probe and commit: a try on the new version, or a clear stop; no row is lost.

In:  windows by the positional writer into one table; an analyst's statement right before each commit.
Out: the rows that the statement and the window, one after the other, leave.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.positional import writer as positional_writer
from spark_jobs.session.failures import TablesFailed
from tests.spark_jobs.merge.test_silver_writer import Done, Shop
from tidegate import tables
from tidegate.delta.object_names import commit_name
from tidegate.delta.table.actions import commit_info, lines
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict, LakeUnavailable
from tidegate.limits import COMMIT_ATTEMPTS_MAX
from tidegate.tables import State

pytestmark = pytest.mark.spark
UP, DEL = tables.OP_UPSERT, tables.OP_DELETE


class Analyst:
    """Runs a statement before each commit of the application, or after it in place of its answer."""

    def __init__(self, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shop = Shop(spark, folder, "positional")
        self.shop.ddl(1, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
        self.table = f"delta.`{self.shop.app.lake.uri('silver/d/t')}`"
        self.spark = spark
        self.before: list[str] = []  # one for each commit
        self.attempts = 0
        self.answer_is_lost = self.overwrites = False
        self.now = 10
        log = self.shop.app.lake.log("silver/d/t")
        commit = log.commit

        def watched(*args: Any, **named: Any) -> TableState:
            self.attempts += 1
            if self.before:
                self.session.sql(self.before.pop(0).format(t=self.table))
            done = commit(*args, **named)
            if self.overwrites:
                self.overwrites = False
                log.store.replace(commit_name(done.version), lines([commit_info("OPTIMIZE", "theirs")]))
            if self.answer_is_lost:
                self.answer_is_lost = False
                raise LakeUnavailable("the connection broke")
            return done

        monkeypatch.setattr(log, "commit", watched)
        monkeypatch.setattr(positional_writer, "CONFLICT_WAIT", 0.01)

    @cached_property
    def session(self) -> SparkSession:
        """The analyst's own."""
        return self.spark.newSession()

    def window(self, upserts: dict[int, str], deletes: tuple[int, ...] = ()) -> Done:
        """A window of its own; when it fails, again() takes the same changes."""
        low, self.now = self.now, self.now + 10
        self.changes = [(low + 1, UP, {"id": i, "a": a}) for i, a in upserts.items()]
        self.changes += [(low + 2, DEL, {"id": i, "a": ""}) for i in deletes]
        self.attempts = 0
        return self.again()

    def again(self) -> Done:
        return self.shop.apply(self.now - 10, self.now, {"t": self.changes})

    def rows(self) -> dict[int, str]:
        found = self.shop.silver("t")
        assert len({row["id"] for row in found}) == len(found), f"a key twice: {found}"
        return {row["id"]: row["a"] for row in found}


@pytest.fixture
def analyst(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Analyst:
    it = Analyst(spark, tmp_path, monkeypatch)
    it.window(dict.fromkeys(range(10), "first"))
    return it


def test_optimize_delete_and_insert_between_probe_and_commit_are_followed_by_another_try(analyst: Analyst) -> None:
    it = analyst
    wanted = dict.fromkeys(range(10), "first")
    it.window({1: "second"})
    wanted[1] = "second"
    for statement, effect in (
        ("OPTIMIZE {t}", lambda rows: rows),
        ("DELETE FROM {t} WHERE id IN (2, 5)", lambda rows: {i: a for i, a in rows.items() if i not in (2, 5)}),
        # Rows that the source doesn't have: theirs stays, and of a key that the window writes there is one.
        (
            "INSERT INTO {t} (id, a, _tg_commit_ts) VALUES (50, 'analyst', 3), (60, 'analyst', 3)",
            lambda rows: {**rows, 50: "analyst", 60: "analyst"},
        ),
    ):
        it.before = [statement]
        window = it.window({2: statement[:6], 3: statement[:6], 60: statement[:6]}, deletes=(4, 6))
        assert it.attempts == 2, statement
        wanted = {**effect(wanted), 2: statement[:6], 3: statement[:6], 60: statement[:6]}
        wanted = {i: a for i, a in wanted.items() if i not in (4, 6)}
        assert it.rows() == wanted, statement
        assert window.versions["d.t"] > 0


def test_a_lost_answer_doubles_nothing(analyst: Analyst) -> None:
    it = analyst
    it.answer_is_lost = True
    with pytest.raises(TablesFailed) as caught:
        it.window({1: "second", 20: "new"}, deletes=(2,))
    assert isinstance(caught.value.failures["d.t"], LakeUnavailable)
    it.again()
    assert it.rows() == {i: "first" for i in range(10) if i not in (1, 2)} | {1: "second", 20: "new"}
    assert it.attempts == 1, "the second try found the first one's version and wrote nothing"


def test_a_commit_that_an_analyst_overwrites_holds_the_table_where_silver_is(analyst: Analyst) -> None:
    """Delta's own store looks whether a version is free, then writes it over whatever came in between."""
    analyst.window({1: "second"})
    analyst.overwrites = True
    window = analyst.window({1: "third", 2: "third"})
    held = window.held["d.t"]
    assert (held.fault, held.applied_ts) == ("CommitOverwritten", analyst.now - 10)
    assert (analyst.rows()[1], analyst.rows()[2]) == ("second", "first")


def test_a_table_that_changes_before_every_commit_is_given_up_for_now_and_whole(analyst: Analyst) -> None:
    it = analyst
    it.before = ["ALTER TABLE {t} SET TBLPROPERTIES ('note'='" + str(i) + "')" for i in range(COMMIT_ATTEMPTS_MAX)]
    with pytest.raises(TablesFailed) as caught:
        it.window({1: "second"})
    assert isinstance(caught.value.failures["d.t"], CommitConflict)
    assert it.attempts == COMMIT_ATTEMPTS_MAX
    assert it.rows() == dict.fromkeys(range(10), "first")
    it.again()
    assert it.rows() == dict.fromkeys(range(10), "first") | {1: "second"}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {t} ADD COLUMNS (note STRING)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed'='true')",
        "ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 1000)",
    ],
)
def test_what_only_merge_can_write_catches_up_by_merge(analyst: Analyst, statement: str) -> None:
    it = analyst
    it.before = [statement]
    (state,) = it.window({1: "second"}, deletes=(2,)).held.values()
    assert state.state is State.RELEASED
    assert "MERGE takes it" in state.reason
    assert it.rows() == dict.fromkeys(range(10), "first")
    assert it.again().plans["d.t"].target is None, "by MERGE"
    assert it.rows() == {i: "first" for i in range(10) if i not in (1, 2)} | {1: "second"}
