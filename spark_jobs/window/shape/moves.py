"""The renames that a window's tables still have to follow, and the tables that these link.

In:  schema histories, silver's positions.
Out: Moves in commit_ts order; the tables linked to one by some of them.

A rename moves rows from one logical table (the giver) to another (the taker). The taker reads the
giver's silver as it was at the rename, so the giver must not go past its commit_ts without the
taker (standing/standings.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spark_jobs.window.application import Application
from spark_jobs.window.window import Move
from tidegate.schema.follow.renames import renames, takers
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SchemaHistory
from tidegate.table_names import Physical


def find_moves(app: Application, low_ts: int, cut_ts: int) -> list[Move]:
    """The renames and moves of partitions in (low_ts, cut_ts] whose takers don't have their rows
    yet.

    If the rows come from a table outside of the pipeline, the taker waits by its status, and the
    move isn't among these.
    """
    moves: list[Move] = []
    for history in app.histories.values():
        pairs = [(rename.old, rename.new) for rename in renames(history, low_ts, cut_ts)]
        for old, new in pairs + _between_tables(history, low_ts, cut_ts):
            if old is None or new.status != VersionStatus.ACTIVE:
                continue
            if not (app.names.keeps(*old.physical) and app.names.keeps(*new.physical)):
                continue
            taker = app.names.logical_name(new.database, new.table)
            if app.positions.applied(taker) < new.commit_ts:
                moves.append(Move(old, new, app.names.logical_name(old.database, old.table), taker))
    return sorted(moves, key=lambda move: move.commit_ts)


def _between_tables(history: SchemaHistory, low_ts: int, cut_ts: int) -> list[tuple[TableVersion | None, TableVersion]]:
    """(the version before the move, the one after it) of the rows of partitions that became or met
    other tables.
    """
    return [
        (history.version_at(*version.moved.other, version.commit_ts - 1), version)
        for version in history.made_in(low_ts, cut_ts)
        if version.moved is not None and version.moved.takes and not version.moved.why
    ]


def still_given(
    app: Application, physical: Physical, after_ts: int, upto_ts: int
) -> Iterator[tuple[str, TableVersion]]:
    """The takers of a table's rows in (after_ts, upto_ts] not yet in silver there: the logical
    table, and the version with which it takes them. Takers waiting for all of their rows anyway are
    left out.
    """
    history = app.histories[physical.source]
    old: TableVersion | None = None
    for version in history.versions(*physical.pair):
        if after_ts < version.commit_ts <= upto_ts:
            for taker in takers(history, old, version):
                name = app.names.logical_name(taker.database, taker.table)
                followed = app.names.keeps(taker.source, taker.database, taker.table) and not taker.status.waits
                if followed and app.positions.applied(name) < taker.commit_ts:
                    yield name, taker
        old = version


def partners(moves: Iterable[Move], name: str) -> frozenset[str]:
    """Every table linked to a table by these moves, directly or through others; not the table
    itself.
    """
    return all_partners(moves).get(name, frozenset())


def all_partners(moves: Iterable[Move]) -> dict[str, frozenset[str]]:
    """The partners of each table that gives or takes: found once, however many tables are renamed."""
    links: dict[str, set[str]] = {}
    for move in moves:
        links.setdefault(move.giver, set()).add(move.taker)
        links.setdefault(move.taker, set()).add(move.giver)
    known: dict[str, frozenset[str]] = {}
    for name in links:
        if name in known:
            continue
        linked, waiting = {name}, [name]
        while waiting:
            for other in links[waiting.pop()] - linked:
                linked.add(other)
                waiting.append(other)
        known |= {each: frozenset(linked - {each}) for each in linked}
    return known
