"""The verdict on each table after the pipeline file has changed its selection: where it goes on, or why it waits.

In:  the physical tables kept before and now with the logical table of each, their versions, what silver and bronze
     have.
Out: per logical table a Verdict. Pure.

The protocol, the proof of "a cut holds every change up to cut_ts of every table that isn't named as behind it":
 1. State: cut; position(s) of each source s (= cut, or less while s is behind); per logical table t state, applied(t).
 2. applied(t): all changes of t with commit_ts <= applied(t) are in silver. active, dropped: applied(t) = cut;
    released, held: what its event says; released with its source s: position(s). Silver's txnVersion may prove more.
 3. A window (low, upto] takes t only if low <= applied(t), its segments hold all changes of t in (low, upto], and no
    source that feeds t is unresolved at upto. It writes (applied(t), upto] in transactions of version <= upto.
 4. Main window: low = cut, upto = min resolved(s) of sources that aren't behind; takes active and dropped tables, and
    released ones with applied(t) >= cut that no source which is behind feeds. The other ones are to it as held ones.
 5. Catch-up window of tables: low = min applied(t) of the released ones, upto <= min position(s) that feeds them.
 6. Catch-up window of a source s that is behind: low = position(s), upto <= min(cut, resolved(s)); takes tables that s
    alone feeds and that were released with it, or that it meets for the first time and silver hasn't got.
 7. Publishing: first states of what is behind upto, then the row of the cut (main), or positions and states (others).
 8. Below the cut a released table stays released whatever it is; at the cut it becomes active or dropped. Unless silver
    is ahead of the cut, as a window was killed that had written it: then it is released there, until the cut is.
 9. A rename or moved partition ties two tables: if one is held the other is held; if one is below the window's low the
    other is released where it stands, and both pass the statement in one catch-up window.
10. A change of the selection is one commit in `followed` (number n), decided on the state of 1; then the states it
    calls for are one commit in table_states under version n. Killed in between: the next start does the second.
11. Join, never followed, not in silver: released at the last CREATE or TRUNCATE (or empty baseline) - 1, if versions
    since then tell all its rows and bronze reaches there. Join, followed before: released where it was left, likewise,
    or at its last CREATE, TRUNCATE or DROP since, where bronze reaches no further or silver lacked rows of before.
    Else held until a CREATE or TRUNCATE is met. A shard with a past that joins a running logical table: left out until
    its own rows are read; the others go on (spark_jobs/window/waves/shards.py).
12. Leave: state `left` at applied(t); silver stays as it is. `left` takes part in no window and pins no bronze.
13. A source joins at the position where it was left, else at 0: it is behind until its windows reach the cut.
14. A source that is stalled too long becomes behind at the cut, its tables released with it; it is back by 6.
15. A release (by a person) only ever turns held into released at the same applied(t); it may come at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate.remedy import RECREATE, REFILL, Needs, Remedy
from tidegate.schema.follow.renames import renamed_here
from tidegate.schema.model.columns import TableVersion, VersionStatus, why_unproven
from tidegate.schema.replay.history import BASELINE
from tidegate.table_names import Physical
from tidegate.tables import State

_ANEW: Final = ("create", "truncate")
_SHARDS_NAMED_MAX: Final = 3
GONE: Final = (
    "leave it out of the pipeline file again; should the source create such a table again, it goes on with that"
)


@dataclass(frozen=True, slots=True)
class LeftAt:
    """The position of a table when it was left. commit_ts: silver has it up to there. whole: False: silver lacks rows
    from at or below commit_ts, and bronze wouldn't bring them.
    """

    commit_ts: int
    whole: bool = True


@dataclass(frozen=True, slots=True)
class FollowVerdict:
    """state: released, held or left, at commit_ts; snapshot: only the shards `physical` wait, and are left out.
    physical: the tables that joined it or left it. needs: of a held table.
    """

    state: State | None
    commit_ts: int
    reason: str
    physical: tuple[Physical, ...] = ()
    needs: Needs = Needs.NOTHING


@dataclass(frozen=True, slots=True)
class Untold:
    """Why the log alone doesn't tell a table's rows, in a phrase, and what a person can do."""

    why: str
    way: str | Remedy = REFILL


@dataclass(frozen=True, slots=True)
class Ground:
    """The facts of a decision.

    versions: of a physical table, all of them, oldest first. left: (physical table, logical table) followed before ->
    where it was left. applied: of a logical table followed until now. silver: whether a logical table exists. emptied:
    whether nothing from before a CREATE, TRUNCATE or DROP stays in a logical table. bare: whether silver has no row of
    it. begins: source -> the commit_ts after which bronze begins; 0 when left out. gaps: source -> commit_ts of the
    newest accepted gap with possible DDL.
    """

    cut_ts: int
    versions: Callable[[Physical], Sequence[TableVersion]]
    left: Mapping[tuple[Physical, str], LeftAt]
    applied: Callable[[str], int]
    silver: Callable[[str], bool]
    emptied: Callable[[str], bool]
    begins: Mapping[str, int]
    bare: Callable[[str], bool] = lambda _name: False
    gaps: Mapping[str, int] = field(default_factory=dict)


def follow(before: Mapping[Physical, str], now: Mapping[Physical, str], ground: Ground) -> dict[str, FollowVerdict]:
    """A verdict per logical table that some physical table joins or leaves; unchanged ones have none."""
    old, new = _by_logical(before), _by_logical(now)
    verdicts = {}
    for name in sorted(old.keys() | new.keys()):
        was, is_now = old.get(name, frozenset()), new.get(name, frozenset())
        joined, gone = tuple(sorted(is_now - was)), tuple(sorted(was - is_now))
        if not is_now:
            verdicts[name] = FollowVerdict(
                State.LEFT, ground.applied(name), f"{name}: the pipeline file no longer keeps it", gone
            )
        elif joined and not was:
            verdicts[name] = _comes(name, joined, ground)
        else:
            verdicts[name] = _shards_join(name, joined, ground)
    return {name: verdict for name, verdict in verdicts.items() if verdict.state}


def _by_logical(names: Mapping[Physical, str]) -> dict[str, frozenset[Physical]]:
    by_name: dict[str, set[Physical]] = {}
    for physical, name in names.items():
        by_name.setdefault(name, set()).add(physical)
    return {name: frozenset(of) for name, of in by_name.items()}


GOES_ON: Final = FollowVerdict(None, 0, "")


def _shards_join(name: str, joined: Collection[Physical], ground: Ground) -> FollowVerdict:
    """Silver's transaction version is the position of the whole table: it doesn't tell what one shard had before."""
    late = [physical for physical in joined if _begun(name, physical, ground) is not None]
    late += [physical for physical in joined if (physical, name) in ground.left]
    if not late:
        return GOES_ON
    late = sorted(set(late))
    shards = ", ".join(f"{database}.{table} of {source}" for source, database, table in late[:_SHARDS_NAMED_MAX])
    more = f" and {len(late) - _SHARDS_NAMED_MAX} others" if len(late) > _SHARDS_NAMED_MAX else ""
    what = f"{name}: {shards}{more} flow{'s' * (len(late) == 1)} into it now, and what it held before isn't in silver"
    return FollowVerdict(State.SNAPSHOT, ground.applied(name), f"{what} until a snapshot has read it", tuple(late))


def _comes(name: str, joined: tuple[Physical, ...], ground: Ground) -> FollowVerdict:
    """A logical table that nobody followed until now."""
    before = {ground.left[(physical, name)] for physical in joined if (physical, name) in ground.left}
    if len(before) == 1 and all((physical, name) in ground.left for physical in joined):
        return _comes_back(name, joined, before.pop(), ground)
    begun = {physical: _begun(name, physical, ground) for physical in joined}
    beginnings = {physical: begin for physical, begin in begun.items() if begin is not None}
    if not beginnings:
        # It has nothing at or below the cut. If silver has a table of this name, the rows aren't its own.
        return (
            _held(name, joined, ground, Untold("silver has a table of this name already"))
            if ground.silver(name)
            else GOES_ON
        )
    if before or ground.silver(name):
        return _held(name, joined, ground, Untold("silver has rows of it from another selection of tables"))
    for physical, begin in sorted(beginnings.items()):
        if isinstance(begin, Untold):
            return _held(name, joined, ground, begin)
        if begin < ground.begins.get(physical.source, 0):
            return _held(name, joined, ground, Untold("bronze no longer reaches back to its beginning"))
    start = min(begin for begin in beginnings.values() if isinstance(begin, int))
    return FollowVerdict(State.RELEASED, start, f"{name}: joins; it catches up from bronze", joined)


def _comes_back(name: str, joined: tuple[Physical, ...], left: LeftAt, ground: Ground) -> FollowVerdict:
    left_ts = left.commit_ts
    if not left.whole:
        start = 0
        if len(joined) == 1 and ground.emptied(name):
            # A table that is gone at the cut needs no rows: its DROP empties silver.
            start = _emptied_since(joined[0], left_ts, ground) or _last_drop(joined[0], ground)
        known = start >= max(1, ground.begins.get(joined[0][0], 0))
        if known and not any(_not_told(version) for version in _since(ground, joined[0], start)):
            reason = f"{name}: is kept again; what silver lacked of it is gone, and it catches up from bronze"
            return FollowVerdict(State.RELEASED, start, reason, joined)
        for physical in joined:
            versions = [v for v in ground.versions(physical) if v.commit_ts <= ground.cut_ts]
            if versions and versions[-1].status is VersionStatus.UNPROVEN and (why := _not_told(versions[-1])):
                return _held(name, joined, ground, why)
        lacked = "silver lacked rows of it when it was left out"
        gone = all(_dropped(physical, ground) for physical in joined)
        if gone and ground.emptied(name) and ground.bare(name):
            reason = f"{name}: is kept again; it is gone at the source, and silver has nothing of it"
            return FollowVerdict(State.RELEASED, ground.cut_ts, reason, joined)
        return _held(
            name, joined, ground, Untold(f"{lacked}; it is gone at the source", GONE) if gone else Untold(lacked)
        )
    start = left_ts
    for physical in joined:
        if left_ts < ground.begins.get(physical.source, 0):
            nothing = _gone_at(physical, left_ts, ground) and _dropped(physical, ground)
            if nothing and len(joined) == 1 and ground.emptied(name):
                reason = f"{name}: is kept again; it was gone when it was left, and is gone"
                return FollowVerdict(State.RELEASED, ground.cut_ts, reason, joined)
            # Nothing from before is needed if the table was emptied since.
            start = _emptied_since(physical, left_ts, ground) if len(joined) == 1 and ground.emptied(name) else 0
            if start < ground.begins[physical.source]:
                late = f"it was left at {left_ts}, and bronze no longer reaches back there"
                gone = _dropped(physical, ground)
                untold = Untold(f"{late}; it is gone at the source", GONE) if gone else Untold(late)
                return _held(name, joined, ground, untold)
        why = next((why for v in _since(ground, physical, left_ts) if (why := _not_told(v))), None)
        if why:
            return _held(name, joined, ground, why)
    return FollowVerdict(State.RELEASED, start, f"{name}: is kept again; it catches up from bronze", joined)


def _emptied_since(physical: Physical, left_ts: int, ground: Ground) -> int:
    """The commit_ts before the newest CREATE, TRUNCATE or DROP since a table was left; 0 when there is none.

    After a gap that may hide DDL, a TRUNCATE doesn't tell the columns.
    """
    gap_ts = ground.gaps.get(physical.source, 0)
    known = [version for version in ground.versions(physical) if left_ts < version.commit_ts <= ground.cut_ts]
    for at in range(len(known) - 1, -1, -1):
        version = known[at]
        is_known = version.commit_ts < gap_ts or any(v.commit_ts > gap_ts and _made(v) for v in known[: at + 1])
        if version.status is VersionStatus.DROPPED or (_anew(version) and (is_known or not gap_ts)):
            return version.commit_ts - 1
    return 0


def _last_drop(physical: Physical, ground: Ground) -> int:
    """The commit_ts before the DROP of a table that is gone at the cut; 0 when it is there."""
    known = [version for version in ground.versions(physical) if version.commit_ts <= ground.cut_ts]
    return known[-1].commit_ts - 1 if known and known[-1].status is VersionStatus.DROPPED else 0


def _dropped(physical: Physical, ground: Ground) -> bool:
    return _gone_at(physical, ground.cut_ts, ground)


def _gone_at(physical: Physical, commit_ts: int, ground: Ground) -> bool:
    known = [version for version in ground.versions(physical) if version.commit_ts <= commit_ts]
    return bool(known) and known[-1].status is VersionStatus.DROPPED


def _since(ground: Ground, physical: Physical, after_ts: int) -> list[TableVersion]:
    """Versions in (after_ts, the cut] that a later CREATE or TRUNCATE doesn't make pointless."""
    versions: list[TableVersion] = []
    for version in ground.versions(physical):
        if after_ts < version.commit_ts <= ground.cut_ts:
            versions = [version] if _anew(version) else [*versions, version]
    return versions


def _held(name: str, joined: tuple[Physical, ...], ground: Ground, untold: Untold) -> FollowVerdict:
    what = f"{name}: is kept since the pipeline file changed, but {untold.why}"
    needs = untold.way.needs if isinstance(untold.way, Remedy) else Needs.NOTHING
    return FollowVerdict(State.HELD, ground.cut_ts, f"{what}; {untold.way!s}", joined, needs)


def _anew(version: TableVersion) -> bool:
    return version.kind in _ANEW and version.status is VersionStatus.ACTIVE


def _made(version: TableVersion) -> bool:
    return version.kind == "create" and _anew(version)


def _not_told(version: TableVersion) -> Untold | None:
    """Why the log alone doesn't tell a table's rows past this version; None when it does."""
    place = f"{version.file}:{version.pos} of {version.source}"
    if version.status is VersionStatus.UNPROVEN:
        return Untold(f"at {place} {why_unproven(version)}", RECREATE)
    if renamed_here(version):
        return Untold(f"it was renamed from another table at {place} while nobody followed it")
    if version.moved is not None and (version.moved.takes or version.moved.why):
        return Untold(f"it took rows that the log doesn't show at {place} ({version.ddl[:80]})")
    if version.status is VersionStatus.NEEDS_SNAPSHOT:
        return Untold(f"its rows from before {place} aren't in the log")
    return None


def _begun(name: str, physical: Physical, ground: Ground) -> int | Untold | None:
    gap_ts = ground.gaps.get(physical.source, 0)
    return _beginning(ground.versions(physical), ground.cut_ts, gap_ts, emptied=ground.emptied(name))


def _beginning(versions: Sequence[TableVersion], cut_ts: int, gap_ts: int, *, emptied: bool) -> int | Untold | None:
    """The commit_ts after which all of a table's rows came; or why none is known; None: it has no rows at the cut.

    gap_ts: of an accepted gap that may hide DDL; after it CREATE TABLE alone tells columns. emptied: the last CREATE
    or TRUNCATE will do; else deleted rows are kept, and it is the first.
    """
    known = [version for version in versions if version.commit_ts <= cut_ts]
    if not known or (emptied and known[-1].status is VersionStatus.DROPPED):
        return None
    for at in range(len(known) - 1, -1, -1):
        version = known[at]
        if why := _not_told(version):
            return why
        if _anew(version) and (emptied or at == 0):
            if 0 < gap_ts < version.commit_ts and not any(v.commit_ts > gap_ts and _made(v) for v in known[: at + 1]):
                return Untold(
                    "the source lost transactions that may have changed its columns, and a person accepted the loss",
                    RECREATE,
                )
            return max(0, version.commit_ts - 1)
        if version.kind == BASELINE:
            return max(0, version.commit_ts - 1)
    return Untold("its CREATE TABLE came before the first event")
