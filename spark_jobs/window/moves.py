"""Renames that a window's tables have still to follow, and which tables must therefore go together.

In:  schema histories, the window's tables, what is held.
Out: Moves in commit_ts order; tables held because their partner is, and released with it.

A rename moves rows from one logical table (the giver) to another (the taker). The taker reads the giver's silver as it
was at the rename, so the giver must not go past that commit_ts without the taker. When either is held, the other
waits too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spark_jobs.window.application import DDL_NOT_READ, HELD, RELEASED, Application, TableState, Window
from tidegate.schema.follow.renames import renames
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.partitions import RowsMoved
from tidegate.schema.replay.history import SchemaHistory
from tidegate.tables import RENAMED_WITH_HELD


@dataclass(frozen=True, slots=True)
class Move:
    """old, new: the version that had the rows, and the one that has them now. giver, taker: logical names; maybe one.

    Around a rename they are one physical table's; where a partition changes tables they are two tables'.
    """

    old: TableVersion
    new: TableVersion
    giver: str
    taker: str

    @property
    def commit_ts(self) -> int:
        return self.new.commit_ts

    @property
    def moved(self) -> RowsMoved | None:
        """Of a partition; None for a rename."""
        return self.new.moved


def find_moves(app: Application, low_ts: int, cut_ts: int) -> list[Move]:
    """The renames and moves of partitions in (low_ts, cut_ts] whose takers don't have their rows yet.

    A table that comes from a name that the pipeline doesn't keep waits by its status and is none of them.
    """
    found: list[Move] = []
    for history in app.histories.values():
        pairs = [(rename.old, rename.new) for rename in renames(history, low_ts, cut_ts)]
        for old, new in pairs + _between_tables(history, low_ts, cut_ts):
            if old is None or new.status != VersionStatus.ACTIVE:
                continue
            if not (app.keeps(old.source, old.database, old.table) and app.keeps(new.source, new.database, new.table)):
                continue
            taker = app.logical_name(new.database, new.table)
            if app.applied(taker) < new.commit_ts:
                found.append(Move(old, new, app.logical_name(old.database, old.table), taker))
    return sorted(found, key=lambda move: move.commit_ts)


def _between_tables(history: SchemaHistory, low_ts: int, cut_ts: int) -> list[tuple[TableVersion | None, TableVersion]]:
    """(the version that had the rows, the one that got them) of partitions that became or met other tables."""
    return [
        (history.version_at(*version.moved.other, version.commit_ts - 1), version)
        for version in history.made_in(low_ts, cut_ts)
        if version.moved is not None and version.moved.takes and not version.moved.why
    ]


def partners(moves: Iterable[Move], name: str) -> set[str]:
    """Every table that these moves link to a table, directly or through others; not the table itself."""
    links: dict[str, set[str]] = {}
    for move in moves:
        links.setdefault(move.giver, set()).add(move.taker)
        links.setdefault(move.taker, set()).add(move.giver)
    found, waiting = {name}, [name]
    while waiting:
        for other in links.get(waiting.pop(), set()) - found:
            found.add(other)
            waiting.append(other)
    return found - {name}


def hold_partners(app: Application, window: Window, moves: Sequence[Move]) -> None:
    """Whoever gives rows to a held table, or takes rows from one, waits with it.

    With one that catches up below this window it waits too, but to catch up together with it.
    """
    names = {name for move in moves for name in (move.giver, move.taker)}
    for name in sorted(names):
        state = window.held.get(name) or app.states.get(name)
        behind = name not in window.tables and app.waits_below(name, window.low_ts)
        if state is None or not (state.state == HELD or behind or (name in window.held and state.state == RELEASED)):
            continue
        for partner in sorted(partners(moves, name)):
            known = app.states.get(partner)
            if partner in window.held or (known is not None and known.state == HELD):
                continue
            if state.state == HELD:
                hold_with(app, window, partner, name, state.reason)
            elif not app.waits_below(partner, window.low_ts):
                reason = f"{partner}: a rename or a partition moves rows between it and {name}, which catches up first"
                error = state.error if state.error == DDL_NOT_READ else ""
                window.wait(partner, TableState(RELEASED, reason, error, app.applied(partner)))


def hold_with(app: Application, window: Window, name: str, partner: str, why: str) -> None:
    """Hold a table because of its partner."""
    what = f"a rename or a partition moves rows between it and {partner}"
    reason = f"{name}: {what}, which is held; it goes on with that one ({why})"
    held = window.held.get(partner) or app.states.get(partner)
    window.hold(name, f"{RENAMED_WITH_HELD} {partner}", reason, app.applied(name), held.place if held else None)


def release_with_partners(app: Application) -> None:
    """Let tables go on whose partner is no longer held."""
    while True:
        free = {
            name: TableState(RELEASED, applied_ts=state.applied_ts)
            for name, state in app.states.items()
            if state.state == HELD and (partner := _waits_for(state)) and not _is_held(app, partner)
        }
        if not free:
            break
        app.note_states(free)
    app.record_states({})


def _waits_for(state: TableState) -> str:
    word, _, partner = state.error.partition(" ")
    return partner if word == RENAMED_WITH_HELD else ""


def _is_held(app: Application, name: str) -> bool:
    state = app.states.get(name)
    return state is not None and state.state == HELD
