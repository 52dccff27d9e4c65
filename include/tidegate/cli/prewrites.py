"""`tidegate prewrites PIPELINE [--commit ID | --rollback ID]`: prepared transactions without an answer; for a TiDB
those beyond its own knowledge.

In:  a pipeline file; with an ID as it is listed, a person's word on an orphan that is parked.
Out: open and parked transactions, one line each; or a row of control/prewrites with the decision and the person's
     name. The tables that wait for it go on with the next window.
"""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.lake import open_lake
from tidegate.errors import UsageError

if TYPE_CHECKING:
    from tidegate.segments.prewrites import Prewrite


def prewrites(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    commit: Annotated[str, typer.Option(help="Apply the rows of this parked branch")] = "",
    rollback: Annotated[str, typer.Option(help="Leave out the rows of this parked branch")] = "",
) -> None:
    """List prepared transactions without an answer; decide about orphans with --commit or --rollback."""
    from tidegate.commit_ts import time_text
    from tidegate.lake.control import ControlTables
    from tidegate.lake.prewrites import decided, of_pump, record, unsettled
    from tidegate.prewrites_table import PrewriteState

    loaded, lake = open_lake(pipeline)
    waiting = [one for found in unsettled(lake).values() for one in found if one.waits]
    if not commit and not rollback:
        for one in sorted(waiting, key=lambda one: (one.state, one.start_ts)):
            what = f"{one.source}  {one.id}  prepared {time_text(one.start_ts)}  {', '.join(one.tables)}"
            typer.echo(f"{one.state}  {what}")
        if not waiting:
            typer.echo("no prepared transaction waits for an answer")
        return
    if commit and rollback:
        raise UsageError("--commit and --rollback", where="command line", remedy="give one of them")
    orphan = _parked(waiting, commit or rollback, loaded.pipeline)
    state = PrewriteState.COMMITTED if commit else PrewriteState.ROLLED_BACK
    record(ControlTables(lake), [decided(orphan, state, getpass.getuser())])
    goes_on = "its Pump goes on with that" if of_pump(orphan) else "its tables go on with the next window"
    typer.echo(f"{orphan.id} of {orphan.source} is {state}; {goes_on}")


def _parked(waiting: list[Prewrite], wanted: str, pipeline: str) -> Prewrite:
    from tidegate.prewrites_table import PrewriteState

    parked = [one for one in waiting if one.state is PrewriteState.PARKED]
    found = [one for one in parked if wanted in (one.id, _in_full(one))]
    if len(found) != 1:
        known = "; ".join(_in_full(one) for one in found or parked) or "none"
        what = "is no parked branch" if not found else "is parked more than once"
        raise UsageError(f"{wanted} {what}", where=pipeline, remedy=f"name one of them, as here: {known}")
    return found[0]


def _in_full(one: Prewrite) -> str:
    """Two sources may have branches of one name, and a name may come again."""
    return f"{one.source} {one.id} {one.start_ts}"
