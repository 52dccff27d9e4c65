"""`tidegate init PIPELINE` writes a pipeline file by asking; `tidegate connection` makes a connection.

In:  the answers of a person, or options; AIRFLOW_CONN_<ID> where it is set already.
Out: <pipeline>.yaml in the folder of pipeline files; what `tidegate check` says of it; the statements that an
     administrator must run at the server. `connection` prints the connection as JSON, for the environment or Airflow.

The password is asked for without echo, once. No argument and no output of `init` has it. A file has it if the person
says so: one that nobody else can read, as ~/.my.cnf.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections import Counter
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tidegate import config, pipelines
from tidegate.connections import from_environment, variable
from tidegate.errors import UsageError
from tidegate.home import EXIT_OK, PIPELINES_ENV, state_folder
from tidegate.limits import CHECK_ANSWER_SECONDS
from tidegate.text_layout import counted

if TYPE_CHECKING:
    from tidegate.mysql.connecting.connection import ConnectionInfo
    from tidegate.mysql.sql_text.catalog import Name

_PLAIN: Final = re.compile(r"[\w-]+")  # stands for itself in a pattern
_EXPORTED: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_COMMA: Final = re.compile(r",(?![^{]*\})")  # not the comma of a quantifier, {1,2}


def init(
    pipeline: Annotated[str, typer.Argument(help="Name of the new pipeline")],
    conn_id: Annotated[str, typer.Option(help="Airflow connection of the server; <pipeline>_db by default")] = "",
    tables: Annotated[str, typer.Option(help="Patterns of the tables to keep, with commas between them")] = "",
    lake: Annotated[str, typer.Option(help="Folder or URL of the lake; lakes/<pipeline> by default")] = "",
) -> None:
    """Ask for a server and its tables, try them, and write the pipeline file."""
    from tidegate.cli.check import check
    from tidegate.mysql.connecting.connection import ConnectionInfo

    conn_id, lake = conn_id or f"{pipeline}_db", lake or f"lakes/{pipeline}"
    file = _new_file(pipeline, conn_id, lake)
    asked = variable(conn_id) not in os.environ
    if asked:
        os.environ[variable(conn_id)] = _ask_connection()
    info = ConnectionInfo.of(from_environment(conn_id))
    if not asked:
        typer.echo(f"The connection {conn_id} comes from {variable(conn_id)}.")
    server = _look(info)
    patterns = server.patterns_of(tables) if tables else _ask_tables(server)
    text = _pipeline_text(pipeline, lake, conn_id, server.flavour, patterns)
    config.parse(text, where=str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x") as opened:
        opened.write(text)
    typer.echo(f"\nWrote {file}:\n\n{text}")
    typer.echo("What `tidegate check` says of it:")
    code = EXIT_OK
    try:
        check(str(file))
    except typer.Exit as ended:
        code = ended.exit_code
    kept = _keep(conn_id, os.environ[variable(conn_id)]) if asked else None
    typer.echo(_next_steps(pipeline, conn_id, kept, asked=asked))
    raise typer.Exit(code)


def connection() -> None:
    """Ask for a server, try it, and print its connection as JSON."""
    text = _ask_connection()
    if sys.stdout.isatty():
        keep = f'export AIRFLOW_CONN_<ID>="$({_as_called()} connection)"'
        typer.echo(f"It holds the password. Keep it with: {keep}", err=True)
    typer.echo(text)


def _new_file(pipeline: str, conn_id: str, lake: str) -> Path:
    """The file to write. Raises UsageError if it exists, ConfigError for an impossible name or lake, or one of another
    pipeline.
    """
    file = pipelines.folder() / f"{pipeline}.yaml"
    text = _pipeline_text(pipeline, lake, conn_id, config.Flavour.MARIADB, ["a.*"])
    made = pipelines.resolved(config.parse(text, where=str(file)))
    if file.exists():
        raise UsageError("this pipeline exists already", where=str(file), remedy="give another name, or edit its file")
    for other in pipelines.good_files():
        if other.pipeline.lake.path == made.lake.path:
            what = f"{made.lake.path} is already the lake of {other.path.name}"
            raise UsageError(what, where="--lake", remedy="a lake belongs to one pipeline: give another path")
    if not _EXPORTED.fullmatch(variable(conn_id)):
        raise UsageError(
            f"a shell can't export a variable {variable(conn_id)}",
            where="--conn-id",
            remedy="give an id of letters, digits and _",
        )
    above = next(folder for folder in file.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(
            "the pipeline file can't be written here",
            where=str(above),
            remedy=f"give yourself the right to, or set {PIPELINES_ENV} to another folder",
        )
    return file


def _ask_connection() -> str:
    """A connection with which the login worked, as Airflow's JSON.

    Raises SourceUnavailable and SourceRefused. The questions go to stderr: a shell may read stdout into a variable.
    """
    from tidegate.mysql.connecting.connection import ConnectionInfo, connect

    fields: dict[str, Any] = {"conn_type": "mysql"}
    with redirect_stdout(sys.stderr):  # a prompt's last space goes to stdout even with err=True
        fields["host"] = typer.prompt("Host of the MySQL or MariaDB server")
        fields["port"] = typer.prompt("Port", default="3306", value_proc=_port)
        try:
            fields["login"] = typer.prompt("Account", default="tidegate")
            fields["password"] = typer.prompt("Password", hide_input=True, default="", show_default=False)
        except UnicodeDecodeError:
            raise UsageError(
                "the terminal sends text that isn't UTF-8",
                where="the connection",
                remedy=f"set the terminal to UTF-8, or {variable('<id>')} to the connection as JSON",
            ) from None
    text = json.dumps(fields)  # in ASCII, whatever the terminal takes
    with closing(connect(ConnectionInfo.from_airflow_text("the connection", text), read_timeout=CHECK_ANSWER_SECONDS)):
        typer.echo(f"{fields['login']}@{fields['host']}:{fields['port']} answers.", err=True)
    return text


def _keep(conn_id: str, text: str) -> Path | None:
    """The file with the connection, if the person wants one, so that nobody types the password again. text: the
    connection as JSON.
    """
    folder = state_folder() / "connections"
    file = folder / f"{conn_id}.json"
    asks = f"\nKeep the connection, with its password, in {file}? You alone can read it"
    try:
        if not typer.confirm(asks, default=True):
            return None
    except typer.Abort:  # no answer: the pipeline file is written, and this one is optional
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = folder / f".{conn_id}.{os.getpid()}"
    part.touch(mode=0o600, exist_ok=False)
    part.write_text(text, encoding="utf-8")
    part.replace(file)
    return file


def _port(text: str) -> int:
    """Raises BadParameter; then typer asks again."""
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise typer.BadParameter("a port is a number from 1 to 65535")
    return int(text)


@dataclass(frozen=True, slots=True)
class _Server:
    """The facts of a server. account: of this login, as in a GRANT. tables: those that it may see."""

    flavour: config.Flavour
    account: str
    tables: list[Name]

    def patterns_of(self, text: str) -> list[str]:
        """The patterns of an answer. Raises UsageError for an invalid one, and if no table matches."""
        patterns = tuple(part.strip() for part in _COMMA.split(text) if part.strip())
        try:
            kept = any(config.matches(patterns, *name) for name in self.tables)
        except ValueError as error:
            raise UsageError(str(error), where="--tables", remedy="see Patterns in docs/tables.md") from error
        if not kept:
            near = [name for pattern in patterns for name in config.near_table(pattern, self.tables)]
            meant = f"did you mean {', '.join(dict.fromkeys(near))}? Or " if near else ""
            raise UsageError(
                f"no table that the server shows this account matches {', '.join(patterns) or 'nothing'}",
                where="--tables",
                remedy=f"{meant}make the tables first, or run there: GRANT SELECT ON *.* TO {self.account}",
            )
        return list(patterns)


def _look(info: ConnectionInfo) -> _Server:
    """Raises UsageError if the server shows us no table, SourceRefused for a TiDB."""
    from tidegate.mysql.connecting.connection import connect
    from tidegate.mysql.demands.preflight import tidb_refusal
    from tidegate.mysql.demands.snapshot_grants import marks_of
    from tidegate.mysql.facts.managed import Service
    from tidegate.mysql.facts.server_facts import read_facts
    from tidegate.mysql.sql_text.catalog import BASE_TABLES, NAMES, asked_by, names_of, names_there, rows_of
    from tidegate.tables import WATERMARK_DATABASE

    with closing(connect(info, read_timeout=CHECK_ANSWER_SECONDS)) as opened, opened.cursor() as cursor:
        facts = read_facts(opened, info)
        if facts.managed.service is Service.TIDB:
            raise tidb_refusal(facts)
        own = {*config.OWN_DATABASES, WATERMARK_DATABASE}
        names = [name for name in names_there(asked_by(cursor)) if name[0].lower() not in own]
        tables = sorted(names_of(rows_of(asked_by(cursor), NAMES, names, where=BASE_TABLES)))
        account, _ = marks_of(cursor)
    typer.echo(f"The server is {facts.flavour} {facts.version}{facts.managed}.")
    if not tables:
        raise UsageError(
            "the server shows this account no table",
            where=info.where,
            remedy=f"make the tables first, or run there: GRANT SELECT ON *.* TO {account}",
        )
    return _Server(facts.flavour, account, tables)


def _ask_tables(server: _Server) -> list[str]:
    counts = Counter(database for database, _ in server.tables)
    shown = ", ".join(f"{name} ({counted(count, 'table', 'tables')})" for name, count in counts.items())
    typer.echo(f"Databases: {shown}")
    every = ", ".join(f"{name if _PLAIN.fullmatch(name) else _escaped(name)}.*" for name in counts)

    def patterns_of(text: str) -> list[str]:
        """Raises BadParameter: typer then asks again."""
        try:
            return server.patterns_of(text)
        except UsageError as error:
            raise typer.BadParameter(f"{error.what}; {error.remedy}") from None

    asks = "Tables to keep, as database.table, * for any"
    patterns: list[str] = typer.prompt(asks, default=every, value_proc=patterns_of)
    return patterns


def _escaped(name: str) -> str:
    """A pattern for this name only, without a comma, since commas separate patterns."""
    return re.escape(name).replace(",", r"\x2c")


def _pipeline_text(pipeline: str, lake: str, conn_id: str, flavour: config.Flavour, patterns: list[str]) -> str:
    """The text of the file. Names are written as JSON strings, which are YAML strings, too."""
    include = ", ".join(map(_yaml, patterns))
    return (
        f"pipeline: {_yaml(pipeline)}\n"
        f"lake: {{path: {_yaml(lake)}}}\n"
        f"sources: {{main: {{conn_id: {_yaml(conn_id)}, flavour: {flavour}}}}}\n"
        f"tables: {{include: [{include}]}}\n"
    )


def _yaml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _next_steps(pipeline: str, conn_id: str, kept: Path | None, *, asked: bool) -> str:
    name = variable(conn_id)
    tidegate = _as_called()
    value = f"cat {shlex.quote(str(kept))}" if kept else f"{tidegate} connection"
    keep_it = f'  export {name}="$({value})"   # in each terminal; or Airflow: Admin > Connections, {conn_id}\n'
    return (
        "\nTo go on:\n\n"
        + (keep_it if asked else "")
        + f"  {tidegate} check {pipeline}    # again, until nothing is refused\n"
        + f"  {tidegate} up {pipeline}       # Airflow on this computer; your own: docs/how-to/own-airflow.md\n"
        + f"  {tidegate} status {pipeline}   # the lag, and the tables that wait"
    )


def _as_called() -> str:
    """The name of this program as it was called, to paste."""
    return "tidegate" if shutil.which("tidegate") else sys.argv[0]
