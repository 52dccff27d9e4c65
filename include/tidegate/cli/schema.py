"""`tidegate schema log`, `refresh` and `judge`: list a table's versions, ask the server for a new one, judge a
statement.

In:  a pipeline file; for refresh the source's connection in AIRFLOW_CONN_<ID>, and a held table; for judge a place in
     a source's log with held tables.
Out: log: each version with its time, place, statement and changes, as text or JSON. refresh: a version in
     control/schema_history and a `released` event, so that the next window takes the table up again from bronze. judge:
     a row of control/judgements, and `released` events.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

import typer

from tidegate.cli.lake import open_desk, open_lake
from tidegate.errors import UsageError
from tidegate.limits import STATEMENT_SHOWN_CHARACTERS_MAX

schema = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show the versions of a table, and the statements behind them."
)

PipelineName = Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")]


@schema.command("log")
def log(
    pipeline: PipelineName,
    table: Annotated[str, typer.Argument(help="Table at the source, database.table")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per version")] = False,
) -> None:
    """List the versions of a table: when, where, which statement, what changed."""
    from tidegate.commit_ts import physical_ms
    from tidegate.lake.schema_history.schema_changes import with_effects
    from tidegate.lake.schema_history.schema_rows import table_rows
    from tidegate.table_names import splits
    from tidegate.text_layout import paragraph

    loaded, lake = open_lake(pipeline)
    rows = [row for name in splits(table) for row in table_rows(lake, *name)]
    if not rows:
        raise UsageError(f"schema_history has no table {table}", where=loaded.pipeline, remedy="give database.table")
    for row, change in zip(rows, with_effects(rows), strict=True):
        version, lines = change.version, change.effect
        at = datetime.fromtimestamp(physical_ms(version.commit_ts) / 1000, UTC).isoformat() if version.commit_ts else ""
        if as_json:
            keys = ("source", "version", "commit_ts", "file", "pos", "kind", "ddl", "status")
            facts = {key: row[key] for key in keys}
            print(json.dumps({**facts, "time": at, "changes": lines}, ensure_ascii=False))
            continue
        place = f", {version.file}:{version.pos}" if version.file else ""
        head = f"{version.source}, version {version.version}: {version.kind}, {at or 'when capture began'}{place}"
        statement = version.ddl[:STATEMENT_SHOWN_CHARACTERS_MAX]
        print(*paragraph(head, statement), *(f"    {line}" for line in lines), sep="\n")


@schema.command("refresh")
def refresh(
    pipeline: PipelineName,
    table: Annotated[str, typer.Argument(help="Held table, database.table as in silver")],
    renamed: Annotated[list[str] | None, typer.Option(help="OLD=NEW: this column was renamed")] = None,
    dropped: Annotated[list[str] | None, typer.Option(help="This column was dropped, not renamed")] = None,
) -> None:
    """Ask the server for the columns of a held table, and release it."""
    from tidegate.actions import holds
    from tidegate.mysql.start.refresh import ColumnAnswers

    desk = open_desk(pipeline)
    typer.echo(holds.refresh(desk, table, ColumnAnswers.of(renamed or (), dropped or (), desk.name)))


@schema.command("judge")
def judge(
    pipeline: PipelineName,
    source: Annotated[str, typer.Argument(help="Source, as in the pipeline file")],
    place: Annotated[str, typer.Argument(help="FILE:POS of the hold, as `tidegate status` shows it")],
    nothing: Annotated[bool, typer.Option("--nothing", help="The place changes no table's rows or columns")] = False,
    holds: Annotated[
        list[str] | None, typer.Option(help="The place changes this table at the source, database.table")
    ] = None,
    by: Annotated[str, typer.Option(help="Name of the person. Default: the account's name")] = "",
) -> None:
    """Say the effect of a statement or event that tidegate couldn't follow. Tables that it doesn't change continue."""
    from tidegate.actions.holds import Judgement
    from tidegate.actions.holds import judge as record_judgement
    from tidegate.table_names import splits

    desk = open_desk(pipeline)
    if nothing == any(splits(text) for text in holds or ()):
        raise UsageError("say what it changes", where=desk.name, remedy="give either --nothing, or --holds DB.T")
    typer.echo(record_judgement(desk, Judgement(source, place, holds or (), by)))
