"""A published cut: each table's Delta version with all changes up to one commit_ts, and none after.

In:  control/cuts and control/table_states, each at one version of its log; a cut_ts, or none for
     the newest.
Out: a Cut: its complete tables with the version to read; the other tables, and why.

Why the versions of a cut belong together, for any number of sources:
1. A cut_ts is at or below the resolved_ts of every source that isn't behind. resolved_ts moves at ends
   of transactions only. Therefore no transaction at or below the cut comes any more, and none is half in it.
2. A table's window ends at the cut in one Delta commit: its version holds the table's changes up to
   the cut. The window's rows of control/cuts and the cut's own row are one commit: a reader of a cut
   sees all its versions.
3. A table without a row since an earlier cut had no change: its earlier version is its version at
   this cut.
4. A reader therefore picks an existing cut, then for each table the newest row at or below it. A commit_ts
   between two kept cuts is no cut: rows of forgotten cuts may be missing there for some tables
   (kept_cuts.py).
5. A table that isn't at the cut is named in control/table_states before the cut is published. So is a
   source left behind, with its tables. A later row of that log counts, too.
6. A table's versions go up, in one log. If a later row has a lower version or another id, silver was
   put back or made anew: the earlier version is now something else, or gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.commit_ts import last_at, physical_ms, time_text
from tidegate.errors import CutForgotten, CutNotYet, DeltaUnsupported, LakeRefused, TidegateError, UsageError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.table_names import splits
from tidegate.tables import State
from tidegate.tables.actions_table import ACTIONS, Act, ActionOutcome

_COLUMNS: Final = ["cut_ts", "table", "delta_version", "applied_ts", "state", "published_at", "silver_id"]
# Numbers that people write for a day, or a time. As a commit_ts they are of 1970, before all changes.
_NO_CUTS: Final = (1_000, last_at("2000-01-01"))
_STATE_COLUMNS: Final = ["table", "state", "reason", "commit_ts", "recorded_at"]


@dataclass(frozen=True, slots=True)
class CutTable:
    """A complete table of a cut. path: under the lake. version: the table's Delta version at the
    cut.
    """

    name: str
    database: str
    table: str
    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Cut:
    """tables: by name. missing: name of a table incomplete at the cut -> why, one line.

    dropped: tables gone at the source at the cut. states: of each table named anywhere, with the
    reason.
    """

    cut_ts: int
    published_at: datetime
    tables: Mapping[str, CutTable]
    missing: Mapping[str, str]
    dropped: frozenset[str]
    states: Mapping[str, tuple[State, str]]


def cut_at(lake: LakeFiles, pipeline: str, at: int | None = None) -> Cut:
    """The newest cut at or below a commit_ts; None: the newest of all.

    Raises CutNotYet (there is none, or none so new), CutForgotten (too old, not kept),
    LakeUnavailable.
    """
    rows = control.read(lake, tables.CUTS, columns=_COLUMNS)  # of one version: `forget` may run beside us
    stamps = _stamps(rows)
    cut_ts = _chosen(lake, stamps, at)
    (published_at,) = pc.unique(
        rows.filter(pc.and_(pc.equal(rows["table"], ""), pc.equal(rows["cut_ts"], cut_ts)))["published_at"]
    ).to_pylist()[-1:]
    last = _last(rows, cut_ts)
    events = _told(lake, pipeline, None if cut_ts == stamps[-1] else published_at)
    # Since the cut was read, a table may have got its row, but not yet its event.
    if any(_is_back(row, events.get(row["table"])) for row in last):
        last = _last(control.read(lake, tables.CUTS, columns=_COLUMNS), cut_ts)
    anew = _anew(rows, cut_ts)
    active, missing, dropped = dict[str, CutTable](), dict[str, str](), set[str]()
    states = dict[str, tuple[State, str]]()
    for row in sorted(last, key=lambda row: str(row["table"])):
        name, event = row["table"], events.get(row["table"])
        state, reason = states[name] = _state(row, event, cut_ts)
        if state is State.DROPPED:
            dropped.add(name)
        elif state is not State.ACTIVE:
            until = f"complete up to {time_text(row['applied_ts'])}" if row["applied_ts"] else "never complete"
            missing[name] = f"{state}{f', {until}' if state.waits else ''}{': ' if reason else ''}{reason}"
        elif anew(row):
            missing[name] = "its silver was put back or made anew since: this cut's version of it is gone"
        elif row["delta_version"] >= 0:
            active[name] = _table(lake, name, row["delta_version"])
    for name, event in events.items():
        if name not in states and not _is_over(State(event["state"])):
            states[name] = State(event["state"]), event["reason"]
            missing[name] = f"{event['state']}: {event['reason']}"
    return Cut(cut_ts, published_at, active, dict(sorted(missing.items())), frozenset(dropped), states)


def newest_published_at(lake: LakeFiles) -> datetime | None:
    """The latest time in a row of control/cuts, by the clock of its writer. None before the first."""
    at: datetime | None = pc.max(control.read(lake, tables.CUTS, columns=["published_at"])["published_at"]).as_py()
    return at


def instant(text: str) -> int:
    """A cut or a time as a person writes it, as a commit_ts. For a time: the last one in its
    millisecond.

    Raises UsageError.
    """
    remedy = "write 2026-11-22T08:00:00, or a cut_ts"
    if text.isdecimal():
        if _NO_CUTS[0] <= int(text) < _NO_CUTS[1] or int(text) >= 1 << 63:
            raise UsageError(f"{text} is no cut's commit_ts, and not the form of a time", remedy=remedy)
        return int(text)
    try:
        return last_at(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is neither a cut nor a time", remedy=remedy) from error


def known_cuts(lake: LakeFiles) -> list[int]:
    """cut_ts of every kept cut, ascending."""
    return _stamps(control.read(lake, tables.CUTS, columns=["cut_ts", "table"], filters=[("table", "=", "")]))


def _stamps(rows: pa.Table) -> list[int]:
    return sorted(set(rows.filter(pc.equal(rows["table"], ""))["cut_ts"].to_pylist()))


def _chosen(lake: LakeFiles, stamps: list[int], at: int | None) -> int:
    if not stamps:
        raise CutNotYet("no cut is published yet", where=lake.root, remedy="is apply running?")
    if at is None:
        return stamps[-1]
    if at > stamps[-1]:
        raise CutNotYet(
            f"silver is complete up to {stamps[-1]} ({time_text(stamps[-1])}), not {at} ({time_text(at)})",
            where=lake.root,
            remedy="wait until apply has come so far, or ask for an earlier time",
        )
    if at < stamps[0]:
        raise CutForgotten(
            f"cuts as old as {at} ({time_text(at)}) aren't kept{_erased(lake, at)}",
            where=lake.root,
            remedy=f"the oldest one is {stamps[0]} ({time_text(stamps[0])}); maintain.keep_cuts_hours says how long",
        )
    return max(stamp for stamp in stamps if stamp <= at)


def _erased(lake: LakeFiles, at: int) -> str:
    """Words for an error, if a person's rows were erased since; "" if it isn't known."""
    try:
        rows = control.read(lake, ACTIONS, columns=["action", "outcome", "recorded_at"]).to_pylist()
    except TidegateError:
        return ""
    since = datetime.fromtimestamp(physical_ms(at) / 1000, UTC)
    times = [row["recorded_at"] for row in rows if row["action"] == Act.ERASE and row["outcome"] == ActionOutcome.DONE]
    last = max(times, default=since)
    if last <= since:
        return ""
    return f": a person's rows were erased at {last:%Y-%m-%d %H:%M:%S} UTC, and all older cuts with them"


def _last(rows: pa.Table, cut_ts: int) -> list[dict[str, Any]]:
    """Each table's row that is valid at a cut."""
    upto_cut = rows.filter(pc.and_(pc.not_equal(rows["table"], ""), pc.less_equal(rows["cut_ts"], cut_ts)))
    last: list[dict[str, Any]] = control.last_of(upto_cut, ["table"], ["cut_ts", "published_at"]).to_pylist()
    return last


def _anew(rows: pa.Table, cut_ts: int) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a row of the cut belongs to a log that is gone, judged by later rows of the table."""
    later = rows.filter(pc.and_(pc.not_equal(rows["table"], ""), pc.greater(rows["cut_ts"], cut_ts)))
    per_table = later.group_by("table").aggregate([("delta_version", "min"), ("silver_id", "distinct")]).to_pylist()
    of = {row["table"]: (row["delta_version_min"], row["silver_id_distinct"]) for row in per_table}

    def anew(row: Mapping[str, Any]) -> bool:
        lowest, ids = of.get(row["table"], (row["delta_version"], ()))
        other = row["silver_id"] is not None and any(silver_id not in (None, row["silver_id"]) for silver_id in ids)
        return bool(row["delta_version"] >= 0 and (lowest < row["delta_version"] or other))

    return anew


def _is_back(row: Mapping[str, Any], event: Mapping[str, Any] | None) -> bool:
    """Whether control/cuts says that a table waits, and a later event says that it no longer does."""
    later = event is not None and event["recorded_at"] > row["published_at"]
    return later and event is not None and State(row["state"]).waits and not State(event["state"]).waits


def _told(lake: LakeFiles, pipeline: str, until: datetime | None) -> dict[str, dict[str, Any]]:
    """Per table, the newest event of control/table_states recorded until then."""
    filters: list[tuple[str, str, Any]] = [("pipeline", "=", pipeline)]
    if until is not None:
        filters.append(("recorded_at", "<=", until))
    rows = control.newest(
        lake, tables.TABLE_STATES, by=["table"], order=["recorded_at"], columns=_STATE_COLUMNS, filters=filters
    )
    return {row["table"]: row for row in rows.to_pylist()}


def _state(row: Mapping[str, Any], event: Mapping[str, Any] | None, cut_ts: int) -> tuple[State, str]:
    """A table's state at a cut, and its reason. row: its row of control/cuts; event: of control/table_states."""
    state = State(row["state"])
    if event is None:
        return state, ""
    if event["recorded_at"] <= row["published_at"]:
        return state, event["reason"]
    said = State(event["state"])
    if event["commit_ts"] <= cut_ts or not (_is_over(said) or (state.waits and not said.waits)):
        return said, event["reason"]
    # It is whole again, or gone, at the next cut, and that one isn't published yet.
    if state is State.ACTIVE and said is State.ACTIVE:
        # It waited in between, and no cut has a row of that: an apply was killed before its cut, or its tries ran out.
        return State.RELEASED, "it waited since, and goes on with the next cut"
    return state, event["reason"] if state.waits else ""


def _is_over(state: State) -> bool:
    """Whether a table without a row in any cut may be left out: it had no change, or it is gone."""
    return state in (State.ACTIVE, State.DROPPED)


def _table(lake: LakeFiles, name: str, version: int) -> CutTable:
    pairs = splits(name)
    if len(pairs) > 1:  # a dot in a name allows two readings: take the one that silver has
        pairs = [pair for pair in pairs if _has_log(lake, tables.silver_path(*pair))] or pairs
    database, table = pairs[0]
    return CutTable(name, database, table, tables.silver_path(database, table), version)


def _has_log(lake: LakeFiles, path: str) -> bool:
    """A log that can't be read counts as existing: the reader of the table gets its error."""
    try:
        return lake.log(path).state().created
    except (LakeRefused, DeltaUnsupported):
        return True
