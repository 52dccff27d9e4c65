"""`tidegate prewrites PIPELINE [--commit ID | --rollback ID]`: prepared transactions without an answer; for a TiDB
those that it can't decide any more.

In:  a pipeline file; with an ID as it is listed, a person's word on an orphan that is parked.
Out: open and parked transactions, one line each; or a row of control/prewrites with the decision and the person's name.
     The waiting tables go on with the next window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.lake import open_desk
from tidegate.errors import HoldChangedError, UsageError

if TYPE_CHECKING:
    from tidegate.segments.prewrites import Prewrite


def prewrites(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    commit: Annotated[str, typer.Option(help="Apply the rows of this parked branch")] = "",
    rollback: Annotated[str, typer.Option(help="Leave out the rows of this parked branch")] = "",
) -> None:
    """List prepared transactions without an answer; decide about orphans with --commit or --rollback."""
    from tidegate.actions.parked import in_full, tables_of
    from tidegate.commit_ts import time_text
    from tidegate.lake.bronze.prewrites import decide, of_pump, unsettled
    from tidegate.tables.actions_table import Act
    from tidegate.tables.prewrites_table import PrewriteState

    desk = open_desk(pipeline)
    waiting = [prewrite for of_source in unsettled(desk.lake).values() for prewrite in of_source if prewrite.waits]
    if not commit and not rollback:
        for waiter in sorted(waiting, key=lambda prewrite: (prewrite.state, prewrite.start_ts)):
            what = f"{waiter.source}  {waiter.id}  prepared {time_text(waiter.start_ts)}  {', '.join(waiter.tables)}"
            typer.echo(f"{waiter.state}  {what}")
        if not waiting:
            typer.echo("no prepared transaction waits for an answer")
        return
    if commit and rollback:
        raise UsageError("--commit and --rollback can't both be given", where="command line", remedy="give one of them")
    orphan = _parked(waiting, commit or rollback, desk.name)
    state, act = (PrewriteState.COMMITTED, Act.COMMIT) if commit else (PrewriteState.ROLLED_BACK, Act.ROLL_BACK)
    with desk.recorded(act, tables_of(desk.pipeline, orphan), in_full(orphan)) as result:
        if not decide(desk.lake, orphan, state, desk.author.user):
            what = f"{orphan.id} of {orphan.source} was answered meanwhile"
            raise HoldChangedError(what, where=desk.name, remedy=f"see `tidegate prewrites {desk.name}`")
        goes_on = "its Pump goes on with that" if of_pump(orphan) else "its tables go on with the next window"
        result.line = f"{orphan.id} of {orphan.source} is {state}; {goes_on}"
    typer.echo(result.line)


def _parked(waiting: list[Prewrite], wanted: str, pipeline: str) -> Prewrite:
    from tidegate.actions.parked import in_full
    from tidegate.tables.prewrites_table import PrewriteState

    parked = [prewrite for prewrite in waiting if prewrite.state is PrewriteState.PARKED]
    matches = [prewrite for prewrite in parked if wanted in (prewrite.id, in_full(prewrite))]
    if len(matches) != 1:
        known = "; ".join(in_full(prewrite) for prewrite in matches or parked) or "none"
        what = "is no parked branch" if not matches else "is parked more than once"
        raise UsageError(
            f"{wanted} {what}", where=pipeline, remedy=f"name one as `tidegate prewrites {pipeline}` lists it: {known}"
        )
    return matches[0]
