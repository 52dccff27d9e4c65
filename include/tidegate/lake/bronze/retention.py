"""The part of bronze nobody needs any more, and its removal.

In:  BronzeFiles; how far each table is; how many days are kept in any case.
Out: whole files, the oldest of a source first, taken out of the table in one commit.

A file goes under three conditions. Silver of every kept table has all of its transactions. (Held
tables and tables that catch up count. Tables that wait for a snapshot, CREATE or TRUNCATE don't.)
No published cut lies below it. It is older than maintain.keep_bronze_days. Only a prefix of a
source's segments goes: the rest is dense and says where it begins (beginning.py), and readers below
it are refused. The newest file with a transaction stays, and all files after it: capture reads its
position there, and compares the bytes with the server's. Prepared transactions without an answer
stay, and so do those answered above the file: their rows are due there.

Bronze is an append-only Delta table. The same commit lifts this property, and the next one sets it
again. If a kill comes between, the next run of upkeep sets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from operator import itemgetter
from typing import Any, Final

import pyarrow.compute as pc

from tidegate import tables
from tidegate.failpoint import failpoint
from tidegate.lake import control
from tidegate.lake.bronze.beginning import can_begin
from tidegate.lake.bronze.log import APPEND_ONLY, BronzeFile, BronzeLog
from tidegate.lake.bronze.prewrites import first_needed
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import FollowedSources
from tidegate.lake.standing.followed import load as load_followed
from tidegate.lake.standing.held import last_states
from tidegate.limits import SNAPSHOT_ORPHAN_DAYS
from tidegate.standing.causes import Cause
from tidegate.tables import SNAPSHOTS

# Events of control/snapshots: apply has answered a wave; a table is read no more.
_ANSWERS_A_WAVE: Final = ("applied", "refused")
_ENDS_A_TABLE: Final = ("done", "cancelled", "failed")


@dataclass(frozen=True, slots=True)
class Floor:
    """No later window has a transaction at or below commit_ts. who: what keeps it from being later."""

    commit_ts: int
    who: str


def floors(lake: LakeFiles, sources: Iterable[str]) -> dict[str, Floor]:
    """Per source, by control/cuts, table_states and followed; 0 before the first cut.

    A table that needs a snapshot keeps nothing: what ends its hold begins at a later statement. A
    left-out table keeps nothing, either: if it comes back when bronze no longer reaches so far, it
    is held. A table in a snapshot needs nothing from below the snapshot's beginning. An open wave
    needs all from its low mark on.
    """
    published = control.read(lake, tables.CUTS, columns=["cut_ts"], filters=[("table", "=", "")])["cut_ts"]
    if not len(published):
        return {source: Floor(0, "no cut is published yet") for source in sources}
    known = load_followed(lake)
    lowest = [Floor(pc.min(published).as_py(), "the oldest kept cut")]
    lowest += [
        Floor(state.applied_ts, f"{name} is {state.state}")
        for name, state in sorted(last_states(lake).items())
        if state.state.waits and state.cause is not Cause.NEEDS_ROWS and not state.source
    ]
    everywhere = min(lowest, key=lambda floor: floor.commit_ts)
    waves = _open_waves(lake)
    by_source = {
        source: min(
            _of_source(source, everywhere, known), waves.get(source, everywhere), key=lambda floor: floor.commit_ts
        )
        for source in sources
    }
    prewritten = first_needed(lake, {source: floor.commit_ts for source, floor in by_source.items()})
    for source, start_ts in prewritten.items():
        if start_ts <= by_source[source].commit_ts:
            who = f"a transaction of {source} is prepared, and answered later or not yet"
            by_source[source] = Floor(start_ts - 1, who)
    return by_source


def _open_waves(lake: LakeFiles) -> dict[str, Floor]:
    """Per source, the lowest low mark of its snapshots' newest waves that lies below a cut. An
    answered wave doesn't count, nor one whose snapshot no longer reads any table.

    A repair's wave, or another lake's, has no request here. If its reader dies, it gets no answer:
    it counts as long as its chunks stay.
    """
    columns = ["snapshot", "source", "database", "table", "event", "token", "low_ts", "recorded_at"]
    rows = control.read(lake, SNAPSHOTS, columns=columns).to_pylist()
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    asked: dict[tuple[str, str], set[tuple[str, str]]] = {}
    over: dict[tuple[str, str], set[tuple[str, str]]] = {}
    answered = set()
    for row in rows:
        snapshot, name = (row["snapshot"], row["source"]), (row["database"], row["table"])
        if row["event"] == "opened" and not row["table"]:
            newest[snapshot] = max(newest.get(snapshot, row), row, key=itemgetter("low_ts"))
        elif row["event"] == "requested":
            asked.setdefault(snapshot, set()).add(name)
        elif row["event"] in _ANSWERS_A_WAVE:
            answered.add(row["token"])
        elif row["event"] in _ENDS_A_TABLE:
            over.setdefault(snapshot, set()).add(name)
    oldest = datetime.now(UTC) - timedelta(days=SNAPSHOT_ORPHAN_DAYS)
    lows: dict[str, list[int]] = {}
    for (snapshot_id, source), row in newest.items():
        snapshot = (snapshot_id, source)
        ends = over.get(snapshot, set()) | over.get((snapshot_id, ""), set())  # "": a person ended the whole snapshot
        goes_on = snapshot in asked or row["recorded_at"] >= oldest
        if goes_on and row["token"] not in answered and not _is_over(asked.get(snapshot), ends):
            lows.setdefault(source, []).append(row["low_ts"])
    return {source: Floor(min(of) - 1, f"a snapshot's wave of {source} is open") for source, of in lows.items()}


def _is_over(asked: set[tuple[str, str]] | None, over: set[tuple[str, str]]) -> bool:
    return ("", "") in over or (asked is not None and asked <= over)


def _of_source(source: str, everywhere: Floor, known: FollowedSources) -> Floor:
    """A source behind the cut keeps its own segments, and so does a source that apply doesn't know yet."""
    new = known.selection is not None and source not in known.selection.sources and source not in known.sources_left
    at = 0 if new else known.behind.get(source)
    if at is None or at >= everywhere.commit_ts:
        return everywhere
    return Floor(at, f"{source} is behind the cut")


def choose_gone(
    files: Mapping[str, Sequence[BronzeFile]], floor_ts: Mapping[str, int], first_day: date
) -> list[list[BronzeFile]]:
    """Per source that has any, the removable files in order of seq: from days before first_day
    (UTC), and at or below floor_ts.

    files: per source, in order of seq. floor_ts: per source.
    """
    per_source = []
    for source, own_files in files.items():
        gone: list[BronzeFile] = []
        newest = max((at for at, file in enumerate(own_files) if file.max_commit_ts), default=0)
        for file in own_files[:newest]:
            if file.top_ts > floor_ts[source] or file.day >= first_day:
                break
            gone.append(file)
        if gone:
            per_source.append(gone)
    return per_source


def whole_transactions(
    lake: LakeFiles, gone: Sequence[BronzeFile], files: Sequence[BronzeFile], floor_ts: int
) -> Sequence[BronzeFile]:
    """As many of `gone` as may go: the rest must not begin inside a transaction, and no commit
    above floor_ts may need removed rows. files: all of this source.
    """
    while gone and not can_begin(lake, files[len(gone) :], floor_ts):
        gone = gone[:-1]
    return gone


def remove(log: BronzeLog, gone: Sequence[BronzeFile]) -> None:
    """Take files out of the table. Raises CommitConflict, LakeUnavailable."""
    failpoint("bronze_before_removal")
    log.commit(gone, [], data_change=True)
    failpoint("bronze_after_removal")
    log.set_properties({APPEND_ONLY: "true"})
