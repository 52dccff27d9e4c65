"""tidegate check against real servers: what it refuses, which tables will be held, what it warns of; exit codes.

In:  databases with tables of every kind that matters, before and after the first capture.
Out: findings, as JSON and as lines.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.kit.decoding import segment
from tests.support.servers import FreshDatabase
from tidegate.cli import main
from tidegate.config import load
from tidegate.connections import from_environment
from tidegate.errors import LakeRefused, SourceRefused
from tidegate.home import EXIT_ERROR, EXIT_TRANSIENT
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.control.rows import append
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import Selection, pipeline_of, rows_of
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo, connect
from tidegate.mysql.facts.server_facts import read_facts
from tidegate.mysql.servers.same_server import check_apart
from tidegate.mysql.start.baseline import read_baseline
from tidegate.mysql.start.recorded import Began, record_baseline
from tidegate.pipelines import capture_run
from tidegate.tables import FOLLOWED

pytestmark = pytest.mark.server

CONNECTION = "AIRFLOW_CONN_CHECKED"


class Checked:
    """A pipeline file for one database, and `tidegate check` of it in this process."""

    def __init__(
        self, tmp: Path, server: Server, database: str, patch: pytest.MonkeyPatch, caught: pytest.CaptureFixture[str]
    ) -> None:
        self.server, self.database, self.lake = server, database, LakeFiles(str(tmp / "lake"))
        self.file = tmp / "p.yaml"
        self.patch, self.caught = patch, caught
        self.write()
        self.log_in(server.password)

    def write(self, start: str = "now", include: str = "", snapshot: str = "auto") -> None:
        include = include or f"{self.database}.*"
        self.file.write_text(
            f"pipeline: p\nlake: {{path: {self.lake.root}}}\n"
            f"sources: {{main: {{conn_id: checked, flavour: {self.server.flavour}, start: {start}}}}}\n"
            f"tables: {{include: ['{include}']}}\nsnapshot: {{mode: {snapshot}}}\n"
        )

    def log_in(self, password: str) -> None:
        where = f"{self.server.host}:{self.server.port}"
        self.patch.setenv(CONNECTION, f"mysql://{quote(self.server.user)}:{quote(password)}@{where}/")

    def run(self, *words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main.run(["check", str(self.file), *words])
        told = self.caught.readouterr()
        assert told.err == ""
        return int(ended.value.code or 0), told.out

    def begin(self) -> None:
        """The baseline of a first start."""
        pipeline, info = load(self.file), ConnectionInfo.from_env("checked")
        with connect(info) as connection:
            facts = read_facts(connection, info)
            began = Began.of(facts, pipeline.sources["main"])
            versions = read_baseline(connection, "main", pipeline.tables.keeps, began.position)
            record_baseline(self.lake, "main", versions, began)

    def findings(self) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        """The exit code, and findings by verdict."""
        code, out = self.run("--json")
        found: dict[str, list[dict[str, Any]]] = {}
        for line in json.loads(out)["findings"]:
            found.setdefault(line["verdict"], []).append(line)
        return code, found


@pytest.fixture
def checked(
    any_server: Server,
    fresh_database: FreshDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Checked:
    return Checked(tmp_path, any_server, fresh_database(any_server), monkeypatch, capsys)


def test_tables_that_cannot_have_their_mode_are_named(checked: Checked) -> None:
    keys = ("PRIMARY KEY", "PRIMARY KEY", "", "PRIMARY KEY")
    for name, key in zip(("fit", "s_1", "keyless", "twice"), keys, strict=True):
        checked.server.query(f"CREATE TABLE {name} (a INT {key})", database=checked.database)
    modes = f"history: ['{checked.database}.*'], soft_delete: ['{checked.database}.twice']"
    route = f"routes: [{{match: '{checked.database}.s_.', to: '{checked.database}.s'}}]"
    text = checked.file.read_text()
    assert "tables: {" in text
    checked.file.write_text(text.replace("tables: {", f"tables: {{{modes}, {route}, "))
    code, found = checked.findings()
    (line,) = found["held"]
    assert (code, line["text"]) == (EXIT_ERROR, "held with this mode")
    reasons = dict(name.removeprefix(f"{checked.database}.").split(" (", 1) for name in line["tables"])
    assert reasons.keys() == {"keyless", "twice"}, "a shard has a history"
    assert "without a key" in reasons["keyless"]
    assert "take it out of one of them" in reasons["twice"]


def test_what_will_be_held_and_what_the_binlog_does_not_show_is_named_before_the_first_capture(
    checked: Checked,
) -> None:
    for statement in (
        "CREATE TABLE good (a INT PRIMARY KEY)",
        "CREATE TABLE full (a INT PRIMARY KEY)",
        "INSERT INTO full VALUES (1)",
        "CREATE TABLE keyless (a INT)",
        "CREATE TABLE volatile_one (a INT PRIMARY KEY) ENGINE=MEMORY",
        "CREATE TABLE child (a INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES good (a) ON DELETE CASCADE)",
    ):
        checked.server.query(statement, database=checked.database)
    _, found = checked.findings()
    told = {line["text"]: line["tables"] for line in found["note"]}
    (full,) = [names for text, names in told.items() if "a snapshot reads them by itself" in text]
    assert full == [f"{checked.database}.full"]
    checked.write(snapshot="manual")
    code, found = checked.findings()
    assert code == EXIT_ERROR, "a table will be held"
    assert "refused" not in found
    waits, *unlogged = found["held"]
    assert waits["tables"] == [f"{checked.database}.full"]
    told = {line["text"].split(":")[0]: line["tables"] for line in found["caution"]}
    assert told["no key"] == [f"{checked.database}.keyless"]
    assert told["engine MEMORY"] == [f"{checked.database}.volatile_one"]
    cascades = [name for line in unlogged for name in line["tables"]]
    if checked.server.flavour == "mariadb":
        (child,) = cascades
        assert child.startswith(f"{checked.database}.child (foreign key child_ibfk_1 to {checked.database}.good")
    else:
        assert cascades == [], "MySQL 9.7 logs what they do"
    _, shown = checked.run()
    assert all(len(line) <= 80 for line in shown.splitlines() if "GRANT" not in line and "`" not in line)
    plain = " ".join(shown.split())
    assert f"HELD: {checked.database}.full: rows from before capture: held until" in plain
    subjects = ("source main:", "lake:", "disk of ", f"{checked.database}.")
    for line in (line for line in shown.splitlines() if line and not line.startswith("  ")):
        if line == "An administrator runs this at the server:":
            break  # what is pasted comes last
        head, _, rest = line.partition(": ")
        assert (rest if head.isupper() else line).startswith(subjects), "each line names what it speaks of"

    checked.write(start="earliest")
    _, found = checked.findings()
    assert not any("rows from before" in line["text"] for line in found.get("held", [])), (
        "all rows are in the binlog, or the start is refused"
    )


def test_tables_with_rows_that_are_not_captured_from_their_beginning_are_named_after_the_first_capture_too(
    checked: Checked,
) -> None:
    server, database = checked.server, checked.database
    for statement in ("CREATE TABLE full (a INT PRIMARY KEY)", "INSERT INTO full VALUES (1)"):
        server.query(statement, database=database)
    server.query("CREATE TABLE followed (a INT PRIMARY KEY)", database=database)
    checked.write(snapshot="manual")
    checked.begin()
    for statement in ("INSERT INTO followed VALUES (1)", "CREATE TABLE later (a INT PRIMARY KEY)"):
        server.query(statement, database=database)
    server.query("INSERT INTO later VALUES (1)", database=database)
    code, found = checked.findings()
    assert code == EXIT_ERROR
    assert [line["tables"] for line in found["held"]] == [[f"{database}.full"]]
    told = {line["text"]: line["tables"] for line in found["caution"]}
    (later,) = (names for text, names in told.items() if "before they were followed" in text)
    assert later == [f"{database}.later"]
    assert not any("doesn't show" in text for text in told)
    server.query("DROP TABLE followed", database=database)  # as if the account had lost its right to see it
    told = {line["text"]: line["tables"] for line in checked.findings()[1]["caution"]}
    (hidden,) = (names for text, names in told.items() if "the server doesn't show them" in text)
    assert hidden == [f"{database}.followed"]


def test_a_start_that_was_changed_later_is_said_to_have_no_effect(checked: Checked) -> None:
    checked.server.query("CREATE TABLE t (a INT PRIMARY KEY)", database=checked.database)
    checked.begin()
    assert checked.findings()[0] == 0
    checked.write(start="earliest")
    code, found = checked.findings()
    assert code == 0
    assert any("start: earliest has no effect any more" in line["text"] for line in found["caution"])


def test_an_account_that_may_not_see_prepared_transactions_is_told_once_by_check(checked: Checked) -> None:
    checked.server.query("CREATE TABLE t (a INT PRIMARY KEY)", database=checked.database)
    _, found = checked.findings()
    told = [line["text"] for line in found["note"] if "GRANT XA_RECOVER_ADMIN ON *.* TO" in line["text"]]
    assert len(told) == (checked.server.flavour == "mysql"), "MariaDB shows them to everybody"


def test_patterns_that_match_nothing_and_a_wrong_password_are_refused(checked: Checked) -> None:
    checked.write(include="nosuch.*")
    code, found = checked.findings()
    assert code == EXIT_ERROR
    assert "matches no table" in found["refused"][0]["text"]
    assert "is read as database `" in found["refused"][0]["text"]
    checked.log_in("wrong")
    code, found = checked.findings()
    assert code == EXIT_ERROR
    assert "access denied" in found["refused"][0]["text"]


def test_a_server_that_is_down_is_unknown_not_refused(checked: Checked) -> None:
    checked.patch.setenv(CONNECTION, "mysql://u:p@127.0.0.1:1/")
    code, found = checked.findings()
    assert code == EXIT_TRANSIENT
    assert "connection refused" in found["unknown"][0]["text"]


def test_a_server_under_two_names_is_refused_and_a_route_into_a_table_s_own_name_is_told(checked: Checked) -> None:
    """Every row would come twice: at the check, and where the second of them begins."""
    checked.server.query("CREATE TABLE orders (id INT PRIMARY KEY)", database=checked.database)
    checked.server.query("CREATE TABLE orders_1 (id INT PRIMARY KEY)", database=checked.database)
    checked.patch.setenv("AIRFLOW_CONN_COPIED", os.environ[CONNECTION])
    text = checked.file.read_text()
    route = f"routes: [{{match: '{checked.database}.orders_\\d', to: {checked.database}.orders}}]"
    checked.file.write_text(
        text.replace(
            "sources: {", f"sources: {{copy: {{conn_id: copied, flavour: {checked.server.flavour}}}, "
        ).replace("']}", f"'], {route}}}")
    )
    code, found = checked.findings()
    assert code == EXIT_ERROR
    assert [line["text"].split(":")[0] for line in found["refused"]] == ["it is the server of source copy"]
    mixed = [line for line in found["held"] if "no route names it" in line["text"]]
    assert [line["tables"] for line in mixed] == [[f"{checked.database}.orders"] * 2]
    pipeline, info = load(checked.file), ConnectionInfo.from_env("checked")
    with connect(info) as connection:
        facts = read_facts(connection, info)
    Bronze(checked.lake, "copy").append(
        [replace(segment(b"", b""), source="copy", seq=1, server_id=facts.server_id, server_uuid=facts.server_uuid)]
    )
    with pytest.raises(SourceRefused, match="source copy is captured from this very server"):
        check_apart(checked.lake, pipeline, "main", facts)
    check_apart(checked.lake, pipeline, "copy", facts)


def test_rules_for_columns_and_rows_that_do_nothing_are_named(checked: Checked) -> None:
    t = f"{checked.database}.t"
    checked.server.query(f"CREATE TABLE {t} (id INT PRIMARY KEY, eMail TEXT, note TEXT COMMENT 'some pii')")
    rules = (
        f"columns: [{{match: '{t}', exclude: [note, note_2]}}],"
        f" masks: [{{match: '{t}', columns: [email, phnoe], how: null}},"
        " {match: '*.*', comment: pii, how: null}, {match: '*.*', comment: secret, how: null}],"
        f" rows: [{{match: '{checked.database}.u', where: id = 1}}, {{match: '{t}', where: ID > 0 AND other = 1}}],"
        f" clustering: [{{match: '{t}', columns: [note, at, _tg_commit_ts]}}]"
    )
    checked.file.write_text(checked.file.read_text().replace("include:", f"{rules}, include:"))
    _, findings = checked.findings()
    texts = [line["text"] for line in findings["caution"] if line["of"] == "pipeline file"]
    assert [text.partition(": is it mistyped?")[0] for text in texts] == [
        f"tables.columns: no column of {t} has the name note_2",
        f"tables.masks: no column of {t} has the name phnoe",
        "tables.masks: no column of *.* has a comment with secret",
        f"tables.rows: no table flows into {checked.database}.u",
        f"tables.clustering: no column of {t} has the name at",
    ]


def test_tables_that_their_rules_hold_are_named(checked: Checked) -> None:
    """A check without a word, or with "does nothing", was followed by a held table."""
    d = checked.database
    tables = {
        "renamed": "id INT PRIMARY KEY, a INT, b INT",
        "masked": "id VARCHAR(9) PRIMARY KEY",
        "computed": "id INT PRIMARY KEY, price INT",
        "doubled": "id INT PRIMARY KEY, total INT",
        "keyless": "a INT",
        "asked": "id INT PRIMARY KEY",
        "fine": "id INT PRIMARY KEY, a INT, email TEXT",
    }
    for name, columns in tables.items():
        checked.server.query(f"CREATE TABLE {name} ({columns})", database=d)
    total = "name: total, type: bigint, expression:"
    rules = (
        f"renames: [{{match: {d}.renamed, columns: {{a: B}}}}, {{match: {d}.fine, columns: {{a: b}}}}],"
        f" masks: [{{match: {d}.masked, columns: [id], how: hmac, key_conn_id: keys}},"
        f" {{match: {d}.fine, columns: [email], how: mail, key_conn_id: keys}}],"
        f" computed: [{{match: {d}.computed, {total} pryce * 2}}, {{match: {d}.doubled, {total} id * 2}},"
        f" {{match: {d}.keyless, {total} a * 2}}, {{match: {d}.fine, {total} b * 2}}],"
        f" rows: [{{match: {d}.asked, where: other = 1}}]"
    )
    checked.file.write_text(checked.file.read_text().replace("include:", f"{rules}, include:"))
    checked.patch.setenv("AIRFLOW_CONN_KEYS", json.dumps({"conn_type": "generic", "password": "k" * 32}))
    code, found = checked.findings()
    (line,) = [each for each in found["held"] if each["text"] == "held by these rules"]
    reasons = dict(name.removeprefix(f"{d}.").split(" (", 1) for name in line["tables"])
    assert code == EXIT_ERROR
    assert reasons.keys() == tables.keys() - {"fine"}
    assert "gives two columns the name b" in reasons["renamed"]
    assert "masks id, of its key" in reasons["masked"]
    assert "from column pryce, which silver doesn't have" in reasons["computed"]
    assert "the source has one of that name" in reasons["doubled"]
    assert "without a key" in reasons["keyless"]
    assert "names column other, which the table doesn't have" in reasons["asked"]
    assert "does nothing" not in str(found)


def test_the_lake_of_another_pipeline_is_refused_before_anything_is_written(checked: Checked) -> None:
    """Capture went on with the bronze of the other one, and check said nothing."""
    checked.server.query("CREATE TABLE t (id INT PRIMARY KEY)", database=checked.database)
    append(checked.lake, FOLLOWED, rows_of(1, "elsewhere", [], Selection.of(load(checked.file)), 0))
    assert pipeline_of(checked.lake) == "elsewhere"
    code, found = checked.findings()
    (line,) = [each for each in found["refused"] if each["of"] == "lake"]
    assert (code, line["text"].partition(": under")[0].partition(": ")[2]) == (
        EXIT_ERROR,
        "this lake belongs to pipeline elsewhere",
    )
    pipeline = load(checked.file)
    run = capture_run(
        pipeline, "main", Path(checked.lake.root).parent, sources=from_environment, lakes=from_environment
    )
    with pytest.raises(LakeRefused, match="belongs to pipeline elsewhere"):
        run.run(5)
    assert not Bronze(checked.lake, "main").last_segments()


def test_an_account_that_sees_no_table_is_given_select_in_what_is_pasted(checked: Checked) -> None:
    """With other grants missing, too, an administrator was asked twice."""
    checked.server.query("CREATE TABLE t (id INT PRIMARY KEY)", database=checked.database)
    checked.server.query("CREATE USER IF NOT EXISTS 'blind'@'%' IDENTIFIED BY 'practice'")
    where = f"{checked.server.host}:{checked.server.port}"
    checked.patch.setenv(CONNECTION, f"mysql://blind:practice@{where}/")
    code, out = checked.run()
    assert code == EXIT_ERROR
    assert "GRANT SELECT ON *.* TO 'blind'@'%';  -- or on the databases to keep alone" in out
    assert "shows no binlog position" not in " ".join(out.split()), "the missing right is said already"


def test_patterns_without_a_table_are_named_with_what_they_may_have_meant(checked: Checked) -> None:
    checked.server.query("CREATE TABLE orders (id INT PRIMARY KEY)", database=checked.database)
    d = checked.database
    checked.write(include=f"{d}.orders', '{d}.order', '{d}.shelf")
    more = f"history: ['{d}.ordres'], changelog: ['{d}.orders', 'nosuch.*'], include:"
    checked.file.write_text(checked.file.read_text().replace("include:", more))
    _, findings = checked.findings()
    texts = [line["text"] for line in findings["caution"] if line["of"] == "pipeline file"]
    assert [text.partition(": is it mistyped?")[0] for text in texts] == [
        f"tables.include: no table matches {d}.order, near {d}.orders",
        f"tables.include: no table matches {d}.shelf",
        f"tables.history: no table matches {d}.ordres, near {d}.orders",
        "tables.changelog: no table matches nosuch.*",
    ]


def test_a_mistyped_database_is_named_with_the_near_one(checked: Checked) -> None:
    checked.server.query("CREATE TABLE orders (id INT PRIMARY KEY)", database=checked.database)
    checked.write(include=f"{checked.database}x.*")
    _, findings = checked.findings()
    assert findings["refused"][0]["text"].endswith(f"; did you mean {checked.database}.*?")


def test_an_account_that_may_lock_no_table_is_told_where_tables_have_no_key(checked: Checked) -> None:
    server = checked.server
    server.query("CREATE TABLE t (a INT)", database=checked.database)
    name = f"locks_{checked.database}"
    server.query(f"CREATE USER '{name}'@'%' IDENTIFIED BY 'secret-1'")
    server.query(f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{name}'@'%'")
    checked.patch.setenv(CONNECTION, f"mysql://{name}:secret-1@{server.host}:{server.port}/")
    for where, lines in ((f"{checked.database}x.*", 1), (f"{checked.database}.*", 1), ("*.*", 0)):
        _, findings = checked.findings()
        locks = [line for line in findings["caution"] if "GRANT LOCK TABLES" in line["text"]]
        assert len(locks) == (lines if server.flavour == "mysql" else 0)
        server.query(f"GRANT LOCK TABLES ON {where} TO '{name}'@'%'")
    server.query(f"DROP USER '{name}'@'%'")
