"""What nobody can follow in a log holds the tables that it may change, for a person to judge; all others go on.

In:  events as servers write them, in bronze.
Out: the steps up to decode, and publish_cut, as apply runs them: no Spark, only the control tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.testing

from spark_jobs.apply_steps.plan_window import catches_up, next_catch_up
from spark_jobs.window.application import Application
from spark_jobs.window.life.following import take_up_selection
from tests.support.event_log import ONE, Log, held
from tests.support.seeds import share
from tests.unit.binlog.encoding import events as e
from tidegate import tables
from tidegate.binlog.format.events import EventType
from tidegate.cli.main import app as command_line
from tidegate.errors import Overtaken, UsageError
from tidegate.lake import control
from tidegate.lake.figures import status
from tidegate.remedy import Needs
from tidegate.schema.replay.history import SchemaHistory

UNFOLLOWED: dict[str, tuple[str, bytes, set[str]]] = {
    "a statement of which nothing is known": ("ALTER SOMETHING x", b"", ONE),
    "a verb that nobody knows": ("FROBNICATE EVERYTHING", b"", {"shop.a", "shop.b"}),
    "an event of an unknown kind": ("", e.event(77, b"x"), ONE),
    "events that the source lost": ("", e.event(EventType.INCIDENT, b"\x01\x00\x00"), ONE),
    "a statement that changes rows, without a name": ("CALL p()", b"", {"shop.a", "shop.b"}),
    "an event that can't be read": ("", e.event(EventType.QUERY, b"\xff" * 20), ONE),
}


@pytest.mark.parametrize("case", share(list(UNFOLLOWED)))
def test_what_nobody_can_follow_holds_what_it_may_change_until_a_person_says_what_it_does(
    case: str, tmp_path: Path
) -> None:
    sql, event, expected = UNFOLLOWED[case]
    log = Log(tmp_path)
    log.level()
    assert held(log.apply()) == set()
    log.send("one", sql, event=event)
    log.send("one", "ALTER TABLE shop.a ADD v INT", ("shop.a",))
    log.send("one", "CREATE TABLE shop.later (id INT PRIMARY KEY)", ("shop.later",))
    log.send("two", "ALTER TABLE two.d ADD v INT", ("two.d",))
    log.level()
    app = log.apply()
    assert held(app) == expected, "neither other sources' tables nor one that came later"
    assert not catches_up(app)
    state = app.states["shop.a"]
    assert state.place is not None
    told = next(row for row in status.table_statuses(log.lake) if row.table == "shop.a")
    assert "tidegate schema judge" in told.way_out
    place = f"{state.place.file}:{state.place.pos}"
    log.run("schema", "judge", str(log.file), "one", place, "--holds", "shop.b", "--by", "ann")
    app = log.apply()
    assert held(app) == {"shop.b"}
    assert [c.name for c in app.histories["one"].versions("shop", "a")[-1].columns] == ["id", "v"], "what came later"
    log.run("schema", "judge", str(log.file), "one", place, "--nothing")
    assert held(log.apply()) == set()
    said = control.read(log.lake, tables.JUDGEMENTS).sort_by("judged_at").to_pylist()
    assert (said[0]["tables"], said[0]["judged_by"], said[-1]["tables"]) == (["shop.b"], "ann", [])


def test_a_statement_holds_what_its_triggers_may_change_unless_the_pipeline_file_says_that_there_are_none(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path, effects="all")
    log.send("one", "UPDATE a SET id = 2")
    log.level()
    app = log.apply()
    assert held(app) == ONE
    assert "ddl.statement_effects: named" in app.states["crm.c"].reason
    log.file.write_text(log.file.read_text().replace("statement_effects: all", "statement_effects: named"))
    for name in sorted(ONE):
        log.run("release", str(log.file), name)
    assert held(log.apply()) == {"shop.a"}


@pytest.mark.parametrize(
    "since",
    [
        ["TRUNCATE TABLE shop.b"],
        ["DROP TABLE shop.b", "CREATE TABLE shop.b (id INT PRIMARY KEY)"],
        ["DROP TABLE shop.b"],
        ["DROP TABLE shop.b", "CREATE VIEW shop.b AS SELECT 1"],
    ],
)
def test_a_table_that_was_emptied_since_is_still_known_to_be_a_table_where_another_one_catches_up(
    since: list[str], tmp_path: Path
) -> None:
    log = Log(tmp_path)
    for sql in ("UPDATE a SET id = 2", "UPDATE b SET id = 2"):
        log.send("one", sql)
    log.level()
    assert held(log.apply()) == {"shop.a", "shop.b"}
    for sql in since:
        log.send("one", sql, ("shop.b",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.a"}
    at = app.states["shop.a"].place
    assert at is not None
    log.run("schema", "judge", str(log.file), "one", f"{at.file}:{at.pos}", "--nothing")
    app = log.apply()
    assert held(app) == set(), app.states["shop.a"].reason


@pytest.mark.parametrize(
    "then", [["DROP TABLE shop.b"], ["DROP TABLE shop.b", "CREATE TABLE shop.b (id INT PRIMARY KEY)"]]
)
def test_a_statement_about_a_table_that_goes_in_the_same_window_holds_no_other(then: list[str], tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.keeps("'shop.a'")
    log.level()
    log.apply()
    log.send("one", "UPDATE b SET id = 2")
    for sql in then:
        log.send("one", sql, ("shop.b",))
    log.level()
    assert held(log.apply()) == set()


def test_a_judgement_needs_a_place_at_which_tables_are_held_and_an_answer(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "FROBNICATE EVERYTHING")
    log.level()
    app = log.apply()
    at = app.states["shop.a"].place
    assert at is not None
    for given, said in (
        ((f"{at.file}:{at.pos}",), "say what it changes"),
        ((f"{at.file}:{at.pos}", "--nothing", "--holds", "a.b"), "say what it changes"),
        ((f"{at.file}:{at.pos}", "--holds", "shop.aa"), "no table shop.aa of one"),
        (("b.000009:4", "--nothing"), f"tables are held at: one {at.file}:{at.pos}"),
    ):
        done = typer.testing.CliRunner().invoke(command_line, ["schema", "judge", str(log.file), "one", *given])
        assert isinstance(done.exception, UsageError)
        assert said in str(done.exception)


def test_rows_of_a_table_without_a_version_are_nothing_that_a_person_can_judge(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", b"", ("shop.old",), event=e.table_map(7, "old", b"\x03", b"") + e.rows(30, 7, 1, b"\0\1\0\0\0"))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.old"}
    at = app.states["shop.old"].place
    assert at is not None
    done = typer.testing.CliRunner().invoke(
        command_line, ["schema", "judge", str(log.file), "one", f"{at.file}:{at.pos}", "--nothing"]
    )
    assert isinstance(done.exception, UsageError)
    assert "DROP and CREATE it at the source" in str(done.exception)
    assert held(log.apply()) == {"shop.old"}


def test_a_change_of_the_selection_that_another_application_recorded_first_is_not_taken_for_ones_own(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    log.level()
    log.apply()
    log.keeps("'shop.*'")
    apps = [log.application() for _ in range(2)]
    for app in apps:
        app.load()
    take_up_selection(apps[0])
    with pytest.raises(Overtaken):
        take_up_selection(apps[1])
    apps[1].reload()
    take_up_selection(apps[1])
    assert apps[1].followed.number == apps[0].followed.number


def test_a_restart_leaves_tables_where_they_are_that_joined_with_the_newest_change_of_the_selection(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    log.keeps("'shop.a'")
    log.level()
    log.apply()
    log.keeps("'shop.*'")
    app = log.apply()
    assert app.states["shop.b"].state == "active", "it caught up"
    again = log.started()
    assert again.states["shop.b"].state == "active"
    assert next_catch_up(again, 0) is None
    log.keeps("'shop.a'")
    assert log.apply().states["shop.b"].state == "left"


def test_a_table_that_caught_up_is_in_the_cut_whatever_was_killed_before_it_was_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path)
    log.keeps("'shop.a'")
    log.level()
    log.apply()
    log.keeps("'shop.*'")
    real = Application.publish

    def killed(app: Application, rows: Any, *given: Any) -> None:
        if not given:
            raise KeyboardInterrupt
        real(app, rows, *given)

    monkeypatch.setattr(Application, "publish", killed)
    with pytest.raises(KeyboardInterrupt):
        log.apply()
    monkeypatch.undo()
    assert log.apply().states["shop.b"].state == "active"
    assert "shop.b" in control.read(log.lake, tables.CUTS)["table"].to_pylist()


def test_a_damaged_segment_with_ddl_holds_the_tables_that_it_names(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "ALTER TABLE shop.a ADD v INT", ("shop.a",), damage=1)
    log.send("one", "ALTER TABLE shop.b ADD v INT", ("shop.b",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.a"}
    assert "CRC-32C" in app.states["shop.a"].reason


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"CREATE VIEW other.v AS SELECT 'caf\xe9'", set()),
        (b"CREATE PROCEDURE p() SELECT 'caf\xe9'", set()),
        (b"CREATE TEMPORARY TABLE shop.a (x INT) /* caf\xe9 */", set()),
        (b"CREATE TEMPORARY TABLE shop.a (x ENUM('caf\xe9'))", set()),
        (b"ALTER TABLE shop.b ADD e ENUM('caf\xe9')", {"shop.b"}),
        (b"DROP TABLE `caf\xe9`", {"shop.a", "shop.b"}),
        (b"TRUNCATE TABLE `caf\xe9`.t", ONE),
        (b"DROP DATABASE `caf\xe9`", ONE),
    ],
)
def test_bytes_that_are_no_text_hold_no_more_than_the_statement_names(
    sql: bytes, expected: set[str], tmp_path: Path
) -> None:
    log = Log(tmp_path)
    log.send("one", sql)
    log.level()
    assert held(log.apply()) == expected


def test_a_fault_of_our_own_at_one_statement_holds_its_table_with_class_and_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path)
    log.send("one", "ALTER TABLE shop.a ADD v INT", ("shop.a",))
    log.send("one", "ALTER TABLE shop.b ADD v INT", ("shop.b",))
    log.level()
    follow = SchemaHistory.follow

    def faulty(self: SchemaHistory, parsed: Any, statement: Any) -> Any:
        if getattr(parsed, "table", None) == ("shop", "a") and hasattr(parsed, "actions"):
            raise IndexError("tuple index out of range")
        return follow(self, parsed, statement)

    monkeypatch.setattr(SchemaHistory, "follow", faulty)
    app = log.apply()
    assert held(app) == {"shop.a"}
    assert "unexpected IndexError: tuple index out of range (test_unfollowed.py:" in app.states["shop.a"].reason
    monkeypatch.undo()
    log.run("release", str(log.file), "shop.a")
    app = log.apply()
    assert held(app) == set()
    assert len(app.histories["one"].versions("shop", "a")[-1].columns) == 2


def test_a_held_table_goes_on_once_it_is_emptied_at_the_source(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "UPDATE a SET id = 2")
    log.send("one", "ALTER TABLE shop.b DROP COLUMN nope", ("shop.b",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.a", "shop.b"}
    assert app.states["shop.a"].needs is Needs.JUDGEMENT
    assert app.states["shop.b"].needs is Needs.COLUMNS, "a TRUNCATE doesn't tell its columns"
    for sql in ("TRUNCATE TABLE shop.a", "TRUNCATE TABLE shop.b"):
        log.send("one", sql, (sql.rsplit(" ", 1)[1],))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.b"}, "its columns aren't known"
    log.send("one", "DROP TABLE shop.b", ("shop.b",))
    log.send("one", "CREATE TABLE shop.b (id INT PRIMARY KEY, v INT)", ("shop.b",))
    log.level()
    assert held(log.apply()) == set()


def test_however_many_tables_go_on_in_a_window_their_states_are_two_commits(tmp_path: Path) -> None:
    """One before silver is written, one before the cut is published."""
    log = Log(tmp_path)
    log.send("one", "UPDATE a SET id = 2")
    log.send("one", "UPDATE b SET id = 2")
    log.level()
    assert held(log.apply()) == {"shop.a", "shop.b"}
    before = control.version(log.lake, tables.TABLE_STATES)
    for name in ("shop.a", "shop.b"):
        log.send("one", f"TRUNCATE TABLE {name}", (name,))
    log.level()
    assert held(log.apply()) == set()
    assert control.version(log.lake, tables.TABLE_STATES) == before + 2
    assert held(log.apply()) == set()
    assert control.version(log.lake, tables.TABLE_STATES) == before + 2, "nothing changed"
