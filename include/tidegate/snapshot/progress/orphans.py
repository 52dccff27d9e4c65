"""Chunks beyond any rebuild leave bronze: of waves refused by apply, or ended with their reader, or
out of every rebuild's reach.

In:  bronze/chunks, control/snapshots, the time, where bronze begins.
Out: removable files, all of whose chunks are such; a commit without them.

Apply answers each wave once per table. If apply took the wave, its chunks stay as long as bronze
has the segments from its low mark on: a rebuild needs both. If there is no answer, they stay while
the snapshot isn't over, since a held table may take them when it goes on. A repair has no request
in control/snapshots, so only an answer ends it. Therefore unanswered chunks also go by age. Nothing
younger than a few days goes: a reader lands chunks before any event names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from types import MappingProxyType
from urllib.parse import unquote

from tidegate.delta.cleaning.vacuum import unneeded
from tidegate.delta.log import Change
from tidegate.delta.properties import set_properties
from tidegate.delta.table.actions import moved
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState, file_key
from tidegate.errors import LakeUnavailable
from tidegate.lake.bronze.log import APPEND_ONLY
from tidegate.lake.files import LakeFiles
from tidegate.limits import SNAPSHOT_ORPHAN_DAYS
from tidegate.snapshot.chunks.chunk import Chunk
from tidegate.snapshot.chunks.chunk_table import chunks_in
from tidegate.snapshot.progress.event_log import EventLog
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, TableKey, progress
from tidegate.tables import CHUNKS

_Pair = tuple[str, str, str, str]  # token, source and table
_Wave = tuple[str, str]  # token and source


def orphan_files(
    lake: LakeFiles, now: datetime, begins: Mapping[str, int] = MappingProxyType({}), keep_days: int = 0
) -> list[LiveFile]:
    """begins: source -> the commit_ts at or below which bronze's segments are gone; keep_days:
    apply's chunks stay as long in any case. Raises LakeUnavailable, StreamCorrupt.
    """
    state = lake.log(CHUNKS.path).state()
    day = (now - timedelta(days=SNAPSHOT_ORPHAN_DAYS)).date()
    old = [file for file in state.files if _day(file) < day] if state.created else []
    if not old:
        return []
    _, events = EventLog(lake).look()
    judge = _Judge(events, begins)
    whole, kept_since = judge.whole(state.files), (now - timedelta(days=keep_days)).date()

    def goes(file: LiveFile) -> bool:
        taken = _day(file) < kept_since  # whether it may go although apply took it
        if _wave(file) in whole:
            return taken and judge.is_below(_wave(file))
        return all(judge.is_orphan(chunk, taken=taken) for chunk in chunks_in(lake, _source(file), unquote(file.path)))

    return [file for file in old if goes(file)]


def remove(lake: LakeFiles, files: Iterable[LiveFile]) -> None:
    """Take files out of the table; delta.appendOnly is lifted for it. Raises CommitConflict,
    LakeUnavailable.
    """

    def decide(read: TableState) -> Change:
        gone = [read.live[file_key(file.action)] for file in files if file_key(file.action) in read.live]
        lifted = {"metaData": {**read.metadata, "configuration": read.configuration | {APPEND_ONLY: "false"}}}
        return Change([lifted, *moved(gone, [], data_change=True)], "DELETE")

    lake.log(CHUNKS.path).update(decide)
    keep_rows(lake)


def keep_rows(lake: LakeFiles) -> None:
    """Let nobody delete from the table: as it was made, whatever ended the lifting process. Raises as remove()."""
    log = lake.log(CHUNKS.path)
    if log.state().created:
        set_properties(log, {APPEND_ONLY: "true"})


def vacuum_chunks(lake: LakeFiles) -> list[str]:
    """Delete files out of the table, or never in it, for some days. Raises LakeUnavailable."""
    log = lake.log(CHUNKS.path)
    if not log.state().created:
        return []
    try:
        written_ms = lake.written_ms(CHUNKS.path)
    except OSError as error:
        raise LakeUnavailable(f"can't be listed: {error}", where=lake.uri(CHUNKS.path)) from error
    gone = unneeded(log, written_ms, keep_seconds=timedelta(days=SNAPSHOT_ORPHAN_DAYS).total_seconds())
    for path in gone:
        folder, _, name = path.rpartition("/")
        lake.store(f"{CHUNKS.path}/{folder}".rstrip("/")).delete([name])
    return gone


class _Judge:
    def __init__(self, events: Iterable[SnapshotEvent], begins: Mapping[str, int]) -> None:
        said, self._begins = list(events), begins
        self._applied = {_pair(event) for event in said if event.event is EventKind.APPLIED}
        self._refused = {_pair(event) for event in said if event.event is EventKind.REFUSED}
        self._waves = [event for event in said if event.event is EventKind.WAVE]
        self._tables = progress(said)
        goes_on = {key.snapshot for key, table in self._tables.items() if not table.state.is_over}
        self._lows = {  # of waves that apply took, where nothing of their snapshot is to come
            (event.token, event.source): event.low_ts
            for event in said
            if event.event is EventKind.APPLIED and event.low_ts is not None and event.snapshot not in goes_on
        }

    def whole(self, files: Iterable[LiveFile]) -> set[_Wave]:
        """Waves taken by apply with all their landed chunks: none of their files has to be opened to know it."""
        landed = Counter[_Wave]()
        for file in files:
            landed[_wave(file)] += file.rows or 0
        counted, doubted = Counter[_Wave](), {pair[:2] for pair in self._refused}
        for wave in self._waves:
            counted[wave.token, wave.source] += wave.chunks
            if _pair(wave) not in self._applied:
                doubted.add((wave.token, wave.source))
        return {wave for wave, chunks in counted.items() if chunks == landed[wave] and wave not in doubted}

    def is_below(self, wave: _Wave) -> bool:
        """Whether bronze begins above the low mark of a wave taken by apply."""
        low_ts = self._lows.get(wave)
        return low_ts is not None and low_ts <= self._begins.get(wave[1], 0)

    def is_orphan(self, chunk: Chunk, *, taken: bool) -> bool:
        """taken: whether chunks taken by apply may go, too."""
        pair = (chunk.low_token, chunk.source, *chunk.name)
        if pair in self._applied:
            return taken and self.is_below(pair[:2])
        table = self._tables.get(TableKey(chunk.snapshot, chunk.source, *chunk.name))
        return pair in self._refused or table is None or table.state.is_over


def _pair(event: SnapshotEvent) -> _Pair:
    return event.token, event.source, *event.name


def _day(file: LiveFile) -> date:
    return date.fromisoformat(file.action["partitionValues"]["day"])


def _wave(file: LiveFile) -> _Wave:
    """The owner of a file's chunks: a landing is of one wave. A file without such a word has
    none.
    """
    low, high = file.bounds("low_token") or ("", "")
    return (str(low) if low == high else "", _source(file))


def _source(file: LiveFile) -> str:
    return str(file.action["partitionValues"]["source"])
