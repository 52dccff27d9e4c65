"""XA branches on the whole road: rows are in silver exactly from their answer on."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.testing
from pyspark.sql import SparkSession

from tests.integration.lake.test_rebuild import rebuilt
from tests.kit.road import Road
from tests.support import seeds
from tests.support.driver import killed
from tests.support.servers import ROOT, FreshDatabase
from tests.support.sessions import wait_for_end
from tidegate import config, tables
from tidegate.cli.main import app as command_line
from tidegate.lake import control
from tidegate.local.server import Server
from tidegate.mysql.facts.branches import prepared_branches
from tidegate.mysql.stream.cutter import Cutter
from tidegate.standing.causes import Cause

pytestmark = [pytest.mark.server, pytest.mark.spark]


def prepare(server: Server, database: str, xid: str, *statements: str) -> None:
    """XA START to PREPARE in a session that ends then; xid as SQL has it."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        for sql in (f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}"):
            cursor.execute(sql)
    wait_for_end(server, connection.thread_id())


def answer(server: Server, xid: str, *, commit: bool) -> None:
    server.query(f"XA {'COMMIT' if commit else 'ROLLBACK'} {xid}")


@pytest.fixture
def answered(any_server: Server, fresh_database: FreshDatabase) -> Iterator[None]:
    """The account may look for branches; none of a failed test stays prepared, as its tables could not go."""
    del fresh_database  # goes after this
    accounts = any_server.query("SELECT user, host FROM mysql.user WHERE user = %s", (any_server.user,))
    grants = accounts if any_server.flavour == "mysql" else []
    for account in grants:
        any_server.query("GRANT XA_RECOVER_ADMIN ON *.* TO %s@%s", account)
    yield
    for account in grants:
        any_server.query("REVOKE XA_RECOVER_ADMIN ON *.* FROM %s@%s", account)
    with any_server.connect() as connection, connection.cursor() as cursor:
        for name in prepared_branches(cursor):
            cursor.execute(f"XA ROLLBACK {name}")


def prewrites_in(road: Road) -> list[tuple[str, str]]:
    rows = control.newest(road.lake, tables.PREWRITES, by=tables.PREWRITES.key, order=["answer_ts", "recorded_at"])
    return sorted((row["id"], row["state"]) for row in rows.to_pylist())


@pytest.mark.usefixtures("answered")
def test_rows_of_a_branch_are_there_from_its_commit_on_and_in_no_window_before(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road.begun(
        any_server,
        tmp_path,
        database,
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))",
        "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(20))",
        "CREATE TABLE nokey (v VARCHAR(20))",
        "INSERT INTO a VALUES (1, 'before'), (2, 'before')",
    )
    prepare(any_server, database, "'one'", "UPDATE a SET v = 'one' WHERE id = 1", "INSERT INTO nokey VALUES ('one')")
    prepare(any_server, database, "X'00ff27','b',7", "INSERT INTO b VALUES (1, 'binary')")
    prepare(any_server, database, "'gone'", "UPDATE a SET v = 'gone' WHERE id = 2")
    any_server.query(f"INSERT INTO {database}.a VALUES (3, 'between')")
    road.capture()
    app = road.apply(spark)
    assert not app.states, "nobody is held"
    assert road.assert_equal() == {"a": 3, "b": 0, "nokey": 0} or road.assert_equal() == {"a": 3}
    assert [state for _, state in prewrites_in(road)] == ["open"] * 3
    answer(any_server, "'gone'", commit=False)
    any_server.query(f"UPDATE {database}.a SET v = 'after gone' WHERE id = 2")
    any_server.query("FLUSH BINARY LOGS")
    answer(any_server, "X'00ff27','b',7", commit=True)
    road.capture()
    app = road.apply(spark)
    assert not app.states
    counts = road.assert_equal()
    assert (counts["a"], counts["b"]) == (3, 1)
    answer(any_server, "'one'", commit=True)
    any_server.query(f"UPDATE {database}.a SET v = concat(v, ' and later') WHERE id = 1")
    road.capture()
    app = road.apply(spark)
    assert not app.states
    assert road.assert_equal() == {"a": 3, "b": 1, "nokey": 1}
    assert sorted(state for _, state in prewrites_in(road)) == ["committed", "committed", "rolled_back"]
    with any_server.connect(database) as connection, connection.cursor() as cursor:  # in one segment, in one phase
        for xid in ("'s1'", "'s2'", "'s3'"):
            cursor.execute(f"XA START {xid}")
            cursor.execute("INSERT INTO nokey VALUES ('x'), ('x')")
            cursor.execute("UPDATE a SET v = %s WHERE id = 1", (xid,))
            cursor.execute(f"XA END {xid}")
            if xid == "'s3'":
                cursor.execute(f"XA COMMIT {xid} ONE PHASE")
                continue
            cursor.execute(f"XA PREPARE {xid}")
            cursor.execute(f"XA {'ROLLBACK' if 's2' in xid else 'COMMIT'} {xid}")
    road.capture()
    app = road.apply(spark)
    assert not app.states
    assert road.assert_equal() == {"a": 3, "b": 1, "nokey": 5}
    assert len(prewrites_in(road)) == 3, "what its own segment answers isn't recorded"
    ledger = control.read(road.lake, tables.LEDGER).to_pylist()
    for row in ledger:
        assert row["decoded_bytes"] + row["ignored_bytes"] + row["quarantined_bytes"] == row["payload_bytes"], row
    assert len({(row["source"], row["seq"], row["cut_ts"]) for row in ledger}) == len(ledger)
    for table in ("a", "nokey"):
        assert rebuilt(road, spark, f"{database}.{table}")[:2] == (0, "equal"), table


class Branches:
    """Random branches beside plain writes. No statement meets a key that an open branch has locked."""

    def __init__(self, server: Server, database: str, seed: int) -> None:
        self.server = server
        self.database = database
        self.random = random.Random(seed)
        self.open: dict[str, set[int]] = {}
        self.rows: dict[int, bool] = dict.fromkeys(range(40), False)  # key -> whether it is there for sessions to see
        self.later: dict[str, dict[int, bool]] = {}
        self.count = 0

    def step(self) -> None:
        choice = self.random.random()
        if choice < 0.35:
            self._prepare()
        elif choice < 0.6 and self.open:
            self.answer(self.random.choice(sorted(self.open)), commit=self.random.random() < 0.65)
        elif choice < 0.65:
            self.server.query("FLUSH BINARY LOGS")
        else:
            statements, seen = self._writes(1)
            self._run(statements)
            self.rows |= seen

    def answer(self, xid: str, *, commit: bool) -> None:
        answer(self.server, xid, commit=commit)
        del self.open[xid]
        if commit:
            self.rows |= self.later.pop(xid)

    def _prepare(self) -> None:
        self.count += 1
        names = [f"'b{self.count}'", f"X'00{self.count:04x}ff',X'27',{self.count}", f"'same{self.count % 2}'"]
        xid = self.random.choice(names)
        if xid in self.open:
            return
        statements, seen = self._writes(self.random.randrange(1, 4))
        if self.random.random() < 0.3:
            statements += [f"INSERT INTO nokey VALUES ('{'x' * 3000}')"] * 4  # larger than a segment
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            for sql in (f"XA START {xid}", *statements, f"XA END {xid}"):
                cursor.execute(sql)
            if self.random.random() < 0.15:
                cursor.execute(f"XA COMMIT {xid} ONE PHASE")
                self.rows |= seen
                return
            cursor.execute(f"XA PREPARE {xid}")
        wait_for_end(self.server, connection.thread_id())
        self.open[xid], self.later[xid] = set(seen), seen

    def _writes(self, count: int) -> tuple[list[str], dict[int, bool]]:
        free = sorted(self.rows.keys() - set().union(*self.open.values()))
        statements, seen = ["INSERT INTO nokey VALUES ('a')"], dict[int, bool]()
        for key in self.random.sample(free, min(count, len(free))):
            there, value = self.rows[key], f"{self.count}.{self.random.random()}"
            if not there:
                statements.append(f"INSERT INTO k VALUES ({key}, '{value}')")
            elif self.random.random() < 0.4:
                statements.append(f"DELETE FROM k WHERE id = {key}")
            else:
                statements.append(f"UPDATE k SET v = '{value}' WHERE id = {key}")
            seen[key] = not there or not statements[-1].startswith("DELETE")
        return statements, seen

    def _run(self, statements: list[str]) -> None:
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            for sql in statements:
                cursor.execute(sql)
            connection.commit()


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("answered")
def test_random_branches_over_captures_applies_and_kills_are_the_sources_rows_at_each_look(
    any_server: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Cutter._begin, "__defaults__", (4096,))  # transactions are cut, too
    database = fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.file.write_text(road.text.replace("land_seconds: 0.1", "land_seconds: 0.1, segment_bytes: 4096"))
    road.pipeline = config.load(road.file)
    road.capture()
    for sql in ("k (id INT PRIMARY KEY, v VARCHAR(40))", "nokey (v VARCHAR(3000))"):
        any_server.query(f"CREATE TABLE {database}.{sql}")
    branches = Branches(any_server, database, seeds.seed())
    for point in ("apply_after_prewrites", "", "apply_before_commit", "apply_after_commit", "apply_before_publish", ""):
        for _ in range(14):
            branches.step()
        if point:
            branches.server.query(f"INSERT INTO {database}.nokey VALUES ('for the kill')")
        road.capture()
        if point == "apply_after_prewrites" or (point and branches.count):
            killed(spark, road.file, point)
            branches.step()
            road.capture()
        app = road.apply(spark)
        assert not app.states, app.states
        road.assert_equal()
    for xid in sorted(branches.open):
        branches.answer(xid, commit=True)
    road.capture()
    app = road.apply(spark)
    assert not app.states, app.states
    road.assert_equal()
    assert {state for _, state in prewrites_in(road)} == {"committed", "rolled_back"}
    recorded = control.read(road.lake, tables.PREWRITES).to_pylist()
    assert any(row["began_seq"] < row["ended_seq"] for row in recorded), "some are larger than a segment"


def orphaned(server: Server, database: str, xid: str, *statements: str) -> None:
    """A branch that the log prepares, and that goes without a word: the session that answers it writes no log."""
    prepare(server, database, xid, *statements)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"XA ROLLBACK {xid}")


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("answered")
def test_an_orphan_is_asked_of_the_source_and_waits_for_a_person(
    any_server: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.file.write_text(road.text + "xa: {orphan_timeout_seconds: 2}\n")
    road.pipeline = config.load(road.file)
    road.capture()
    for table in "ab":
        any_server.query(f"CREATE TABLE {database}.{table} (id INT PRIMARY KEY, v VARCHAR(20))")
    any_server.query(f"INSERT INTO {database}.a VALUES (1, 'before')")
    orphaned(any_server, database, "'lost'", "UPDATE a SET v = 'lost' WHERE id = 1")
    prepare(any_server, database, "'here'", "INSERT INTO b VALUES (1, 'here')")
    road.capture_silence(6)
    any_server.query(f"INSERT INTO {database}.a VALUES (2, 'later')")
    road.capture_silence(6)
    app = road.apply(spark)
    assert sorted(state for _, state in prewrites_in(road)) == ["open", "parked"], "what is still prepared stays open"
    assert {name: state.cause for name, state in app.states.items()} == {f"{database}.a": Cause.PARKED}
    assert road.assert_equal() == {"b": 0} or road.assert_equal() == {}
    lost = next(name for name, state in prewrites_in(road) if state == "parked")
    runner = typer.testing.CliRunner()
    monkeypatch.setenv("TIDEGATE_HOME", str(ROOT))
    listed = runner.invoke(command_line, ["prewrites", str(road.file)])
    assert f"parked  one  {lost}" in listed.output, listed.output
    shown = json.loads(runner.invoke(command_line, ["status", str(road.file), "--json"]).stdout.splitlines()[-1])
    waiting = {(each["state"], each["id"]): each["tables"] for each in shown["prewrites"]}
    assert waiting["parked", lost] == [f"{database}.a"]
    assert sorted(state for state, _ in waiting) == ["open", "parked"]
    decided = runner.invoke(command_line, ["prewrites", str(road.file), "--rollback", lost])
    assert decided.exit_code == 0, decided.output
    answer(any_server, "'here'", commit=True)
    monkeypatch.undo()
    road.capture()
    app = road.apply(spark)
    assert {name: state.state for name, state in app.states.items()} == {f"{database}.a": "active"}
    assert road.assert_equal() == {"a": 2, "b": 1}


def test_a_commit_of_what_the_log_never_prepared_holds_the_tables_of_its_source_by_name(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database, *(f"CREATE TABLE {t} (id INT PRIMARY KEY)" for t in "ab"))
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for sql in ("SET sql_log_bin = 0", "XA START 'u'", "INSERT INTO a VALUES (1)", "XA END 'u'", "XA PREPARE 'u'"):
            cursor.execute(sql)
    wait_for_end(mariadb, connection.thread_id())
    answer(mariadb, "'u'", commit=True)
    mariadb.query(f"INSERT INTO {database}.b VALUES (1)")
    road.capture()
    app = road.apply(spark)
    assert {name: state.cause for name, state in app.states.items()} == {
        f"{database}.a": Cause.EVENT_NOT_READ,
        f"{database}.b": Cause.EVENT_NOT_READ,
    }
    assert "has no XA PREPARE in bronze" in app.states[f"{database}.b"].reason
