"""What the policies on DDL hold, what an approval lets go, and what is ignored: no Spark, only the planning."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.apply_steps.judge_ddl import judge_ddl
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.shape.moves import find_moves
from spark_jobs.window.shape.shapes import version_changes
from spark_jobs.window.window import TableWindow, Window
from tests.kit.spark import no_spark
from tidegate import config
from tidegate.errors import ConfigError
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.follow.kinds import ddl_kinds
from tidegate.schema.replay.history import SNAPSHOT, SchemaHistory
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place, Standing
from tidegate.table_names import Physical
from tidegate.tables import State

CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b CHAR(3))"
# What the policies of a pipeline file are of: kinds of statements, but for this one.
KINDS = config.Ddl.model_fields.keys() - {
    "unlogged_cascades",
    "unlogged_generated",
    "session_values",
    "statement_effects",
}
STATEMENTS = {
    "ALTER TABLE t ADD c INT, ADD INDEX (a)": ["add_column"],
    "ALTER TABLE t DROP a": ["drop_column"],
    "ALTER TABLE t CHANGE a z BIGINT": ["rename_column", "change_type"],
    "ALTER TABLE t MODIFY b CHAR(3) CHARACTER SET utf8mb4": ["change_type"],
    "ALTER TABLE t DROP PRIMARY KEY": ["change_key"],
    "ALTER TABLE t DROP PRIMARY KEY, DROP id, ADD PRIMARY KEY (a)": ["drop_column", "change_key"],
    "ALTER TABLE t MODIFY a INT FIRST": [],
    "ALTER TABLE t COMMENT 'x', ADD UNIQUE (b)": [],
    "TRUNCATE t": ["truncate"],
    "DROP TABLE t": ["drop_table"],
    "RENAME TABLE t TO u": ["rename_table"],
    "ALTER TABLE t DROP PARTITION p": ["drop_partition"],
    "ALTER TABLE t TRUNCATE PARTITION p": ["drop_partition"],
    "ALTER TABLE t TRUNCATE PARTITION ALL": ["truncate"],
    "ALTER TABLE t CONVERT PARTITION p TO TABLE u": ["move_partition"],
    CREATE.replace("CREATE", "CREATE OR REPLACE"): [],
}


def _history(*statements: str) -> SchemaHistory:
    history = SchemaHistory("s")
    for number, sql in enumerate((CREATE, *statements), 1):
        history.replay(DdlStatement(sql, "d", 0, 10 * number, "b.000001", 100 * number, 0, "utf8mb4", "11.4.5-MariaDB"))
    return history


@pytest.mark.parametrize("sql", STATEMENTS)
def test_each_statement_is_of_the_kinds_that_the_policies_name(sql: str) -> None:
    versions = _history(sql).versions("d", "t")
    found = [ddl_kinds(old, new) for old, new in itertools.pairwise(versions)]
    assert found == ([STATEMENTS[sql]] if len(versions) > 1 else [])
    assert len(versions) > 1 or not STATEMENTS[sql]
    assert {kind for kinds in STATEMENTS.values() for kind in kinds} == KINDS
    assert ddl_kinds(None, versions[0]) == []


@pytest.mark.parametrize("sql", [sql for sql in STATEMENTS if sql.startswith("ALTER TABLE t")])
def test_columns_that_silver_does_not_have_are_no_policys_concern(sql: str) -> None:
    versions = _history(sql).versions("d", "t")
    apart = {column.id for version in versions for column in version.columns}
    kinds = {kind for old, new in itertools.pairwise(versions) for kind in ddl_kinds(old, new, apart)}
    assert kinds == {*STATEMENTS[sql]} - {"add_column", "drop_column", "rename_column", "change_type"}


def _app(folder: Path, policies: str, *statements: str) -> Application:
    text = f"pipeline: shop\nlake: {{path: {folder}}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\n"
    text += f"tables: {{include: ['d.*']}}\nddl: {policies}\n"
    lake = LakeFiles(str(folder))
    app = Application(BackgroundSession(no_spark), config.parse(text, where="shop.yaml"), lake, BronzeIndex(lake))
    app.histories["s"] = _history(*statements)
    return app


def _judged(app: Application, after_ts: int = 10) -> Window:
    window = Window(after_ts, 99, [])
    for table in ("t", "other"):
        entry = TableWindow(
            f"d.{table}", "d", table, routed=False, after_ts=after_ts, physical={Physical("s", "d", table)}
        )
        window.taking.tables[entry.name] = entry
    window.taking.moves = find_moves(app, after_ts, 99)
    judge_ddl(app, window)
    return window


def _approved(place: Place | None) -> Standing:
    assert place is not None
    return Standing(State.RELEASED, applied_ts=10, place=place, approved_ts=place.at_ts)


def test_a_statement_that_is_asked_for_holds_its_table_until_a_person_has_approved_it(tmp_path: Path) -> None:
    app = _app(
        tmp_path, "{drop_column: ask}", "ALTER TABLE t ADD c INT", "ALTER TABLE t DROP a", "ALTER TABLE t DROP b"
    )
    window = _judged(app)
    assert window.tables.keys() == {"d.other"}
    state = window.held["d.t"]
    assert state.cause == Cause.DDL_ASKS
    assert state.place == Place("s", "d", "t", "b.000001", 300, 30, "ALTER TABLE t DROP a")
    for words in ("d.t at b.000001:300 of s", "drop_column", "ALTER TABLE t DROP a"):
        assert words in state.reason
    app.states["d.t"] = _approved(state.place)
    later = _judged(app).held["d.t"]
    assert later.place is not None
    assert later.place.ddl == "ALTER TABLE t DROP b", "the next statement is asked for by itself"
    app.states["d.t"] = _approved(later.place)
    assert _judged(app).held == {}
    app.states["d.t"] = Standing(State.RELEASED, applied_ts=10, place=later.place)
    assert "d.t" in _judged(app).held, "a release for another reason approves nothing"


def test_stop_holds_whatever_was_approved_and_the_strictest_of_several_kinds_counts(tmp_path: Path) -> None:
    app = _app(tmp_path, "{change_type: stop, rename_column: ask}", "ALTER TABLE t CHANGE a z BIGINT")
    state = _judged(app).held["d.t"]
    assert state.cause == Cause.DDL_STOPS
    assert "ddl.change_type is stop" in state.reason
    app.states["d.t"] = _approved(state.place)
    assert _judged(app).held["d.t"].cause == Cause.DDL_STOPS


@pytest.mark.parametrize("kind", ["rename_table", "drop_column"])
def test_a_rename_is_asked_for_once_and_for_the_columns_that_it_changes_too(kind: str, tmp_path: Path) -> None:
    app = _app(tmp_path, f"{{{kind}: ask}}", "ALTER TABLE t DROP a, RENAME TO other")
    held = _judged(app).held
    assert held.keys() == {"d.t", "d.other"}
    (asks,) = [name for name, state in held.items() if state.cause == Cause.DDL_ASKS]
    assert kind in held[asks].reason
    (waits,) = held.keys() - {asks}
    assert f"{asks}, which is held" in held[waits].reason
    app.states[asks] = _approved(held[asks].place)
    app.states[waits] = Standing(State.RELEASED, applied_ts=10)
    assert _judged(app).held == {}


def test_what_is_ignored_is_no_change_of_the_table_and_what_follows_it_is(tmp_path: Path) -> None:
    app = _app(
        tmp_path, "{truncate: ignore, drop_table: ignore}", "TRUNCATE t", "ALTER TABLE t ADD c INT", "DROP TABLE t"
    )
    window = _judged(app)
    assert window.held == {}
    changes = version_changes(app, window.tables["d.t"], 99)
    assert [(old.kind if old else "", new.ddl) for old, new in changes] == [("truncate", "ALTER TABLE t ADD c INT")]


def test_a_statement_at_a_snapshots_own_moment_is_behind_it_but_where_it_gave_rows_away(tmp_path: Path) -> None:
    """A quiet server's view has the commit_ts of the last statement: what was read knows of it."""
    app = _app(tmp_path, "{add_column: ask, rename_table: stop}", "ALTER TABLE t ADD c INT", "RENAME TABLE t TO other")
    history = app.histories["s"]
    altered = history.versions("d", "t")[1]
    begun = replace(altered, version=altered.version + 1, kind=SNAPSHOT, ddl="", file="", pos=0)
    assert _judged(app).held["d.t"].cause == Cause.DDL_ASKS

    app.histories["s"] = _history("ALTER TABLE t ADD c INT")
    app.histories["s"].add([begun])
    window = _judged(app)
    assert window.held == {}
    assert version_changes(app, window.tables["d.t"], 99) == [(altered, begun)], "its rows have the column already"

    renamed = history.versions("d", "t")[-1]
    app.histories["s"] = history
    history.add([replace(begun, version=renamed.version + 1, commit_ts=renamed.commit_ts)])
    changes = version_changes(app, window.tables["d.t"], 99)
    assert [new.kind for _, new in changes] == ["alter", "rename", SNAPSHOT], "other takes its rows"


@pytest.mark.parametrize("kind", sorted(KINDS - {"truncate", "drop_table", "drop_partition"}))
def test_ignore_is_refused_where_later_rows_would_not_fit(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"shop.yaml:5: ddl\.{kind}: .*ignore can't be right"):
        _app(tmp_path, f"{{{kind}: ignore}}")
    with pytest.raises(ConfigError, match="known keys here: add_column, "):
        _app(tmp_path, "{add_colum: ask}")
