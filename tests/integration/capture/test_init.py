"""`tidegate init` against real servers: the questions, the file, and that its statements are all that a server needs.

In:  a server whose settings and grants are wrong, an account of its own.
Out: a pipeline file; after the statements that init printed were run, `tidegate check` refuses nothing.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.support.own_server import own_server_or_skip
from tidegate import config
from tidegate.cli.main import app as command_line
from tidegate.home import EXIT_ERROR, EXIT_OK, HOME_ENV, PIPELINES_ENV
from tidegate.local.server import Server

pytestmark = pytest.mark.server

_OPTIONS = {
    "mariadb": ("--binlog-format=MIXED", "--binlog-row-metadata=NO_LOG", "--binlog-row-image=MINIMAL"),
    "mysql9": (
        "--binlog-row-metadata=MINIMAL",
        "--binlog-row-image=MINIMAL",
        "--gtid-mode=OFF",
        "--enforce-gtid-consistency=OFF",
    ),
}
_PASSWORD = "s3cret'\"\\ wörd €"


@pytest.fixture(params=list(_OPTIONS))
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with own_server_or_skip(request.param, tmp_path / "server", options=_OPTIONS[request.param]) as server:
        server.query("CREATE DATABASE shop")
        server.query("CREATE TABLE shop.orders (id INT PRIMARY KEY)")
        server.query("CREATE DATABASE `other+1,one`")
        server.query("CREATE TABLE `other+1,one`.t (id INT PRIMARY KEY)")
        server.query("CREATE USER 'asked'@'%%' IDENTIFIED BY %s", (_PASSWORD,))
        server.query("GRANT SELECT ON shop.* TO 'asked'@'%'")
        server.query("GRANT SELECT ON `other+1,one`.* TO 'asked'@'%'")
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pipelines"
    monkeypatch.setenv(PIPELINES_ENV, str(folder))
    monkeypatch.setenv(HOME_ENV, str(tmp_path / "home"))
    monkeypatch.delenv("AIRFLOW_CONN_P_DB", raising=False)
    return folder


def _run(*words: str, answers: list[str]) -> Result:
    return CliRunner().invoke(command_line, list(words), input="\n".join(answers) + "\n")


def test_what_init_prints_is_all_that_the_server_needs(
    server: Server, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [server.host, str(server.port), "asked", _PASSWORD, ""]
    done = _run("init", "p", "--lake", str(tmp_path / "lake"), answers=answers)
    assert done.exit_code == EXIT_ERROR, done.output
    assert _PASSWORD not in done.output
    pipeline = config.load(folder / "p.yaml")
    assert _PASSWORD not in (folder / "p.yaml").read_text()
    assert pipeline.server("main").flavour == server.flavour
    assert pipeline.tables.keeps("shop", "orders")
    assert pipeline.tables.keeps("other+1,one", "t")

    printed = done.output.split("An administrator runs this at the server:\n")[1].split("\nKeep the")[0]
    for statement in filter(None, (line.split("-- ")[0].strip() for line in printed.splitlines())):
        server.query(statement)

    monkeypatch.delenv("AIRFLOW_CONN_P_DB", raising=False)
    made = _run("connection", answers=answers[:4])
    assert made.exit_code == EXIT_OK, made.output
    text = made.stdout.strip()
    assert json.loads(text)["password"] == _PASSWORD
    monkeypatch.setenv("AIRFLOW_CONN_P_DB", text)
    checked = _run("check", "p", answers=[])
    assert checked.exit_code == EXIT_OK, checked.output

    (folder / "p.yaml").unlink()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", [".venv/bin/tidegate"])
    again = _run("init", "p", "--tables", "shop.*", "--lake", str(tmp_path / "lake"), answers=[])
    assert again.exit_code == EXIT_OK, again.output
    assert "An administrator" not in again.output
    assert "\n  .venv/bin/tidegate up p " in again.output, "as a person called it, to be pasted"
    refused = _run("init", "p", answers=[])
    assert refused.exit_code != EXIT_OK
    assert "already" in str(refused.exception)


def test_the_password_is_asked_for_once_and_kept_where_nobody_else_reads_it(
    server: Server, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`init` asked, forgot it, and told the person to be asked again by `tidegate connection`."""
    answers = [server.host, str(server.port), "asked", _PASSWORD, "", ""]
    done = _run("init", "p", "--lake", str(tmp_path / "lake"), answers=answers)
    file = tmp_path / "home" / ".tidegate" / "connections" / "p_db.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert _PASSWORD not in done.output
    (export,) = [line.partition("   #")[0].strip() for line in done.output.splitlines() if "export " in line]
    monkeypatch.delenv("AIRFLOW_CONN_P_DB")
    shown = subprocess.run(["sh", "-c", f'{export}; printf %s "$AIRFLOW_CONN_P_DB"'], capture_output=True, check=True)
    assert json.loads(shown.stdout)["password"] == _PASSWORD

    (folder / "p.yaml").unlink()
    again = _run("init", "p", "--lake", str(tmp_path / "lake"), answers=[*answers[:5], "n"])
    assert ' connection)"   # in each terminal' in again.output, "who wants no file is told the other way"


def test_a_server_of_amazons_is_told_its_parameter_group_and_its_procedure(
    server: Server, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real server with RDS' own table in it, which is how RDS is known."""
    server.query("CREATE TABLE mysql.rds_configuration (name VARCHAR(100) PRIMARY KEY, value VARCHAR(100), d TEXT)")
    server.query("INSERT INTO mysql.rds_configuration VALUES ('binlog retention hours', NULL, '')")
    server.query("GRANT SELECT ON mysql.rds_configuration TO 'asked'@'%'")
    answers = [server.host, str(server.port), "asked", _PASSWORD, "", "n"]
    done = _run("init", "p", "--lake", str(tmp_path / "lake"), answers=answers)
    assert ", Amazon RDS." in done.output
    assert "SET GLOBAL" not in done.output
    assert "SET PERSIST" not in done.output
    assert "\n  CALL mysql.rds_set_configuration('binlog retention hours', 168);\n" in done.output
    assert "\n  aws rds modify-db-parameter-group --db-parameter-group-name GROUP --parameters " in done.output
    server.query("UPDATE mysql.rds_configuration SET value = '72'")
    found = json.loads(_run("check", "p", "--json", answers=[]).output)
    assert not any("remove binlog" in line["text"] for line in found["findings"])
    assert not any("rds_set" in line for line in found["to_run"]["main"]["sql"])


def test_tables_that_no_pattern_names_are_asked_for_again_and_leave_no_file(
    server: Server, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wrote a file that `check` refuses, and named the near table below a screen of text."""
    answers = [server.host, str(server.port), "asked", _PASSWORD]
    words = ("init", "p", "--lake", str(tmp_path / "lake"))
    refused = _run(*words, "--tables", "shp.*, shop.ordrs", answers=answers)
    assert "no table that the server shows this account matches shp.*, shop.ordrs" in str(refused.exception)
    assert "did you mean shop.*, shop.orders? Or make the tables first" in str(refused.exception)
    assert "GRANT SELECT ON *.* TO 'asked'@'%'" in str(refused.exception)
    assert not folder.exists()

    monkeypatch.delenv("AIRFLOW_CONN_P_DB", raising=False)
    done = _run(*words, answers=[*answers, "shop.ordrs", "shop", "shop.orders"])
    assert "did you mean shop.orders?" in done.output
    assert "pattern 'shop' must be database.table" in done.output
    assert config.load(folder / "p.yaml").tables.include == ("shop.orders",)


def test_an_account_that_is_shown_no_table_is_told_what_to_grant(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.query("REVOKE SELECT ON shop.* FROM 'asked'@'%'")
    server.query("REVOKE SELECT ON `other+1,one`.* FROM 'asked'@'%'")
    refused = _run("init", "p", answers=[server.host, str(server.port), "asked", _PASSWORD])
    assert "the server shows this account no table" in str(refused.exception)
    assert "GRANT SELECT ON *.* TO 'asked'@'%'" in str(refused.exception)
    assert "Tables to keep" not in refused.output
    assert not folder.exists()


def test_a_wrong_password_writes_no_file(server: Server, folder: Path) -> None:
    done = _run("init", "p", answers=[server.host, str(server.port), "asked", "wrong", ""])
    assert done.exit_code != EXIT_OK
    assert not folder.exists()


@pytest.mark.parametrize(
    ("pipeline", "more", "why"),
    [
        ("p-q", [], "a letter, then letters, digits and _"),
        ("p", ["--conn-id", "p-db"], "a shell can't export a variable AIRFLOW_CONN_P-DB"),
        ("p", ["--lake", "s3:/bucket/p"], "'s3:' would be the name of a folder here"),
        ("p", ["--lake", "lakes/../lakes/q"], "lakes/q is already the lake of q.yaml; a lake belongs to one pipeline"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_asked(
    folder: Path, pipeline: str, more: list[str], why: str
) -> None:
    if "q.yaml" in why:
        folder.mkdir()
        source = "sources: {s: {conn_id: c, flavour: mysql}}, tables: {include: ['*.*']}"
        (folder / "q.yaml").write_text(f"{{pipeline: q, lake: {{path: lakes/q}}, {source}}}")
    refused = _run("init", pipeline, *more, answers=[])
    assert why in str(refused.exception)
    assert not (folder / "p.yaml").exists()
    assert "Host of" not in refused.output


def test_a_folder_that_can_not_be_written_is_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(PIPELINES_ENV, str(tmp_path / "file" / "pipelines"))
    refused = _run("init", "p", answers=[])
    assert "the pipeline file can't be written here" in str(refused.exception)
    assert "Host of" not in refused.output


def test_a_uri_for_the_host_is_in_no_message_and_a_port_out_of_range_is_asked_for_again() -> None:
    refused = _run("connection", answers=["mysql://u:s3cret@h/x", "99999", "3306", "asked", "x"])
    assert "a port is a number from 1 to 65535" in refused.output
    assert "the connection's host is no name or address" in str(refused.exception)
    assert "s3cret" not in str(refused.exception)
