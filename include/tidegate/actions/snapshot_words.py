"""A person's words about snapshots: ask for them, begin them again, pause, resume and cancel them.

In:  a Desk; logical tables by name or pattern, none for all that the word fits.
Out: events in control/snapshots; a line for the person. The events wake a reader, unless the caller is it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from tidegate import pipelines
from tidegate.actions.desk import Desk
from tidegate.config import named_tables
from tidegate.errors import UsageError
from tidegate.snapshot.progress.events import EventKind, SnapshotState, TableProgress
from tidegate.snapshot.progress.requests import request, tell_tables, told
from tidegate.snapshot.work import SnapshotWork, logical_name, newest
from tidegate.tables.actions_table import Act
from tidegate.text_layout import counted

_NAMED_MAX: Final = 10
# A word -> its event, and the states of snapshots that it fits.
WORDS: Final[Mapping[Act, tuple[EventKind, tuple[SnapshotState, ...]]]] = {
    Act.PAUSE: (EventKind.PAUSED, (SnapshotState.REQUESTED, SnapshotState.RUNNING)),
    Act.RESUME: (EventKind.RESUMED, (SnapshotState.PAUSED,)),
    Act.CANCEL: (
        EventKind.CANCELLED,
        (SnapshotState.REQUESTED, SnapshotState.RUNNING, SnapshotState.PAUSED, SnapshotState.ENDED),
    ),
}


def work_of(desk: Desk, report: Callable[[str], None]) -> SnapshotWork:
    """The work on the pipeline's snapshots. Raises ConfigError for a missing connection."""
    for source in desk.pipeline.owners:
        if not desk.pipeline.lacks_snapshots(source):
            pipelines.sql_info(desk.pipeline, source, desk.connections)  # so that a missing connection is reported now
    return SnapshotWork(
        desk.pipeline,
        desk.lake,
        lambda source: pipelines.sql_info(desk.pipeline, source, desk.connections, desk.lake),
        report,
        replica_of=lambda source: pipelines.replica_info(desk.pipeline, source, desk.connections),
    )


def start(desk: Desk, work: SnapshotWork, names: Collection[str] = (), *, exact: bool = False) -> str:
    """Ask for snapshots; without names of all tables that wait for one. Raises as SnapshotWork.wanted.

    exact: no name is a pattern, and a table of which nothing is left to ask for is an error, a UsageError.
    """
    new = work.wanted(names)
    if exact:
        new = [physical for physical in new if desk.pipeline.tables.logical(*physical.pair).name in names]
        if not new:
            what = f"{', '.join(names)}: no table at a source is left to ask for"
            raise UsageError(what, where=desk.name, remedy=f"see `tidegate snapshot status {desk.name}`")
    asked = f"{counted(len(new), 'table is', 'tables are')} asked for"
    reads = "what is asked for and not read yet goes on"
    if exact:  # as the page, which reads nothing itself
        reads = f"{desk.name}__snapshot begins within about a minute"
    line = f"{asked}; {reads}"
    if new:
        logical = sorted({desk.pipeline.tables.logical(*physical.pair).name for physical in new})
        with desk.recorded(Act.SNAPSHOT, tuple(logical)) as result:
            request(desk.lake, desk.name, new)
            result.line = line
    return line


def going_on(desk: Desk, name: str) -> list[str]:
    """The ids of a logical table's snapshots that aren't over."""
    going = [progress for progress in told(desk.lake, desk.name) if not progress.state.is_over]
    return [progress.snapshot for progress in going if logical_name(desk.pipeline, progress) == name]


def restart(desk: Desk, work: SnapshotWork, names: Collection[str] = ()) -> str:
    """Begin again from the start; without names all snapshots that didn't end well. "" if there are none."""
    last = newest(told(desk.lake, desk.name))
    again = [progress for progress in last if progress.state is not SnapshotState.DONE]
    if names:
        named = named_tables(
            names,
            {logical_name(desk.pipeline, progress) for progress in last},
            where=desk.name,
            lacks="{} had no snapshot",
            remedy="tidegate snapshot start begins one",
        )
        again = [progress for progress in last if logical_name(desk.pipeline, progress) in named]
    if not again:
        return ""
    names = sorted({logical_name(desk.pipeline, progress) for progress in again})
    with desk.recorded(Act.RESTART, tuple(names)) as result:
        is_open = [progress for progress in again if not progress.state.is_over]
        tell_tables(desk.lake, desk.name, is_open, EventKind.CANCELLED, "it is begun from its start again")
        new = work.request(names)
        result.line = f"{counted(len(new), 'table is', 'tables are')} asked for from the beginning"
        return result.line


def tell(
    desk: Desk,
    act: Act,
    names: Collection[str],
    report: Callable[[str], None] = lambda _: None,
    *,
    exact: bool = False,
) -> str:
    """Say a word of WORDS; report: is given a line about tables that it can't fit any more. exact: no name is a
    pattern. Raises UsageError.
    """
    kind, states = WORDS[act]
    fit = [progress for progress in told(desk.lake, desk.name) if progress.state in states]
    if exact:
        fit = [progress for progress in fit if logical_name(desk.pipeline, progress) in names]
    known = sorted({logical_name(desk.pipeline, progress) for progress in fit})
    more = f" and {len(known) - _NAMED_MAX} more" if len(known) > _NAMED_MAX else ""
    named = named_tables(
        names,
        known,
        where=desk.name,
        lacks=f"{{}} has no snapshot that can be {kind}",
        remedy=f"tables with one: {', '.join(known[:_NAMED_MAX]) or 'none'}{more}",
    )
    meant = [progress for progress in fit if not names or logical_name(desk.pipeline, progress) in named]
    if kind is EventKind.PAUSED and (read := _names(desk, [each for each in meant if not each.left])):
        meant = [progress for progress in meant if progress.left]
        report(f"nothing is left to read, so these end by themselves once apply has taken it: {', '.join(read)}")
    line = f"{kind}: {', '.join(_names(desk, meant)) or 'no table'}"
    if exact and not meant:
        raise UsageError(line, where=desk.name, remedy="nothing is left to read")
    if meant:
        with desk.recorded(act, tuple(_names(desk, meant))) as result:
            tell_tables(desk.lake, desk.name, meant, kind)
            result.line = line
    return line


def _names(desk: Desk, meant: Collection[TableProgress]) -> list[str]:
    return [logical_name(desk.pipeline, progress) for progress in meant]
