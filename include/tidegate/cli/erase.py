"""`tidegate erase PIPELINE --table DB.T --where CONDITION`: remove a person's rows from the whole lake at once.

In:  a pipeline file; the source's connection in AIRFLOW_CONN_<ID>, the lake's keys likewise. The source has no such
     row any more, and apply has come past that.
Out: lines, the last one the certificate as JSON; a row of control/actions, in which the condition is a hash. Exit
     code 2 where nothing was changed, and the line says why; 75 where another job is at work.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.lake import open_desk

if TYPE_CHECKING:
    from tidegate.mysql.connecting.connection import ConnectionInfo


def erase(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    *,
    table: Annotated[str, typer.Option(help="The table, database.table, as at the source")],
    where: Annotated[str, typer.Option(help='Which rows, as a condition of `tables.rows`: "id = 4711"')],
    follow_keys: Annotated[
        bool, typer.Option("--follow-keys", help="Also rows of other tables that refer to these, by foreign keys")
    ] = False,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for capture and apply to come so far, and for apply to end", min=0)
    ] = 600.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be erased")] = False,
) -> None:
    """Erase a person's rows from bronze, snapshots and all versions of silver. Delete them at the source first."""
    from tidegate import pipelines
    from tidegate.actions.erase_order import carry_out
    from tidegate.erase.erasure import Order

    desk = open_desk(pipeline)

    def info(source: str) -> ConnectionInfo:
        return pipelines.sql_info(desk.pipeline, source, desk.connections, desk.lake)

    def tell(line: str) -> None:
        typer.echo(line, err=True)

    done = carry_out(desk, Order(table, where, wait, follow_keys), info, tell, dry_run=dry_run)
    for line in done.lines:
        typer.echo(f"{'would be erased' if dry_run else 'erased'}: {line}")
    short, proof = done.order[:12], done.proof
    typer.echo(f"the order is {short}... in control/actions: the SHA-256 of {proof!r}, the table and the condition")
    if not dry_run:
        typer.echo(f"certificate: {json.dumps(done.certificate)}")
