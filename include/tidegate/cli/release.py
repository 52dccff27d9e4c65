"""`tidegate release PIPELINE TABLE`: let a held table go on, once its cause is mended.

In:  a pipeline file, a logical table (database.table) that control/table_states names as held.
Out: a `released` event; the next window takes the table's changes up again where they stopped, from bronze.

For a table that waits because the pipeline file asks about its DDL (`ddl: {...: ask}`) it approves the statement. A
table in need of a snapshot can't be released: bronze lacks its rows, and it would be half filled.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli.held import held_table
from tidegate.cli.lake import open_lake


def release(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    table: Annotated[str, typer.Argument(help="Held table, database.table as in silver")],
) -> None:
    """Release a held table after you removed the cause. It continues from bronze."""
    from tidegate.commit_ts import time_text
    from tidegate.lake import held
    from tidegate.tables import State

    loaded, lake = open_lake(pipeline)
    standing = held.release(lake, held_table(loaded.pipeline, lake, table), lacks_snapshots=loaded.lacks_snapshots)
    if standing.state is State.HELD:
        typer.echo(f"{table} is approved, and waits for its rows now: {standing.reason}")
    else:
        since = f"{time_text(standing.applied_ts)} (commit_ts {standing.applied_ts})"
        typer.echo(f"{table} goes on from {since} with apply's next window")
