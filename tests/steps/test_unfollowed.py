"""What nobody can follow in a log holds the tables that it may change, for a person to judge; all others go on.

In:  events as servers write them, in bronze.
Out: the steps up to decode, and publish_cut, as apply runs them: no Spark, only the control tables.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer.testing

from spark_jobs.application import HELD, Application
from spark_jobs.background import BackgroundSession
from spark_jobs.following import take_up_selection
from spark_jobs.steps.decode_changes import decode_changes
from spark_jobs.steps.judge_ddl import judge_ddl
from spark_jobs.steps.plan_window import catches_up, next_catch_up, next_window, plan_window
from spark_jobs.steps.publish_cut import publish_cut
from spark_jobs.steps.replay_schema_history import replay_schema_history
from spark_jobs.table_moves import hold_partners
from tests.support.spark import no_spark
from tests.unit.binlog import encode as e
from tests.unit.binlog.support import segment
from tidegate import config, tables
from tidegate.binlog.events import EventType
from tidegate.cli.main import app as command_line
from tidegate.commit_ts import compose
from tidegate.errors import UsageError
from tidegate.lake import control, status
from tidegate.lake.bronze import Bronze
from tidegate.lake.bronze_index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.schema.columns import TableVersion
from tidegate.schema.history import SchemaHistory
from tidegate.tables import EVERY_TABLE, SegmentFlag

CREATES = [f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in ("shop.a", "shop.b", "crm.c")]


class Log:
    """A pipeline of two sources, `one` and `two`, and what they send: every statement or event a transaction."""

    def __init__(self, folder: Path, server: str = "11.4.5-MariaDB-log", effects: str = "named") -> None:
        self.server = server
        self.lake = LakeFiles(str(folder / "lake"))
        self.file = folder / "road.yaml"
        self.file.write_text(
            f"pipeline: road\nlake: {{path: {self.lake.root}}}\n"
            "sources: {one: {conn_id: c, flavour: mariadb}, two: {conn_id: c, flavour: mariadb}}\n"
            "tables: {include: ['shop.*', 'crm.*', 'two.*']}\napply: {writer: merge, driver_decode_bytes: 1000000}\n"
            f"ddl: {{statement_effects: {effects}}}\n"
        )
        self._ends = {"one": (0, 4, 0), "two": (0, 4, 0)}
        defaults = (1, 0, "b.000001", 4, "defaults", "", (), (), "utf8mb4")
        rows = [TableVersion(source, "", "", *defaults).to_row() for source in self._ends]
        control.append(self.lake, tables.SCHEMA_HISTORY, rows)
        for sql in CREATES:
            self.send("one", sql)
        self.send("two", "CREATE TABLE two.d (id INT PRIMARY KEY)")

    def send(
        self,
        source: str,
        sql: str | bytes,
        names: tuple[str, ...] = (EVERY_TABLE,),
        *,
        event: bytes = b"",
        damage: int = 0,
    ) -> None:
        """A QUERY event with this text, or another event in a transaction, in a segment of its own."""
        seq, position, before = self._ends[source]
        number = sum(end[0] for end in self._ends.values()) + 1
        seconds = 1000 + number
        payload = e.mariadb_gtid(number, standalone=not event, seconds=seconds)
        payload += event + e.xid() if event else e.query(sql, "shop", seconds=seconds)
        made = segment(e.format_description(version=self.server), payload, start_pos=position, prev_commit_ts=before)
        ts = compose(seconds * 1000)
        made = replace(
            made, source=source, seq=seq + 1, file="b.000001", tables=names, flags=SegmentFlag.HAS_DDL,
            min_commit_ts=ts, max_commit_ts=ts, resolved_ts=ts, payload_crc32c=made.payload_crc32c ^ damage,
        )  # fmt: skip
        Bronze(self.lake, source).append([made])
        self._ends[source] = (seq + 1, position + len(payload), ts)

    def apply(self) -> Application:
        """A fresh application, until nothing is left to do."""
        app = Application(BackgroundSession(no_spark), config.load(self.file), self.lake, BronzeIndex(self.lake))
        app.load()
        take_up_selection(app)
        while True:
            app.index.refresh(app.cut_ts)
            window = next_catch_up(app, 0) or next_window(app)
            if window is None:
                return app
            for step in (plan_window, replay_schema_history, judge_ddl, decode_changes):
                step(app, window)
            hold_partners(app, window, window.moves)  # as merge_into_silver begins
            publish_cut(app, window)

    def keeps(self, include: str, exclude: str = "") -> None:
        """Rewrite the pipeline file's patterns."""
        head, _, tail = self.file.read_text().partition("tables: ")
        self.file.write_text(
            f"{head}tables: {{include: [{include}], exclude: [{exclude}]}}\n{tail.partition(chr(10))[2]}"
        )

    def level(self) -> None:
        """Both sources have come as far: the cut covers all that was sent."""
        for source in sorted(self._ends, key=lambda name: self._ends[name][2]):
            self.send(source, "FLUSH STATUS", ())
        self.send("one", "FLUSH STATUS", ())

    def run(self, *arguments: str) -> str:
        done = typer.testing.CliRunner().invoke(command_line, [*arguments])
        assert done.exit_code == 0, done.output
        return done.output


def held(app: Application) -> set[str]:
    return {name for name, state in app.states.items() if state.state == HELD}


ONE = {"shop.a", "shop.b", "crm.c"}
UNFOLLOWED: dict[str, tuple[str, bytes, set[str]]] = {
    "a statement of which nothing is known": ("ALTER SOMETHING x", b"", ONE),
    "a verb that nobody knows": ("FROBNICATE EVERYTHING", b"", {"shop.a", "shop.b"}),
    "an event of an unknown kind": ("", e.event(77, b"x"), ONE),
    "events that the source lost": ("", e.event(EventType.INCIDENT, b"\x01\x00\x00"), ONE),
    "a statement that changes rows, without a name": ("CALL p()", b"", {"shop.a", "shop.b"}),
    "an event that can't be read": ("", e.event(EventType.QUERY, b"\xff" * 20), ONE),
}


@pytest.mark.parametrize("case", UNFOLLOWED)
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


def test_a_table_that_was_emptied_since_is_still_known_to_be_a_table_where_another_one_catches_up(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    for sql in ("UPDATE a SET id = 2", "UPDATE b SET id = 2"):
        log.send("one", sql)
    log.level()
    assert held(log.apply()) == {"shop.a", "shop.b"}
    log.send("one", "TRUNCATE TABLE shop.b", ("shop.b",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.a"}
    at = app.states["shop.a"].place
    assert at is not None
    log.run("schema", "judge", str(log.file), "one", f"{at.file}:{at.pos}", "--nothing")
    app = log.apply()
    assert held(app) == set(), app.states["shop.a"].reason


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
    for reason in (app.states[name].reason for name in held(app)):
        assert "TRUNCATE" in reason or "schema judge" in reason
    for sql in ("TRUNCATE TABLE shop.a", "TRUNCATE TABLE shop.b"):
        log.send("one", sql, (sql.rsplit(" ", 1)[1],))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.b"}, "its columns aren't known"
    log.send("one", "DROP TABLE shop.b", ("shop.b",))
    log.send("one", "CREATE TABLE shop.b (id INT PRIMARY KEY, v INT)", ("shop.b",))
    log.level()
    assert held(log.apply()) == set()


def test_a_held_table_that_gave_its_rows_to_another_is_not_mended_by_a_new_one_of_its_name(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "UPDATE a SET id = 2")
    log.send("one", "RENAME TABLE shop.a TO shop.old", ("shop.a", "shop.old"))
    log.send("one", "CREATE TABLE shop.a (id INT PRIMARY KEY)", ("shop.a",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.a", "shop.old"}, "what it gave lacks what the statement changed"
    log.send("one", "TRUNCATE TABLE shop.a", ("shop.a",))
    log.level()
    assert held(log.apply()) == {"shop.a", "shop.old"}


@pytest.mark.parametrize(
    ("sql", "damage"),
    [
        (b"ALTER TABLE other.t DROP COLUMN nope", 0),
        (b"ALTER TABLE other.t ADD e ENUM('caf\xe9')", 0),
        (b"ALTER TABLE other.t ADD v FANCY", 0),
        (b"ALTER SOMETHING x", 0),
        (b"RENAME TABLE shop.nope TO shop.there, other.t TO other.u", 0),
        (b"ALTER TABLE other.t ADD v INT", 1),
    ],
)
def test_a_statement_that_was_not_followed_while_nobody_kept_its_table_counts_once_somebody_does(
    sql: bytes, damage: int, tmp_path: Path
) -> None:
    log = Log(tmp_path)
    for text in ("CREATE TABLE other.t (id INT PRIMARY KEY)", sql, "TRUNCATE TABLE other.t"):
        log.send("one", text, ("other.t",) if damage else (EVERY_TABLE,), damage=damage if text is sql else 0)
    log.level()
    assert "other.t" not in held(log.apply())
    log.keeps("'other.*'")
    app = log.apply()
    assert "other.t" in held(app)
    assert "drop and create it at the source" in app.states["other.t"].reason
    log.send("one", "TRUNCATE TABLE other.t", ("other.t",))
    log.level()
    assert "other.t" in held(log.apply()), "which says nothing of its columns"
    log.send("one", "DROP TABLE other.t", ("other.t",))
    log.send("one", "CREATE TABLE other.t (id INT PRIMARY KEY)", ("other.t",))
    log.level()
    assert "other.t" not in held(log.apply())


def test_a_table_that_is_left_while_a_statement_waits_is_not_believed_when_it_comes_back(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "ALTER TABLE shop.b DROP COLUMN nope", ("shop.b",))
    log.level()
    assert held(log.apply()) == {"shop.b"}
    log.keeps("'shop.*', 'crm.*', 'two.*'", "'shop.b'")
    log.send("one", "TRUNCATE TABLE shop.b", ("shop.b",))
    log.level()
    assert log.apply().states["shop.b"].state == "left"
    log.keeps("'shop.*', 'crm.*', 'two.*'")
    log.send("one", "TRUNCATE TABLE shop.b", ("shop.b",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.b"}
    assert "drop and create it" in app.states["shop.b"].reason
    log.send("one", "DROP TABLE shop.b", ("shop.b",))
    log.send("one", "CREATE TABLE shop.b (id INT PRIMARY KEY, v INT)", ("shop.b",))
    log.level()
    assert held(log.apply()) == set()


def test_a_table_that_an_if_not_exists_may_have_found_there_is_not_believed_once_it_is_emptied(tmp_path: Path) -> None:
    log = Log(tmp_path, server="10.5.9-MariaDB-log")
    log.send("one", "CREATE TABLE IF NOT EXISTS shop.new (id INT PRIMARY KEY)", ("shop.new",))
    log.send("one", "TRUNCATE TABLE shop.new", ("shop.new",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.new"}
    assert "DROP and CREATE it" in app.states["shop.new"].reason
    assert "TRUNCATE" not in app.states["shop.new"].reason
