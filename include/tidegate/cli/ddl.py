"""`tidegate ddl FILE.sql...`: what tables a DDL script makes, by our own reader.

In:  DDL scripts; the server they are meant for.
Out: JSON on stdout: {"tables": {...}, "unparsed": [...]}, or with --trace one line per statement; exit code 1 when a
     statement isn't understood.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate.cli.main import EXIT_ERROR
from tidegate.errors import UsageError


def ddl(
    files: Annotated[list[Path], typer.Argument(help="Scripts; each starts on an empty server")],
    database: Annotated[str, typer.Option(help="Database that the script starts in")] = "test",
    server_version: Annotated[
        str, typer.Option("--server", help="Version of the server, e.g. 8.4.0 or 11.4.5-MariaDB")
    ] = "11.4.5-MariaDB",
    charset: Annotated[str, typer.Option(help="Character set of the database; the server's default when empty")] = "",
    trace: Annotated[bool, typer.Option(help="One JSON line per statement: what it changed")] = False,
) -> None:
    """Replay a DDL script; print the tables as JSON."""
    from tidegate.schema.columns import VersionStatus
    from tidegate.schema.script import Script, primary_key, shown_columns, statements

    failed = False
    for file in files:
        script, unparsed = Script(database, server_version, charset), []
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"can't read the script: {error}", where=str(file), remedy="give a UTF-8 file") from error
        named: dict[str, Any] = {"file": str(file)} if len(files) > 1 else {}
        for line, sql in statements(text):
            step = script.run(line, sql)
            if step.error:
                unparsed.append({"line": line, "sql": sql, "error": step.error})
            if trace:
                gone = [v.name for v in step.versions if v.status is VersionStatus.DROPPED]
                changed = {v.name: {"columns": shown_columns(v)} for v in step.versions if v.name not in gone}
                row: dict[str, Any] = {"line": line, "kind": step.kind, "changed": changed, "dropped": gone}
                row["error"] = step.error or None
                print(json.dumps(named | row, ensure_ascii=False))
        if not trace:
            found = {
                name: {"columns": shown_columns(version), "primary_key": primary_key(version)}
                for name, version in sorted(script.tables().items())
            }
            print(json.dumps(named | {"tables": found, "unparsed": unparsed}, ensure_ascii=False))
        failed = failed or bool(unparsed)
    raise typer.Exit(EXIT_ERROR if failed else 0)
