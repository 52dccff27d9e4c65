"""Which tables are snapshotted without a person's request, and when.

In:  a pipeline file; control/table_states and schema_history for tables, control/snapshots for
     snapshots.
Out: an Outlook per logical table without all its rows; the due physical tables; a person's view of
     them.

A table waits if it is held and only a new read of its rows ends that. It also waits if its newest
version says so and apply hasn't come to it yet, as at a pipeline's first start. The reader requests
the due tables; apply decides nothing. The snapshot of a missing or unreadable table fails, with the
reason in control/snapshots.

Requests must not repeat quickly. If a table's snapshots of the last day failed, or the table was
held again after them, each next request waits longer. A person's requests that ended well don't
count: the table was whole. If a person cancelled a snapshot, or if it would lose a table's past,
only a person requests it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from tidegate.config import OWN_DATABASES, Pipeline, SnapshotMode
from tidegate.lake.figures.status import TableStatus
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import last_states
from tidegate.limits import SNAPSHOT_AGAIN_SECONDS, SNAPSHOT_AGAIN_SECONDS_MAX, SNAPSHOT_NO_READER_SECONDS
from tidegate.mysql.start.recorded import newest_statuses
from tidegate.schema.model.columns import VersionStatus
from tidegate.snapshot.progress.events import SnapshotState, TableProgress
from tidegate.snapshot.progress.shown import ShownSnapshots
from tidegate.standing.shown import only_asked_for
from tidegate.table_names import Physical, splits
from tidegate.tables import State
from tidegate.text_layout import age_text, counted

_DAY: Final = timedelta(days=1)
_CLOCKS: Final = timedelta(hours=1)  # an event from further in the future comes from a wrong clock
_GROWS: Final = 4
_GOES_ON: Final = (State.ACTIVE, State.SNAPSHOT, State.RELEASED, State.DROPPED)


@dataclass(frozen=True, slots=True)
class Outlook:
    """The prospect of snapshots for a logical table that waits for its rows.

    physical: the sources of its rows. due_at: the time of its own request; None without one. why:
    the reason for that, or of the last failed snapshot. tries: snapshots of it within a day, in
    vain. under_way: the state of the present one; "" without one. told_at: its reader's last sign.
    """

    physical: tuple[Physical, ...] = ()
    due_at: datetime | None = None
    why: str = ""
    tries: int = 0
    under_way: str = ""
    told_at: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether it is to be asked for now."""
        return self.due_at is not None and self.due_at <= now


def waiting(pipeline: Pipeline, lake: LakeFiles) -> dict[str, tuple[Physical, ...]]:
    """Logical tables without all their rows, with the physical tables of these rows. Raises
    LakeUnavailable.
    """
    states, patterns = last_states(lake), pipeline.tables
    wanted = {name for name, state in states.items() if state.lacks_rows and not state.lacks_past}
    physical_of: dict[str, list[Physical]] = {}
    gone: set[str] = set()
    servers = [name for name in pipeline.owners if not pipeline.lacks_snapshots(name)]
    for source in servers:
        for (database, table), status in newest_statuses(lake, source).items():
            *pair, is_routed = patterns.logical(database, table)
            name = ".".join(map(str, pair))
            last_state = states.get(name)
            goes_on = last_state is None or (
                is_routed and last_state.state in _GOES_ON
            )  # a shard waits by its version alone
            kept = patterns.keeps(database, table) and database not in OWN_DATABASES  # a TiDB lists its own, too
            if not kept or (name not in wanted and not (goes_on and status.waits)):
                continue
            if status is VersionStatus.DROPPED:
                gone.add(name)
            else:
                physical_of.setdefault(name, []).append(Physical(source, database, table))
    for of in physical_of.values():
        several = len({source for source, *_ in of}) > 1 and not any(
            patterns.logical(*shard.pair).routed for shard in of
        )
        if several or patterns.mixes(shard.pair for shard in of):
            of.clear()  # apply refuses the rows of either
    for name in wanted - physical_of.keys() - gone:  # no version is known of it: the reader asks the server
        places = [Physical(source, *pair) for source in servers for pair in splits(name) if patterns.keeps(*pair)]
        physical_of[name] = [shard for shard in places if not patterns.logical(*shard.pair).routed]
    return {name: tuple(sorted(physical)) for name, physical in physical_of.items()}


def outlooks(
    pipeline: Pipeline, waits: Mapping[str, Collection[Physical]], known: Iterable[TableProgress], now: datetime
) -> dict[str, Outlook]:
    """waits: as waiting() gives them. known: in order of their requests."""
    snapshots: dict[str, list[TableProgress]] = {}
    for table in known:
        if table.source in pipeline.sources:
            snapshots.setdefault(pipeline.tables.logical(*table.name).name, []).append(table)
    return {name: _of_all(pipeline, tuple(of), snapshots.get(name, ()), now) for name, of in waits.items()}


def _of_all(
    pipeline: Pipeline, physical: tuple[Physical, ...], past: Collection[TableProgress], now: datetime
) -> Outlook:
    """The outlook of one table. Each shard of a routed table waits by itself; the first due one
    decides the time.
    """
    if not any(pipeline.tables.logical(*shard.pair).routed for shard in physical):
        return _outlook(pipeline, physical, past, now)
    each = [_outlook(pipeline, (shard,), [t for t in past if (t.source, *t.name) == shard], now) for shard in physical]
    due = [outlook for outlook in each if outlook.is_due(now)]
    if due:
        return replace(due[0], physical=tuple(shard for outlook in due for shard in outlook.physical))
    under_way = [outlook for outlook in each if outlook.under_way]
    later = sorted(
        (outlook for outlook in each if outlook.due_at is not None), key=lambda outlook: outlook.due_at or now
    )
    return (under_way or later or each)[0]


def _outlook(
    pipeline: Pipeline, physical: tuple[Physical, ...], past: Collection[TableProgress], now: datetime
) -> Outlook:
    is_open = [table for table in past if not table.state.is_over]
    if is_open:
        current = is_open[-1]
        heard_at = now if current.waiting else current.told_at  # what waits for apply needs no reader
        return Outlook(physical, None, current.reason, under_way=current.state, told_at=heard_at)
    last = list(past)[-1] if past else None
    in_vain = [
        table
        for table in past
        if now - _DAY < table.told_at <= now + _CLOCKS and (table.by_itself or table.state is not SnapshotState.DONE)
    ]
    tries = len(in_vain)
    why = last.reason if last is not None and last.state is not SnapshotState.DONE else ""
    for stops in (
        "snapshot.mode is manual" if pipeline.snapshot.mode is SnapshotMode.MANUAL else "",
        "its snapshot was cancelled by a person" if last is not None and last.by_hand else "",
        "" if physical else "no source has it as a table of its own",
    ):
        if stops:
            return Outlook(physical, None, stops, tries)
    if not in_vain:
        return Outlook(physical, now, why, tries)
    pause = min(SNAPSHOT_AGAIN_SECONDS * _GROWS ** min(tries - 1, 10), SNAPSHOT_AGAIN_SECONDS_MAX)
    return Outlook(physical, in_vain[-1].told_at + timedelta(seconds=pause), why, tries)


def seen(
    pipeline: Pipeline, lake: LakeFiles, statuses: Iterable[TableStatus], snapshots: ShownSnapshots | None = None
) -> tuple[TableStatus, ...]:
    """Tables as people see them: a table that needs no person is shown as waiting for its snapshot,
    and not as held.

    One whose snapshot was tried in vain, or is taken by no reader, stays held, and says so. One of
    a source without snapshots stays as it is. snapshots: of a caller looking again. Raises
    LakeUnavailable.
    """
    waits = waiting(pipeline, lake)
    wanted = {shard for shards in waits.values() for shard in shards}
    known = (snapshots or ShownSnapshots(lake)).tables(wanted)
    by_table = outlooks(pipeline, waits, known, now := datetime.now(UTC))
    return tuple(
        _seen(pipeline.pipeline, status, by_table[status.table], now)
        if status.table in by_table and not pipeline.lacks_snapshots(status.source)
        else status
        for status in statuses
    )


def _seen(pipeline: str, status: TableStatus, outlook: Outlook, now: datetime) -> TableStatus:
    if status.state is not State.HELD:
        return status
    since = outlook.told_at or (datetime.fromisoformat(status.since) if status.since else now)
    silent = (now - since).total_seconds()
    if silent > SNAPSHOT_NO_READER_SECONDS and outlook.under_way != SnapshotState.PAUSED and _needs_reader(outlook):
        what = f"for {silent:.0f} s no reader has said anything of its snapshot: is one running, or was it refused?"
        return replace(
            status, way_out=f"{what} `tidegate snapshot run {pipeline}` reads, or says why not; {status.way_out}"
        )
    if outlook.under_way:
        what = f"its snapshot is {outlook.under_way}, and apply has taken none of its rows yet"
        return replace(status, state=State.SNAPSHOT, reason=f"{what}: {status.reason}", way_out="")
    if outlook.due_at is not None and not outlook.tries:
        what = "its snapshot begins by itself as soon as a reader runs"
        return replace(status, state=State.SNAPSHOT, reason=f"{what}: {status.reason}", way_out="")
    said = outlook.why
    if outlook.due_at is not None:
        wait = max(0.0, (outlook.due_at - now).total_seconds())
        tries = f"{counted(outlook.tries, 'snapshot', 'snapshots')} within a day"
        last = "the last one: " * (outlook.tries > 1) + (outlook.why or "the table was held again")
        begins = f"in {age_text(wait)}" if wait >= 1 else "as soon as a reader runs"
        said = f"after {tries} ({last}) the next one begins by itself {begins}"
    way = status.way_out if outlook.due_at is not None else only_asked_for(status.way_out)
    return replace(status, way_out=f"{said}; {way}" if said else way)


def _needs_reader(outlook: Outlook) -> bool:
    return bool(outlook.under_way) or (outlook.due_at is not None and not outlook.tries)


def due(
    pipeline: Pipeline, waits: Mapping[str, Collection[Physical]], known: Iterable[TableProgress]
) -> list[Physical]:
    """Physical tables to be asked for now. waits, known: as in outlooks()."""
    now = datetime.now(UTC)
    by_table = outlooks(pipeline, waits, known, now)
    return sorted(physical for outlook in by_table.values() if outlook.is_due(now) for physical in outlook.physical)
