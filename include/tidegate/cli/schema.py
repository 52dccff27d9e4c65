"""`tidegate schema log`, `refresh` and `judge`: a table's versions, a new one, and what a person says of a statement.

In:  a pipeline file; for refresh the source's connection in AIRFLOW_CONN_<ID>, and a held table; for judge a place in
     a source's log with held tables.
Out: log: each version with its time, place, statement and changes, as a table or JSON. refresh: a version in
     control/schema_history and a `released` event, so that the next window takes the table up again from bronze. judge:
     a row of control/judgements, and `released` events.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate import pipelines
from tidegate.cli.held import held_table
from tidegate.cli.lake import open_lake
from tidegate.connections import from_environment
from tidegate.errors import UsageError
from tidegate.remedy import RECREATE

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles

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
    from rich.console import Console
    from rich.table import Table

    from tidegate.commit_ts import physical_ms
    from tidegate.lake.schema_changes import with_effects
    from tidegate.lake.schema_rows import table_rows
    from tidegate.tables import splits

    loaded, lake = open_lake(pipeline)
    rows = [row for name in splits(table) for row in table_rows(lake, *name)]
    if not rows:
        raise UsageError(f"schema_history has no table {table}", where=loaded.pipeline, remedy="give database.table")
    shown = Table("source", "version", "from", "position", "kind", "changes", "statement", title=table)
    for row, change in zip(rows, with_effects(rows), strict=True):
        version, lines = change.version, change.effect
        at = datetime.fromtimestamp(physical_ms(version.commit_ts) / 1000, UTC).isoformat() if version.commit_ts else ""
        if as_json:
            keys = ("source", "version", "commit_ts", "file", "pos", "kind", "ddl", "status")
            facts = {key: row[key] for key in keys}
            print(json.dumps({**facts, "time": at, "changes": lines}, ensure_ascii=False))
        place = f"{version.file}:{version.pos}"
        number, statement = str(version.version), version.ddl[:120]
        cells = (version.source, number, at, place, version.kind, "\n".join(lines), statement)
        shown.add_row(*cells)
    if not as_json:
        for column in shown.columns:
            column.overflow = "fold"  # narrow as a pipe is, all is there
        shown.columns[3].no_wrap = True  # a place is copied
        Console().print(shown)


@schema.command("refresh")
def refresh(
    pipeline: PipelineName,
    table: Annotated[str, typer.Argument(help="Held table, database.table as in silver")],
    renamed: Annotated[list[str] | None, typer.Option(help="OLD=NEW: this column was renamed")] = None,
    dropped: Annotated[list[str] | None, typer.Option(help="This column was dropped, not renamed")] = None,
) -> None:
    """Ask the server for the columns of a held table, and release it."""
    from tidegate import tables
    from tidegate.lake import control, held
    from tidegate.lake.schema_rows import needed_rows, table_rows
    from tidegate.mysql.connection import connect
    from tidegate.mysql.refresh import ColumnAnswers, StoppedAt, refreshed
    from tidegate.schema.model.columns import TableVersion
    from tidegate.standing.causes import Cause

    loaded, lake = open_lake(pipeline)
    state = held_table(loaded.pipeline, lake, table)
    place = state.event
    if place is None or state.cause in (Cause.NEEDS_ROWS, Cause.UNLOGGED):
        raise UsageError(
            f"{table} isn't held for its columns ({state.reason})", where=loaded.pipeline, remedy="mend that first"
        )
    if any("=" not in pair for pair in renamed or ()):
        raise UsageError("--renamed takes OLD=NEW", where=loaded.pipeline, remedy="give the names of the column")
    source, physical = place.source, (place.database, place.table)
    rows = [row for row in table_rows(lake, *physical) if row["source"] == source]
    if not rows:
        raise UsageError(
            f"schema_history has no version of {'.'.join(physical)} of {source}",
            where=loaded.pipeline,
            remedy=RECREATE,
        )
    next_id = needed_rows(lake, [source], lambda *_: 1 << 62)[source].next_id
    answers = ColumnAnswers(dict(pair.split("=", 1) for pair in renamed or ()), tuple(dropped or ()))
    stop = StoppedAt(place.file, place.pos, place.at_ts)
    with connect(pipelines.source_info(loaded, source, from_environment, lake)) as connection:
        version = refreshed(connection, TableVersion.from_row(rows[-1]), stop, next_id, answers)
    control.append(lake, tables.SCHEMA_HISTORY, [version.to_row()])
    held.release(lake, state)
    typer.echo(
        f"{table} has the columns of {version.file}:{version.pos} from commit_ts {version.commit_ts} on,"
        " and goes on with the next window"
    )


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
    from tidegate.lake import held, judgements
    from tidegate.standing.shown import way_out
    from tidegate.tables import splits

    loaded, lake = open_lake(pipeline)
    named = {pair for text in holds or () for pair in splits(text)}
    if nothing == bool(named):
        raise UsageError("say what it changes", where=loaded.pipeline, remedy="give either --nothing, or --holds DB.T")
    placed = [(state.place, state) for state in held.held_tables(lake).values() if state.place and state.place.file]
    placed_here = [(at, state) for at, state in placed if (at.source, f"{at.file}:{at.pos}") == (source, place)]
    known, here = ([(at, state) for at, state in of if state.judgeable] for of in (placed, placed_here))
    if placed_here and not here:
        other = placed_here[0][1]
        what = f"{other.table} isn't held for what stands at {place} ({other.reason})"
        raise UsageError(what, where=loaded.pipeline, remedy=way_out(other, loaded.lacks_snapshots))
    if not here:
        places = sorted({f"{at.source} {at.file}:{at.pos}" for at, _ in known})
        remedy = f"tables are held at: {', '.join(places)}" if places else "see `tidegate status`"
        raise UsageError(f"no table is held at {source} {place}", where=loaded.pipeline, remedy=remedy)
    _known_only(loaded.pipeline, lake, source, named)
    stay = [state.table for at, state in here if (at.database, at.table) in named]
    who = judgements.record(lake, {at: state.reason for at, state in here}, holds or (), by)
    for _, state in here:
        if state.table not in stay:
            held.release(lake, state, reason=f"{who} judged {source} {place}")
    kept = f", {', '.join(stay)} held" if stay else ""
    typer.echo(f"{len(here) - len(stay)} tables go on with the next window{kept}: judged by {who}")


def _known_only(pipeline: str, lake: LakeFiles, source: str, named: set[tuple[str, str]]) -> None:
    """Refuse unknown names: a typing error would release the meant table without the change."""
    from tidegate.lake.schema_rows import table_rows

    for name in sorted(named):
        if not any(row["source"] == source for row in table_rows(lake, *name)):
            what = f"schema_history has no table {'.'.join(name)} of {source}"
            raise UsageError(what, where=pipeline, remedy="name tables that are captured; --nothing for others")
