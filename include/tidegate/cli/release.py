"""`tidegate release PIPELINE TABLE`: let a held table go on, once its cause is mended.

In:  a pipeline file, a logical table (database.table) that control/table_states names as held.
Out: a `released` event. The next window continues the table from bronze, where it stopped.

If the table waits for the approval of a DDL (`ddl: {...: ask}`), a release approves the statement. A table that needs a
snapshot can't be released: bronze lacks its rows, so silver would be half filled.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli.lake import open_desk


def release(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    table: Annotated[str, typer.Argument(help="Held table, database.table as in silver")],
) -> None:
    """Release a held table after you removed the cause. It continues from bronze."""
    from tidegate.actions import holds

    typer.echo(holds.release(open_desk(pipeline), table))
