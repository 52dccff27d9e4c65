"""Whether anything is missing: the lake's positions compared with the sources' own.

In:  a pipeline, its lake, a function that asks a source (a source without an answer can't be
     asked).
Out: a CaptureStanding, for `tidegate status` and the page in Airflow. Nothing is written.

A source without writes sends nothing, so the newest time in the lake gets older although nothing is
missing. In the lake alone, a quiet source looks like a stuck capture. Only the server can tell them
apart, by the end of its binlog.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from tidegate.capture import purging, status_file
from tidegate.capture.purging import Binlogs
from tidegate.capture.silence import LastSign, LeasedWork, LeaseHolder, Silence, last_sign
from tidegate.capture.source import Retention
from tidegate.capture.unheard import unheard
from tidegate.capture.value_log.folder import value_log_folder
from tidegate.commit_ts import physical_ms, time_text
from tidegate.config import Pipeline
from tidegate.delta.leases.lease_entry import LeaseEntry
from tidegate.lake.figures import status as lake_status
from tidegate.lake.figures.status import SourceStatus, TableStatus
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import newest_sign
from tidegate.lake.silver.folders import rebuilt_tables
from tidegate.lake.standing import followed
from tidegate.limits import TIMESTAMP_AHEAD_SECONDS_MAX
from tidegate.position import Position
from tidegate.remedy import PUT_BACK
from tidegate.table_names import splits
from tidegate.tables import State

# The name of a source -> its answer. A failure is an answer, too.
Ask = Callable[[str], "SourceAnswer"]


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A source's answer. tables: (database, table) the pipeline keeps; None if they aren't known,
    or are too many to be listed. error: why it gave no answer. refused: a person must end that.
    fault: the error's class.

    clock_ahead_seconds: its clock minus this machine's. host: the host that answered. binlogs: None
    if the account may not see them.
    """

    server_id: int = 0
    position: str = ""
    tables: tuple[tuple[str, str], ...] | None = None
    error: str = ""
    clock_ahead_seconds: float = 0.0
    host: str = ""
    binlogs: Binlogs | None = None
    refused: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True)
class SourceStanding:
    """nothing_missing: whether bronze ends where the server's binlog does; None if the server could
    not be asked.

    lag_seconds: 0 if nothing is missing; else the age of the newest time up to which bronze is
    complete; None before the first segment. changed_at: bronze's last transaction. behind_ts: for a
    source left behind by the cut, up to where silver has all of it: its tables wait there. unheard:
    what to do about a silent Pump; "" for others. capture_dag: the id of its DAG. purge: when the
    server would purge uncaptured log, if capture stopped now. behind_bytes: of its binlog, not
    captured. unapplied_bytes: of bronze, not in silver, counted by whole files. None if it isn't
    known. is_down: it doesn't answer, which may pass. lost: from lost_words. rests_since: when its
    capture's last run ended, Unix time; None while one goes on.
    """

    source: str
    captured: SourceStatus | None
    server: SourceAnswer
    nothing_missing: bool | None
    lag_seconds: float | None
    changed_at: str
    behind_ts: int | None = None
    unheard: str = ""
    capture_dag: str = ""
    purge: Retention | None = None
    behind_bytes: int | None = None
    unapplied_bytes: int = 0
    is_down: bool = False
    lost: str = ""
    rests_since: float | None = None

    @property
    def is_purged(self) -> bool:
        """Whether the server has purged the binlog file of capture's place, and has newer ones."""
        return self.nothing_missing is False and self.purge is not None and self.purge.rule == "gone"


# For a person who misses a table of CaptureStanding.unseen.
UNSEEN_WORDS: Final = "a snapshot brings rows from before capture; an empty table comes with its first change"


@dataclass(frozen=True, slots=True)
class CaptureStanding:
    """lag_seconds: of silver, without held tables; None before the first cut.

    unseen: logical tables of a source no cut has, since they had no change yet. rebuilt: paths of
    the tables that `tidegate rebuild` made beside silver. ahead: the cut comes from the future of a
    TiDB or a changefeed, and apply doesn't go on. silences: capture of a source, or apply, that has
    stopped. holders: those that are going on. first_cut_at: when the first cut was published, Unix
    time; None before it.
    """

    pipeline: str
    cut_ts: int
    lag_seconds: float | None
    sources: tuple[SourceStanding, ...]
    tables: tuple[TableStatus, ...]
    unseen: tuple[str, ...]
    rebuilt: tuple[str, ...]
    ahead: bool = False
    silences: tuple[Silence, ...] = ()
    holders: tuple[LeaseHolder, ...] = ()
    first_cut_at: float | None = None

    def silence(self, work: LeasedWork, of: str) -> Silence | None:
        """The silence of a source's capture, or of the pipeline's apply; None while it is going on."""
        return next((each for each in self.silences if (each.work, each.of) == (work, of)), None)

    @property
    def held(self) -> list[TableStatus]:
        return [table for table in self.tables if table.state is State.HELD]

    @property
    def unapplied_bytes(self) -> int:
        """Bytes of bronze that silver lacks, over all sources."""
        return sum(source.unapplied_bytes for source in self.sources)

    @property
    def alive(self) -> list[str]:
        """Names of the tables that still get changes."""
        return [table.table for table in self.tables if not table.has_ended]

    @property
    def left_behind(self) -> list[SourceStanding]:
        """Sources the cut has left behind."""
        return [source for source in self.sources if source.behind_ts is not None]

    @property
    def skew_seconds(self) -> float:
        """The largest difference between the clocks of the sources that answered. Rows dated by the
        fastest clock become visible later by it.
        """
        ahead = [source.server.clock_ahead_seconds for source in self.sources if not source.server.error]
        return max(ahead) - min(ahead) if ahead else 0.0

    @property
    def nothing_missing(self) -> bool:
        """Whether every source is captured to its end, and silver has all of it, except held
        tables.
        """
        return bool(self.sources) and self.lag_seconds == 0 and not self.ahead

    def seconds_behind(self, table: TableStatus) -> float | None:
        """The lag of one table, by this machine's clock; None before its first rows."""
        if not table.applied_ts:
            return None
        # A held table whose rows are asked for is shown as being filled, and hasn't gone on yet.
        is_asked_for = table.state is State.SNAPSHOT and table.applied_ts < self.cut_ts
        stands = table.state.waits or is_asked_for
        return _age(table.applied_ts) if stands else self.lag_seconds

    def to_json(self) -> dict[str, Any]:
        """Plain values. A source's state in bronze is in its own entry."""
        sources = []
        for source in self.sources:
            captured = asdict(source.captured) if source.captured else {}
            server = asdict(replace(source.server, binlogs=None))
            del server["binlogs"]  # thousands of files; `purge` says what they mean
            row = asdict(replace(source, captured=None, server=SourceAnswer())) | {"server": server}
            del row["captured"]
            if_down = purging.if_down(source.purge) if source.purge else ""
            sources.append({**captured, **row, "source": source.source, "if_down": if_down})
        tables = [asdict(table) | {"lag_seconds": self.seconds_behind(table)} for table in self.tables]
        return {
            "cut_ts": self.cut_ts,
            "cut_at": time_text(self.cut_ts),
            "lag_seconds": self.lag_seconds,
            "nothing_missing": self.nothing_missing,
            "ahead": self.ahead,
            "silences": [each.plain(time.time()) for each in self.silences],
            "holders": [asdict(each) for each in self.holders],
            "sources": sources,
            "skew_seconds": self.skew_seconds,
            "tables": tables,
            "unseen": list(self.unseen),
            "rebuilt": list(self.rebuilt),
        }


def standing(pipeline: Pipeline, lake: LakeFiles, ask: Ask, state_dir: Path | None = None) -> CaptureStanding:
    """state_dir: of this machine's value logs, if it may have some. Raises LakeUnavailable, OSError
    if the lake can't be read.
    """
    servers = {name: ask(name) for name in pipeline.sources}
    cut_ts = lake_status.cut_ts(lake)
    captured = {status.source: status for status in lake_status.sources(lake, cut_ts)}
    behind = followed.load(lake).behind
    silent, leases = unheard(pipeline, captured, time.time()), _leases(pipeline, lake)
    sources = tuple(
        replace(
            source_standing(name, captured.get(name), server, behind.get(name)),
            unheard=silent.get(name, ""),
            is_down=bool(server.error) and not (server.refused or pipeline.sources[name].traits.pushes),
            capture_dag=pipeline.capture_dag(name),
            lost=lost_words(pipeline, name, state_dir) if name not in captured and state_dir else "",
            rests_since=_rests_since(leases[LeasedWork.CAPTURE, name]),
        )
        for name, server in servers.items()
    )
    tables = tuple(lake_status.table_statuses(lake, pipeline.lacks_snapshots))
    at_sources = {pipeline.tables.logical(*pair).name for server in servers.values() for pair in server.tables or ()}
    unseen = tuple(sorted(at_sources - {table.table for table in tables}))
    databases = set[str]()
    for table in tables:
        databases.update(dict(splits(table.table)))
    rebuilt = tuple(rebuilt_tables(lake, sorted(databases)))
    outside = any(not entry.traits.bounds_timestamps for entry in pipeline.sources.values())
    ahead = outside and physical_ms(cut_ts) / 1000 > time.time() + TIMESTAMP_AHEAD_SECONDS_MAX
    silences = tuple(_silences(pipeline, leases, cut_ts, sources))
    return CaptureStanding(
        *(pipeline.pipeline, cut_ts, _lag(cut_ts, sources), sources, tables, unseen, rebuilt, ahead),
        silences=silences,
        holders=tuple(_holders(leases, silences)),
        first_cut_at=lake_status.first_cut_at(lake),
    )


def lost_words(pipeline: Pipeline, source: str, state_dir: Path) -> str:
    """The ways out of a lake without this source, if this machine has captured the source into some
    lake; "" if it hasn't.
    """
    folder = value_log_folder(pipeline, source, state_dir)
    last = status_file.read(folder)
    if last is None or not last.landed_seq:
        return ""
    before = "this machine has captured it before, and the lake has nothing of it"
    return f"{before}: {PUT_BACK}; for a new lake move {folder} away"


# The newest entry of each lease; None before the first.
_Leases = Mapping[tuple[LeasedWork, str], LeaseEntry | None]


def _leases(pipeline: Pipeline, lake: LakeFiles) -> _Leases:
    names = [*((LeasedWork.CAPTURE, source) for source in pipeline.sources), (LeasedWork.APPLY, pipeline.pipeline)]
    return {(work, of): newest_sign(lake, of, work) for work, of in names}


def _rests_since(entry: LeaseEntry | None) -> float | None:
    return entry.written_ms / 1000 if entry is not None and entry.released else None


def _holders(leases: _Leases, silences: Collection[Silence]) -> Iterator[LeaseHolder]:
    silent = {(each.work, each.of) for each in silences}
    for (work, of), entry in leases.items():
        if entry is not None and not entry.released and (work, of) not in silent:
            yield LeaseHolder(work, of, entry.process.host, entry.since_ms / 1000)


def _silences(
    pipeline: Pipeline, leases: _Leases, cut_ts: int, sources: tuple[SourceStanding, ...]
) -> Iterator[Silence]:
    """Capture of each source, and apply, if it has stopped."""
    now, name = time.time(), pipeline.pipeline
    for source in sources:
        entry = leases[LeasedWork.CAPTURE, source.source]
        # It isn't known since when the server is ahead: for a capture at rest, perhaps only since now.
        waits = source.nothing_missing is False and pipeline.watched_while_at_rest(source.source) is None
        rests = pipeline.capture.run_for_seconds
        sign = last_sign(entry, now, waits_since=0.0 if waits else None, rests_seconds=rests)
        # While a source is down, capture tries again and again to reach it, and holds no lease.
        if sign is not None and not (source.is_down and sign[0] is LastSign.ENDED):
            yield Silence(LeasedWork.CAPTURE, source.source, name, *sign, source.capture_dag)
    entry = leases[LeasedWork.APPLY, name]
    sign = last_sign(entry, now, waits_since=_unapplied_since(cut_ts, sources))
    if sign is not None:
        yield Silence(LeasedWork.APPLY, name, name, *sign, f"{name}__apply")


def _unapplied_since(cut_ts: int, sources: tuple[SourceStanding, ...]) -> float | None:
    """Since when bronze has changes for apply, with every source above the cut; None if it isn't
    so.
    """
    counted = [source.captured for source in sources if source.behind_ts is None]
    known = [captured for captured in counted if captured is not None]
    resolved_ts = min((captured.resolved_ts for captured in known), default=0)
    if len(known) < len(counted) or resolved_ts <= cut_ts:
        return None
    waiting = [captured.unapplied_since for captured in known if captured.unapplied_bytes]
    return max(min(waiting), *(captured.above_cut_since for captured in known)) if waiting else None


def source_standing(
    name: str, captured: SourceStatus | None, server: SourceAnswer, behind_ts: int | None = None
) -> SourceStanding:
    """One source's part of the standing, from bronze and from its answer."""
    if captured is None:
        return SourceStanding(name, None, server, None, None, "-", behind_ts)
    missing: bool | None = None
    if not server.error:
        here = (captured.server_id, f"{captured.file}:{captured.end_pos}")
        missing = here != (server.server_id, server.position)
    lag = 0.0 if missing is False else _age(captured.resolved_ts)
    purge, behind_bytes = _binlogs(captured, server, lag) if missing is not None else (None, None)
    return SourceStanding(
        name,
        captured,
        server,
        None if missing is None else not missing,
        lag,
        time_text(captured.max_commit_ts),
        behind_ts,
        purge=purge,
        behind_bytes=behind_bytes,
        unapplied_bytes=captured.unapplied_bytes,
    )


def _binlogs(captured: SourceStatus, server: SourceAnswer, lag: float | None) -> tuple[Retention | None, int | None]:
    """Nothing is known of a server without the captured files: another host has file names of its
    own.
    """
    if server.binlogs is None or captured.server_id != server.server_id:
        return None, None
    age = max(0.0, lag + server.clock_ahead_seconds) if lag else 0.0
    file, _, offset = server.position.rpartition(":")
    end = Position.of(file, int(offset)) if offset.isdecimal() else None
    behind = server.binlogs.behind_bytes(Position.of(captured.file, captured.end_pos), end) if end else None
    return purging.forecast(server.binlogs, captured.file, age), behind


def _lag(cut_ts: int, sources: tuple[SourceStanding, ...]) -> float | None:
    """The lag of silver: the age of the first waiting change, but at least the lag of capture."""
    if not cut_ts:
        return None
    known = [source.captured for source in sources if source.captured is not None]
    if len(known) < len(sources):
        return _age(cut_ts)
    waiting = [_age(captured.unapplied_ts) for captured in known if captured.max_commit_ts > cut_ts]
    return max([seconds or 0.0 for seconds in (*waiting, *(source.lag_seconds for source in sources))], default=0.0)


def _age(commit_ts: int) -> float | None:
    return max(0.0, time.time() - physical_ms(commit_ts) / 1000) if commit_ts else None
