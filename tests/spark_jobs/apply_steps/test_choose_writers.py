"""A table's window is planned once: its phases, who writes it, and the silver that has to be there before decode."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from spark_jobs.apply_steps.choose_writers import choose_writers
from spark_jobs.apply_steps.prepare_silver import prepare_silver
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.plan import TablePlan, TableWriter
from spark_jobs.window.shape.moves import find_moves
from spark_jobs.window.shape.shapes import version_changes
from spark_jobs.window.window import TableWindow, Window
from tidegate import config, limits, tables
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.merge.phases import DdlPhase, RowsPhase
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.replay.history import SchemaHistory
from tidegate.table_names import Physical
from tidegate.tables import State

CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT)"


def planned(
    folder: Path, writer: str, *statements: tuple[int, str]
) -> tuple[Application, Window, dict[str, TablePlan]]:
    """The window (0, 50] over these statements, up to prepare_silver."""
    text = (
        f"pipeline: shop\nlake: {{path: {folder}}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\n"
        "tables: {include: ['d.*'], history: [d.kept], routes: [{match: 'd.s_.*', to: d.s}]}\n"
        f"apply: {{writer: {writer}}}\n"
    )
    lake = LakeFiles(str(folder))
    nobody_asks = BackgroundSession(lambda: cast("Any", None))
    app = Application(nobody_asks, config.parse(text, where="shop.yaml"), lake, BronzeIndex(lake))
    history = app.histories["s"] = SchemaHistory("s")
    for commit_ts, sql in statements:
        history.replay(
            DdlStatement(sql, "d", 0, commit_ts, "b.000001", commit_ts, 0, "utf8mb4", server_version="9.7.0")
        )
    window = Window(0, 50, [])
    for database, table in history.tables():
        *pair, routed = app.names.logical(database, table)
        name = app.names.logical_name(database, table)
        entry = window.taking.tables.setdefault(name, TableWindow(name, pair[0], pair[1], routed, after_ts=0))
        entry.physical.add(Physical("s", database, table))
    window.taking.moves = find_moves(app, 0, 50)
    plans = choose_writers(
        app, window, (), {name: version_changes(app, entry, 50) for name, entry in window.tables.items()}
    )
    prepare_silver(app, window, plans)
    return app, window, plans


def created(app: Application, table: str) -> bool:
    return app.lake.log(tables.silver_path("d", table)).state().created


def test_a_window_is_cut_at_each_statement_and_each_phase_knows_silvers_columns(tmp_path: Path) -> None:
    _, _, plans = planned(tmp_path, "positional", (10, CREATE), (20, "ALTER TABLE t ADD n INT"))
    plan = plans["d.t"]
    kinds = [(type(it.phase), it.phase.upto_ts) for it in plan.phases]
    assert kinds == [(RowsPhase, 9), (DdlPhase, 10), (RowsPhase, 19), (DdlPhase, 20), (RowsPhase, 50)]
    named = [[column.name for column in it.shape.columns] if it.shape else None for it in plan.phases]
    assert named == [None, ["id", "a"], ["id", "a"], ["id", "a", "n"], ["id", "a", "n"]]
    before = [it.before.columns if it.before else None for it in plan.phases if isinstance(it.phase, DdlPhase)]
    assert before[0] is None
    assert [column.name for column in before[1] or ()] == ["id", "a"]
    assert plan.target is not None
    assert [phase.upto_ts for phase in plan.target.phases] == [19, 50]


@pytest.mark.parametrize(
    ("sql", "writer"),
    [(CREATE, TableWriter.POSITIONAL), ("CREATE TABLE t (a INT)", TableWriter.COUNTED)],
)
def test_a_new_table_that_goes_by_position_is_made_before_its_rows_are_decoded(
    tmp_path: Path, sql: str, writer: TableWriter
) -> None:
    app, _, plans = planned(tmp_path, "positional", (10, sql))
    assert plans["d.t"].writer is writer
    assert created(app, "t")


def test_a_table_with_its_history_goes_by_position_unless_its_window_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = (10, CREATE.replace("TABLE t", "TABLE kept"))
    _, _, plans = planned(tmp_path / "small", "positional", create)
    assert plans["d.kept"].writer is TableWriter.VERSIONED
    monkeypatch.setattr(limits, "VERSIONED_BYTES_MAX", -1)
    _, _, plans = planned(tmp_path / "large", "positional", create)
    assert (plans["d.kept"].writer, plans["d.kept"].why) == (TableWriter.MERGE, "history, and much to change")


def test_merge_makes_its_tables_itself_and_choosing_writes_nothing(tmp_path: Path) -> None:
    app, _, plans = planned(tmp_path, "merge", (10, CREATE))
    plan = plans["d.t"]
    assert (plan.writer, plan.target, len(plan.phases)) == (TableWriter.MERGE, None, 3)
    assert not created(app, "t")


def test_tables_that_a_rename_links_go_together_by_merge(tmp_path: Path) -> None:
    _, _, plans = planned(tmp_path, "positional", (10, CREATE), (20, "RENAME TABLE t TO u"))
    assert {plan.writer for plan in plans.values()} == {TableWriter.LINKED}
    assert plans["d.t"].links | {"d.t"} == plans["d.u"].links | {"d.u"} == {"d.t", "d.u"}


def test_shards_that_do_not_fit_together_are_held_and_the_others_are_planned(tmp_path: Path) -> None:
    shards = [
        (11, "CREATE TABLE s_1 (id INT PRIMARY KEY, a INT)"),
        (12, "CREATE TABLE s_2 (id INT PRIMARY KEY, a DATE)"),
    ]
    app, window, _ = planned(tmp_path, "positional", (10, CREATE), *shards)
    assert {name: state.state for name, state in window.held.items()} == {"d.s": State.HELD}
    assert "column a is date here and int in another shard" in window.held["d.s"].reason
    assert set(window.tables) == {"d.t"}
    assert not created(app, "s")
