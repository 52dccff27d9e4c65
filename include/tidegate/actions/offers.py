"""The actions that fit a table's standing, with the text of the button and of the question before it.

In:  a pipeline; a table's Standing, its snapshots that aren't over.
Out: Offers. The action itself checks again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tidegate.actions.holds import refreshable
from tidegate.config import Pipeline
from tidegate.snapshot.progress.events import SnapshotState, TableProgress
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State
from tidegate.tables.actions_table import Act

_READS = (SnapshotState.REQUESTED, SnapshotState.RUNNING)
_COLUMNS = (Cause.MISMATCH, Cause.DDL_NOT_READ)
# Causes that end in another way than by a plain release.
_OTHERWISE = (Cause.DDL_ASKS, Cause.PARKED, Cause.WAITS_WITH, *_COLUMNS)


@dataclass(frozen=True, slots=True)
class Offer:
    """label: of the button. effect: what it will do, in a sentence or two."""

    act: Act
    label: str
    effect: str


def offers(
    pipeline: Pipeline, table: str, standing: Standing | None, snapshots: Collection[TableProgress]
) -> list[Offer]:
    """Offers that fit, the likely one first. standing: None for a table without a row; snapshots: of this table."""
    of_hold = list(_of_hold(pipeline, table, standing, snapshots)) if standing is not None else []
    return [*of_hold, *_of_snapshots(pipeline, table, snapshots)]


def _of_hold(
    pipeline: Pipeline, table: str, standing: Standing, snapshots: Collection[TableProgress]
) -> Iterator[Offer]:
    if standing.state is not State.HELD:
        return
    source = standing.place.source if standing.place else ""
    catches_up = f"{table} goes on with apply's next window, and catches up from bronze. Other tables aren't touched."
    if standing.lacks_rows and not pipeline.lacks_snapshots(source) and not snapshots:
        yield Offer(
            Act.SNAPSHOT,
            "Read its rows",
            f"{pipeline.pipeline}__snapshot begins within about a minute. It reads all rows of {table} at the source by"
            " SELECT, without locks. The table continues when they are in silver.",
        )
    if standing.cause is Cause.DDL_ASKS:
        yield Offer(Act.APPROVE, "Approve the statement", f"Silver follows the statement. {catches_up}")
    if refreshable(standing) and standing.cause in _COLUMNS:
        yield Offer(
            Act.REFRESH, "Ask the server for its columns", f"The server's columns are taken from here on. {catches_up}"
        )
    if standing.judgeable:
        yield Offer(
            Act.JUDGE,
            "Say what it changes",
            "Your word is recorded for this place in the log. Tables that it doesn't change go on with apply's next"
            " window; those that it changes stay held.",
        )
    elif standing.releasable and not standing.lacks_rows and standing.cause not in _OTHERWISE:
        yield Offer(Act.RELEASE, "Release", f"{catches_up} If its cause is still there, it is held again.")


def _of_snapshots(pipeline: Pipeline, table: str, snapshots: Collection[TableProgress]) -> Iterator[Offer]:
    if any(progress.state in _READS and progress.left for progress in snapshots):
        effect = "Reading stops after the present wave, until somebody resumes it. What is read stays."
        yield Offer(Act.PAUSE, "Pause the snapshot", effect)
    if any(progress.state is SnapshotState.PAUSED for progress in snapshots):
        effect = f"{pipeline.pipeline}__snapshot goes on where it stopped, within about a minute."
        yield Offer(Act.RESUME, "Resume the snapshot", effect)
    if snapshots:
        effect = (
            f"The snapshot of {table} is given up. If the table lacks rows, it is held until a new one is asked for."
        )
        yield Offer(Act.CANCEL, "Cancel the snapshot", effect)
