"""The effect of an event on a table's standing: one rule per event.

In:  the standing (None: nothing was ever said of the table, so it follows), an event, Facts.
Out: the new standing, and whether other tables lack rows by it.

The rules keep four promises, which the model checks (tests/model):
- silver at applied_ts equals the log up to there, so no rule raises applied_ts above what silver
  and the cut prove;
- the first cause counts: a waiting table goes on only by the end of that cause (causes.py);
- a gate of the pipeline file (stop, ask) is passed by a person alone, whatever else happens to the
  table, and once;
- nobody waits in vain: a table written beyond the cut by a killed apply waits for the cut, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from tidegate.remedy import Needs
from tidegate.standing import events as e
from tidegate.standing import shown
from tidegate.standing.causes import ENDS, Cause
from tidegate.standing.facts import Facts
from tidegate.standing.standing import Place, Standing
from tidegate.tables import State

PAUSE_MIN: Final = timedelta(minutes=10)
PAUSE_MAX: Final = timedelta(days=1)
_GOES_ON: Final = (State.ACTIVE, State.SNAPSHOT, State.DROPPED)


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of an event on a table. standing: None: nothing is to be recorded. takers_lack:
    the takers of rows from its silver get none any more.
    """

    standing: Standing | None
    takers_lack: bool = False


if TYPE_CHECKING:

    class _Held(Standing):
        """A held one has a cause."""

        cause: Cause


Rule = Callable[[Standing | None, Any, Facts], Step]


def step(standing: Standing | None, event: e.Event, facts: Facts) -> Step:
    """Where a table stands once an event has happened; the same standing where the event changes nothing."""
    return RULES[type(event)](standing, event, facts)


def is_in(standing: Standing | None, *states: State) -> bool:
    """Whether a table is in one of these states; one of which nothing was said follows."""
    return (standing.state if standing is not None else State.ACTIVE) in states


def pause(times: int) -> timedelta:
    """How long a table waits that couldn't be written so often in a row."""
    doubled: int = 2 ** min(times - 1, 20)
    return min(PAUSE_MAX, PAUSE_MIN * doubled)


# --- it waits ---------------------------------------------------------------------------------------
def _refused(before: Standing | None, event: e.Refused, facts: Facts) -> Step:
    """The first cause counts. But a cause of its own replaces a partner's, since that one may end earlier."""
    if _holds(before) and (before.cause is not Cause.WAITS_WITH or event.cause is Cause.WAITS_WITH):
        return Step(before)
    at_ts = facts.applied() if event.at_ts is None else event.at_ts
    waits = Standing(
        State.HELD, event.reason, event.cause, at_ts, event.place,
        fault=event.fault or _past_lost(before), needs=event.needs, partner=event.partner, **_known(before),
    )  # fmt: skip
    return Step(waits)


def _not_written(before: Standing | None, event: e.NotWritten, facts: Facts) -> Step:
    if _holds(before):
        return Step(before)
    again = before is not None and before.state is State.RELEASED
    times = 1 + (before.times if before is not None and again else 0)
    reason = shown.not_written(facts.name, event, times, int(pause(times).total_seconds() / 60))
    return Step(Standing(State.HELD, reason, Cause.WRITE_FAILED, facts.applied(), times=times, **_known(before)))


def _flows_in(before: Standing | None, event: e.FlowsIn, facts: Facts) -> Step:
    if before is None:
        return Step(None)
    if before.state is State.LEFT:
        reason = shown.of_another_time(facts.name, event.what, event.source)
        return _refused(before, e.Refused(Cause.NEEDS_ROWS, reason, needs=Needs.ROWS, at_ts=facts.cut_ts), facts)
    if before.source not in ("", event.source):
        # Another source feeds it now, which isn't behind: the table goes on only with both.
        return Step(replace(before, source="", applied_ts=facts.mark()))
    return Step(before)


def _snapshot_lost(before: Standing | None, event: e.SnapshotLost, facts: Facts) -> Step:
    if before is None or before.state is not State.SNAPSHOT:
        return Step(before)
    return _refused(before, e.Refused(Cause.NEEDS_ROWS, event.reason, needs=Needs.ROWS), facts)


def _rows_gone(before: Standing | None, event: e.RowsGone, facts: Facts) -> Step:
    """It needs rows now, whatever it waited for. At a gate it needs them after a person has opened the gate."""
    return Step(_lacks(before, event.reason, event.place, facts))


def _lacks(before: Standing | None, reason: str, place: Place | None, facts: Facts) -> Standing:
    needs = Needs.COLUMNS if before is not None and before.columns_doubted else Needs.ROWS  # rows alone tell no columns
    if _holds(before) and ENDS[before.cause].is_gate:
        return replace(before, needs=needs)
    cause, at_ts = Cause.NEEDS_ROWS, facts.applied()
    fault = _past_lost(before)
    return Standing(State.HELD, reason, cause, at_ts, place, fault=fault, needs=needs, **_known(before))


def _logged_again(before: Standing | None, event: e.LoggedAgain, _: Facts) -> Step:
    if not _holds(before) or not ENDS[before.cause].source:
        return Step(before)
    return Step(replace(before, cause=Cause.NEEDS_ROWS, reason=event.reason, needs=Needs.ROWS))


# --- it goes on -------------------------------------------------------------------------------------
def _sent_below(before: Standing | None, event: e.SentBelow, facts: Facts) -> Step:
    """A person's approval stays. The table no longer goes on with its source, whose position is above its own."""
    if _holds(before):
        return Step(before)
    known = before if before is not None and before.state is State.RELEASED else Standing(State.RELEASED)
    unread = known.unread or event.unread
    below = replace(known, reason=event.reason, unread=unread, source="", applied_ts=facts.applied(), since=None)
    return Step(below)


def _silver_older(before: Standing | None, event: e.SilverOlder, _: Facts) -> Step:
    """A person's approval stays. Only an active or a released table can go on from a lower position."""
    if not is_in(before, State.ACTIVE, State.RELEASED):
        return Step(before)
    known = before if before is not None and before.state is State.RELEASED else Standing(State.RELEASED)
    at_ts = min(event.at_ts, before.applied_ts) if before is not None and before is known else event.at_ts
    return Step(replace(known, reason=event.reason, source="", applied_ts=at_ts, since=None))


def _emptied(before: Standing | None, event: e.Emptied, _: Facts) -> Step:
    """Whether the hold ends by it is known already: it may be one of several tables
    (Standing.ends_by_emptying). An unread statement before it doesn't count any more; an approval
    by a person may lie after it.
    """
    if not _holds(before) or ENDS[before.cause].is_gate:
        return Step(before)
    goes_on = Standing(State.RELEASED, applied_ts=event.at_ts, source=event.source, approved_ts=before.approved_ts)
    return Step(goes_on)


def _partner_goes_on(before: Standing | None, _: e.PartnerGoesOn, __: Facts) -> Step:
    if not _holds(before) or not ENDS[before.cause].partner:
        return Step(before)
    return Step(_goes_on(before))


def _pause_over(before: Standing | None, event: e.PauseOver, _: Facts) -> Step:
    if not _holds(before) or not ENDS[before.cause].pause:
        return Step(before)
    if before.since is not None and event.now - before.since < pause(before.times):
        return Step(before)
    return Step(_goes_on(before))


def _released(before: Standing | None, event: e.Released, _: Facts) -> Step:
    return Step(release(before, event) if _holds(before) else before)


def release(held: Standing, event: e.Released) -> Standing:
    """At a gate a release approves the DDL up to the statement at the place. It brings no rows that bronze lacks."""
    if not held.releasable:
        return held
    if held.needs.rows and ENDS[held.cause or Cause.FAULT].is_gate:
        return replace(held, cause=Cause.NEEDS_ROWS, reason=f"{held.reason}; released, and rows are missing")
    approved_ts = held.place.at_ts if held.place is not None and held.cause is Cause.DDL_ASKS else 0
    return replace(
        held, state=State.RELEASED, reason=event.reason, cause=None,
        approved_ts=max(held.approved_ts, approved_ts), unread=held.is_unread,
        fault="", needs=Needs.NOTHING, times=0, partner="", since=None,
    )  # fmt: skip


def _answered(before: Standing | None, _: e.Answered, __: Facts) -> Step:
    if not _holds(before) or before.cause is not Cause.PARKED:
        return Step(before)
    return Step(_goes_on(before))


def _goes_on(held: Standing) -> Standing:
    """The table goes on by itself, from its position."""
    return Standing(State.RELEASED, applied_ts=held.applied_ts, times=held.times, **_known(held))


def _past_lost(before: Standing | None) -> str:
    return "" if before is None else before.past_lost


def _known(before: Standing | None) -> dict[str, Any]:
    """The fields that a table keeps at any event (Standing)."""
    if before is None:
        return {}
    return {"approved_ts": before.approved_ts, "unread": before.is_unread}


# --- the pipeline file and its sources --------------------------------------------------------------
def _selected(before: Standing | None, event: e.Selected, facts: Facts) -> Step:
    """The verdict of merge/follow.py, with a look at all records of the table before. A joining
    table may bring statements that nobody has approved. A past that was lost before it was left is lost.
    """
    unread = before is not None and before.is_unread and event.state is not State.LEFT
    fault = _past_lost(before)
    if event.state is State.HELD:
        cause, needs = Cause.NEEDS_ROWS, event.needs
        reason = shown.comes_without_past(facts.name) if fault else event.reason
        return Step(Standing(State.HELD, reason, cause, event.at_ts, fault=fault, needs=needs, unread=unread))
    fault = fault if event.state is State.LEFT else ""
    return Step(
        Standing(event.state, event.reason, applied_ts=event.at_ts, fault=fault, source=event.source, unread=unread)
    )


def _source_stalls(before: Standing | None, event: e.SourceStalls, facts: Facts) -> Step:
    if not is_in(before, *_GOES_ON):
        return Step(before)
    alone = set(facts.feeds()) == {event.source}
    return Step(Standing(State.RELEASED, event.reason, applied_ts=facts.cut_ts, source=event.source if alone else ""))


def _source_meets(before: Standing | None, event: e.SourceMeets, facts: Facts) -> Step:
    """A table without a state gets one first, to tell an earlier try's rows from older ones. A
    table that waits or catches up may be further than a source that is new to it: no later window
    has that source's rows from below.
    """
    if before is not None and before.state in (State.HELD, State.RELEASED):
        return Step(_meets_waiting(before, event, facts))
    reason = shown.met_behind(facts.name, event.source)
    if before is not None or facts.has_silver():
        fault, at_ts = _past_lost(before), facts.cut_ts
        return Step(Standing(State.HELD, reason, Cause.NEEDS_ROWS, at_ts, fault=fault, needs=Needs.ROWS))
    alone = set(facts.feeds()) <= {event.source}  # else it goes on only with both sources
    reason = f"{facts.name}: {event.source} is behind the cut"
    at_ts = facts.position(event.source)
    return Step(Standing(State.RELEASED, reason, applied_ts=at_ts, source=event.source if alone else ""))


def _meets_waiting(before: Standing, event: e.SourceMeets, facts: Facts) -> Standing:
    is_new = before.source != event.source and event.source not in facts.feeds()
    if (before.source in ("", event.source) and not is_new) or before.lacks_rows:
        return before
    if facts.mark() > facts.position(event.source):
        return _lacks(before, shown.met_behind(facts.name, event.source), None, facts)
    return replace(before, source="", applied_ts=facts.mark())


def _source_back(before: Standing | None, event: e.SourceBack, facts: Facts) -> Step:
    if before is None or before.state is not State.RELEASED or before.source != event.source:
        return Step(before)
    return Step(_at_the_cut(before, facts, facts.cut_ts))


# --- snapshots --------------------------------------------------------------------------------------
def _wave_begins(before: Standing | None, event: e.WaveBegins, _: Facts) -> Step:
    """Its hold is over, whatever its cause. A table without a key begins in a window of its own: it catches up."""
    if is_in(before, State.RELEASED):
        return Step(before)
    return Step(fills(event.snapshot, event.low_ts - 1), takers_lack=True)


def _shard_begins(before: Standing | None, _: e.ShardBegins, facts: Facts) -> Step:
    if not _holds(before):
        return Step(before)
    return Step(Standing(State.SNAPSHOT, "its shards are read anew", applied_ts=facts.cut_ts))


def _whole(before: Standing | None, event: e.Whole, facts: Facts) -> Step:
    """The last mark may lie in a window without the table's changes. A killed window may have written more."""
    if not is_in(before, State.SNAPSHOT):
        return Step(before)
    return Step(_ahead(facts, event.at_ts) or Standing(State.ACTIVE, applied_ts=event.at_ts))


def _shards_lack(before: Standing | None, event: e.ShardsLack, _: Facts) -> Step:
    if not is_in(before, *_GOES_ON):
        return Step(before)
    return Step(Standing(State.SNAPSHOT, event.what, applied_ts=event.at_ts))


# --- the end of a window ----------------------------------------------------------------------------
def _cut_reached(before: Standing | None, event: e.CutReached, facts: Facts) -> Step:
    """The state of dropped tables, and of those released at the cut or above, at the window's end."""
    if is_in(before, State.RELEASED) and not _reaches(event, facts):
        return Step(before)
    if not is_in(before, *_GOES_ON, State.RELEASED):
        return Step(before)
    if facts.dropped(event.upto_ts):
        return Step(before if is_in(before, State.DROPPED) else _gone(event.upto_ts))
    return Step(_rests(facts, event.upto_ts) if is_in(before, State.DROPPED, State.RELEASED) else before)


def _reaches(event: e.CutReached, facts: Facts) -> bool:
    """Whether a released table is as far as the others, and none of its sources is behind."""
    at_ts = facts.mark()
    if not facts.feeds() or facts.late() or not event.low_ts <= at_ts <= event.upto_ts or _ahead(facts, event.upto_ts):
        return False
    # If a statement right after this cut empties the table, it isn't whole at the cut. Silver itself doesn't show that.
    return at_ts < event.upto_ts or facts.written() >= at_ts


def _caught_up(before: Standing | None, event: e.CaughtUp, facts: Facts) -> Step:
    """A released table goes on with all others when it has reached exactly their position.

    Below that position it stays released, since a state there (such as dropped) may not last. It
    also stays released while one of its sources is behind: the cut goes on without that source.
    """
    if before is None or before.state is not State.RELEASED:
        return Step(before)
    upto_ts = max(before.applied_ts, event.upto_ts)
    if upto_ts < facts.cut_ts or facts.late():
        return Step(replace(before, applied_ts=upto_ts))
    return Step(_at_the_cut(before, facts, upto_ts))


def _at_the_cut(before: Standing, facts: Facts, upto_ts: int) -> Standing:
    """If a window was killed before its cut, silver has more than is published, and no version of
    silver is the table at this cut. The main window whose cut gets there takes the table in.
    """
    if waits := _ahead(facts, facts.cut_ts):
        return replace(waits, **_known(before))
    return _gone(upto_ts) if facts.dropped(upto_ts) else _rests(facts, upto_ts)


def _ahead(facts: Facts, cut_ts: int) -> Standing | None:
    """The standing of a table of which silver has more than this cut: rows, or a statement that removed some."""
    if (reached_ts := max(at_ts := facts.applied(), facts.reached())) <= cut_ts:
        return None
    return Standing(State.RELEASED, shown.waits_for_the_cut(facts.name, reached_ts), applied_ts=max(at_ts, cut_ts))


def _gone(at_ts: int) -> Standing:
    return Standing(State.DROPPED, "dropped at the source", applied_ts=at_ts)


def _rests(facts: Facts, at_ts: int) -> Standing:
    """The standing after it has caught up. If its snapshot hasn't ended, it still lacks rows."""
    filled = facts.filled(at_ts)
    return Standing(State.ACTIVE, applied_ts=at_ts) if filled is None else fills(filled[0], at_ts)


def fills(snapshot: str, applied_ts: int) -> Standing:
    """The standing of a table that lacks rows until its snapshot ends."""
    return Standing(
        State.SNAPSHOT, "its rows are being read; it lacks some until all are", applied_ts=applied_ts, snapshot=snapshot
    )


def _holds(standing: Standing | None) -> TypeGuard[_Held]:
    return standing is not None and standing.state is State.HELD


RULES: Final[Mapping[type, Rule]] = MappingProxyType(
    {
        e.Refused: _refused,
        e.NotWritten: _not_written,
        e.FlowsIn: _flows_in,
        e.SnapshotLost: _snapshot_lost,
        e.RowsGone: _rows_gone,
        e.LoggedAgain: _logged_again,
        e.SentBelow: _sent_below,
        e.SilverOlder: _silver_older,
        e.Emptied: _emptied,
        e.PartnerGoesOn: _partner_goes_on,
        e.PauseOver: _pause_over,
        e.Released: _released,
        e.Answered: _answered,
        e.Selected: _selected,
        e.SourceStalls: _source_stalls,
        e.SourceMeets: _source_meets,
        e.SourceBack: _source_back,
        e.WaveBegins: _wave_begins,
        e.ShardBegins: _shard_begins,
        e.Whole: _whole,
        e.ShardsLack: _shards_lack,
        e.CutReached: _cut_reached,
        e.CaughtUp: _caught_up,
    }
)
