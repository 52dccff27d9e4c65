"""`tidegate tail PIPELINE DB.T`: every change of a table that keeps a changelog, as lines, in commit order.

In:  a pipeline file; its lake (keys in the lake's connection, AIRFLOW_CONN_<ID>).
Out: NDJSON on stdout; with --group the place after what was printed, saved in control/subscriptions.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate import pipelines

if TYPE_CHECKING:
    from tidegate.query.subscription import Batch


class LineForm(StrEnum):
    """The form of a printed change."""

    PLAIN = "plain"
    DEBEZIUM = "debezium"
    CANAL = "canal"
    MAXWELL = "maxwell"


def tail(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    table: Annotated[str, typer.Argument(help="Table as in silver, database.table")],
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--from", help="A cut, or a time: print later changes. Default: all, or from the group's position"
        ),
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="Condition in DuckDB's SQL: op = 'delete' OR (after->>'status') = 'paid'")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Only these columns of the rows: a,b")] = None,
    form: Annotated[LineForm, typer.Option("--format", help="Form of a change")] = LineForm.PLAIN,
    group: Annotated[str | None, typer.Option(help="Save the position under this name, and continue from it")] = None,
    follow: Annotated[bool, typer.Option(help="Wait for new changes. Otherwise end at the newest cut")] = True,
    over_gaps: Annotated[bool, typer.Option("--over-gaps", help="Continue over missing changes")] = False,
) -> None:
    """Print every change of a table, one per line."""
    from tidegate.query.formats import column_names, lines

    names = None if columns is None else {name.strip() for name in columns.split(",")}
    reader = pipelines.subscribe(pipeline, table, since=since, group=group, where=where, over_gaps=over_gaps)

    unseen = set(names or ())

    def show(batch: Batch) -> None:
        if unseen and (known := column_names(batch.rows)):
            for name in sorted(unseen - known):
                typer.echo(f"tidegate: note: --columns: no row so far has {name!r}; names are as in the rows", err=True)
            unseen.clear()
        for line in lines(batch.rows, form.value, names):
            print(line)
        sys.stdout.flush()  # before its place is saved

    reader.run(show, follow=follow)
