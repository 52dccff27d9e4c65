"""`tidegate query PIPELINE "SQL"`: DuckDB over all tables at one cut; without SQL a shell.

In:  a pipeline file; its lake (keys in the lake's connection, AIRFLOW_CONN_<ID>); SQL as an argument or on stdin.
Out: rows on stdout, as a table or as NDJSON; on stderr the cut, and the incomplete tables. With --views a script for
     DuckDB itself.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tidegate import pipelines
from tidegate.connections import from_environment
from tidegate.errors import TidegateError, UsageError
from tidegate.home import EXIT_ERROR

if TYPE_CHECKING:
    from tidegate.query.pinned import PinnedCut

_ROWS_SHOWN: Final = 1000
_BATCH_ROWS: Final = 10_000
_PROMPT, _GOES_ON = "tidegate> ", "      ... "


def query(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    sql: Annotated[str | None, typer.Argument(help="The query. Default: a shell, or stdin")] = None,
    *,
    at: Annotated[
        str | None, typer.Option(help="A cut, or a time (UTC without an offset): the newest cut up to then")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all rows as NDJSON")] = False,
    views: Annotated[
        Path | None, typer.Option(help="Write a script with views for DuckDB to this file, and end")
    ] = None,
) -> None:
    """Query all tables at one cut, with DuckDB."""
    if views is not None and (sql is not None or as_json):
        raise UsageError("--views answers no query", remedy="leave out the query and --json")
    with pipelines.open_cut(pipeline, at, from_environment) as cut:
        print(_told(cut), file=sys.stderr)
        if views is not None:
            views.write_text(cut.views_file())
        elif sql is not None:
            _answer(cut, sql, as_json=as_json)
        elif not sys.stdin.isatty():
            text = sys.stdin.read()
            if not text.strip():
                raise UsageError("stdin has no query", remedy="give it as an argument, or on stdin")
            _answer(cut, text, as_json=as_json)
        elif _shell(cut, as_json=as_json):
            raise typer.Exit(EXIT_ERROR)


def _told(cut: PinnedCut) -> str:
    from tidegate.commit_ts import time_text
    from tidegate.text_layout import counted

    published = cut.cut
    absent = [f"not in it: {name}: {reason}" for name, reason in {**published.missing, **cut.unclear}.items()]
    size = counted(len(published.tables), "table", "tables")
    moment = f"cut {published.cut_ts} ({time_text(published.cut_ts)})"
    if cut.past_ts is not None:
        moment = f"{cut.moment}, by their histories at {moment}"
    return "\n".join([f"{moment}: {size}", *absent])


def _shell(cut: PinnedCut, *, as_json: bool) -> bool:
    """Run statements, each up to its semicolon, until the end of input. Returns whether the last one was refused."""
    import readline  # noqa: F401 - input() edits its line by it

    text, refused = "", False
    while True:
        try:
            text += input(_GOES_ON if text else _PROMPT) + "\n"
        except EOFError:
            print()
            return refused
        if text.rstrip().endswith(";"):
            try:
                _answer(cut, text, as_json=as_json)
                refused = False
            except TidegateError as error:
                print(f"tidegate: {error}", file=sys.stderr)
                refused = True
            text = ""
        elif not text.strip():
            text = ""


def _answer(cut: PinnedCut, sql: str, *, as_json: bool) -> None:
    """Print the rows of the last statement. DuckDB reads rows while they are printed, so its errors
    may come late.
    """
    import duckdb

    relation = cut.sql(sql)
    if relation is None:  # a statement without rows
        return
    try:
        if as_json:
            for line in _lines(relation):
                print(line)
        else:
            relation.show(max_rows=_ROWS_SHOWN, max_width=10_000)
    except duckdb.Error as error:
        raise cut.refused(error) from error


def _lines(relation: Any) -> Iterator[str]:
    names = relation.columns
    while rows := relation.fetchmany(_BATCH_ROWS):
        for row in rows:
            yield json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=_text)


def _text(value: Any) -> str:
    """A value that JSON can't write, in the form of `tidegate decode`: bytes in base64, others as text."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
