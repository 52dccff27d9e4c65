"""`tidegate ddl FILE.sql...`: the tables that a DDL script makes, by tidegate's own parser.

In:  DDL scripts; the server they are meant for.
Out: JSON on stdout: {"tables": {...}, "unparsed": [...]}, or with --trace one line per statement; exit code 1 when a
     statement isn't understood.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tidegate.errors import UsageError
from tidegate.home import EXIT_ERROR

if TYPE_CHECKING:
    from tidegate.ddl_script.script import ScriptStep
    from tidegate.schema.model.server import ServerVersion


_VERSION: Final = re.compile(r"(?:[5-9]|1[0-3])\.\d+(?:\.\d+)?(?:[-+~].*)?$")


def ddl(
    files: Annotated[list[Path], typer.Argument(help="Scripts. Each starts on an empty server")],
    database: Annotated[str, typer.Option(help="Database at the start of the script")] = "test",
    server_version: Annotated[
        str, typer.Option("--server", help="Version of the server, e.g. 8.4.0 or 11.4.5-MariaDB")
    ] = "11.4.5-MariaDB",
    charset: Annotated[str, typer.Option(help="Character set of the database. Default: the server's")] = "",
    trace: Annotated[bool, typer.Option(help="Print one JSON line per statement, with its changes")] = False,
) -> None:
    """Replay a DDL script; print the tables as JSON."""
    from tidegate.ddl_script.script import Script
    from tidegate.ddl_script.shown_columns import shown_table
    from tidegate.ddl_script.text import statements
    from tidegate.schema.model.server import ServerVersion

    if not _VERSION.match(server_version):
        raise UsageError(
            f"--server {server_version!r} is no version of MySQL 5 to 9 or MariaDB 10 to 13",
            remedy="such as 8.4.0 or 11.4.5-MariaDB",
        )
    server, failed = ServerVersion.of(server_version), False
    for file in files:
        script, unparsed = Script(database, server_version, charset), []
        named: dict[str, Any] = {"file": str(file)} if len(files) > 1 else {}
        for line, sql in statements(_text(file), plain=script.is_plain):
            step = script.run(line, sql)
            if step.error:
                unparsed.append({"line": line, "sql": sql, "error": step.error})
            if trace:
                print(json.dumps(named | _traced(step, server), ensure_ascii=False))
        if not trace:
            shown = {name: shown_table(version, server) for name, version in sorted(script.tables().items())}
            print(json.dumps(named | {"tables": shown, "unparsed": unparsed}, ensure_ascii=False))
        failed = failed or bool(unparsed)
    raise typer.Exit(EXIT_ERROR if failed else 0)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"can't read the script: {error}", where=str(file), remedy="give a UTF-8 file") from error


def _traced(step: ScriptStep, server: ServerVersion) -> dict[str, Any]:
    """A line of --trace: tables whose columns changed, and dropped tables."""
    from tidegate.ddl_script.shown_columns import shown_columns
    from tidegate.schema.model.columns import VersionStatus

    changed, dropped = {}, list(step.forgotten)
    for version, before in zip(step.versions, step.before, strict=True):
        if version.status is VersionStatus.DROPPED:
            dropped.append(version.name)
            continue
        columns = shown_columns(version, server)
        if before is None or shown_columns(before, server) != columns:
            changed[version.name] = {"columns": columns}
    row = {"line": step.line, "kind": step.kind, "changed": changed, "dropped": dropped}
    return row | {"error": step.error or None}
