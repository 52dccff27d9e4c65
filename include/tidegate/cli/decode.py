"""`tidegate decode FILE...`: binlog files as NDJSON, one line per row change, without a server or Spark.

In:  binlog or relay log files, in their order.
Out: lines on stdout, or with --stats one JSON object per file; faults and notes on stderr; exit code 1 when anything
     was left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tidegate.errors import StreamCorrupt, Terminal, UnsupportedValue, UsageError
from tidegate.home import EXIT_ERROR

if TYPE_CHECKING:
    from tidegate.log_files.stats import FileStats


def decode(
    files: Annotated[list[Path], typer.Argument(help="Binlog files, in order", metavar="FILE...")],
    schema: Annotated[
        list[Path] | None,
        typer.Option(help="DDL script (a dump of the schema) with names and types that the log lacks"),
    ] = None,
    database: Annotated[str, typer.Option(help="Database of a --schema without USE. Default: any")] = "",
    table: Annotated[list[str] | None, typer.Option(help="Only this table, database.table; repeatable")] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print counts per file, instead of its rows")] = False,
    zero_dates: Annotated[
        Literal["null", "text", "error"], typer.Option(help="Form of zero and impossible dates")
    ] = "null",
) -> None:
    """Print binlog files as NDJSON."""
    wanted = frozenset(table or ())
    _check_names(wanted, database if not schema else "")
    _check_files([*files, *(schema or ())])

    from tidegate.log_files.changes import LogChanges
    from tidegate.log_files.log_file import BinlogFile, server_version
    from tidegate.log_files.plans import LogPlans, ShownZeroDates
    from tidegate.log_files.rows import RowOptions
    from tidegate.log_files.schema import SchemaPlans
    from tidegate.log_files.stats import FileStats

    faults: list[Terminal] = []

    def report(fault: Terminal) -> None:
        faults.append(fault)
        _say(str(fault))

    shown = ShownZeroDates(zero_dates)
    plans = LogPlans(_note, shown)
    if schema:
        described = SchemaPlans(_note, shown, server_version=server_version(files), database=database)
        for script in schema:
            described.read(script)
        plans = described
    options = RowOptions(
        lambda database, name: not wanted or f"{database}.{name}" in wanted, lines=not stats, report=report, note=_note
    )
    changes = LogChanges(plans, options)
    out, commit_ts, counted = sys.stdout.buffer, 0, []
    for file in files:
        try:
            opened = BinlogFile(file, commit_ts)
        except (StreamCorrupt, UnsupportedValue) as fault:
            report(fault)
            continue
        with opened as log:
            counted.append(FileStats(log.name, log.size))
            for block in changes.decode(log, counted[-1]):
                out.write(block)
            commit_ts = log.commit_ts
    _note_missing(changes.finish(), wanted, counted)
    for of_file in counted if stats else ():
        of_file.close()
        out.write(json.dumps(of_file.as_dict(), ensure_ascii=False).encode() + b"\n")
    out.flush()
    raise typer.Exit(EXIT_ERROR if faults else 0)


def _note_missing(branches: Iterable[str], wanted: frozenset[str], files: Collection[FileStats]) -> None:
    for name in branches:
        _note(f"XA branch {name} was prepared and never answered in these files; its rows are left out")
    for name in sorted(wanted.difference(*(of_file.tables for of_file in files))):
        _note(f"no row of {name} in these files")
    for of_file in files:
        if not of_file.size:
            _note(f"{of_file.file} is empty")


def _note(line: str) -> None:
    _say(f"note: {line}")


def _say(line: str) -> None:
    print(f"tidegate: {line}", file=sys.stderr)


def _check_names(names: frozenset[str], of_no_schema: str) -> None:
    if of_no_schema:
        raise UsageError("--database is of a --schema", remedy="give both; --table chooses rows")
    for name in names:
        if "." not in name.strip("."):
            raise UsageError(f"--table {name!r} names no database", remedy="give it as database.table")


def _check_files(files: list[Path]) -> None:
    """Report a mistyped name at once, before the kernels are loaded."""
    for file in files:
        if not file.is_file():
            raise UsageError("there is no such file", where=str(file), remedy="check its name")
