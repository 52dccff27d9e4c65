"""What the model of a table's life is made of: logs, silver, windows, bounds.

In:  nothing; these are the values.
Out: Op, Table, Snap, Window, State, Bounds; rows_at(): a table's rows by its log.

An Op is (commit_ts, kind):

| kind | what the source does |
|---|---|
| C, D, T | creates, drops, truncates the table |
| R, S | a row; a row that the log doesn't tell |
| A | an ALTER that the pipeline file has a policy for |
| U, L | from here on it changes without row events; no longer |
| X, E | a statement, or an event, that nobody can read |
| P | rows of a prepared transaction |
| G, K | a rename: the giver loses its rows, the taker gets them, at one commit_ts |
| W | of two tables at one commit_ts: they swap their names |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from tidegate.merge.follow import LeftAt
from tidegate.standing.standing import Standing

Op = tuple[int, str]
Log = tuple[Op, ...]
EMPTIES: Final = "CDTG"
ROWS: Final = "RSAUE"  # what leaves something in the table
NOT_BEHIND: Final = -1


class Table(NamedTuple):
    """What the lake has of a logical table. rows: of silver, by commit_ts; version: silver's transaction version.

    shown: the rows that the cut's row of it shows; waits: up to where that row says that the table is while it waits,
    -1 of one that goes on. left: where the pipeline file left it. passed: up to where a person opened its gates.
    gave: the rows of its version before each rename, which its log still has. said: the version that the newest row of
    the cut names; past: version, rows and gave before the last commit, where somebody may put it back. done: a
    statement that removed rows, in a commit of its own above the version; a kill kept the rows after it out; 0: none.
    """

    standing: Standing | None = None
    rows: tuple[int, ...] = ()
    version: int = 0
    shown: tuple[int, ...] = ()
    waits: int = -1
    left: LeftAt | None = None
    passed: int = 0
    gave: tuple[tuple[int, tuple[int, ...]], ...] = ()
    said: int = 0
    past: tuple[Any, ...] = ()
    done: int = 0


class Snap(NamedTuple):
    """A snapshot of a physical table: its marks' commit_ts, 0 where there is none yet. over: "", done, failed, lost.

    begun: the low mark at which it emptied silver; filled: its table's state says so. taken: apply has its wave.
    """

    low: int = 0
    high: int = 0
    end: int = 0
    over: str = ""
    begun: int = 0
    filled: bool = False
    taken: bool = False


class Window(NamedTuple):
    """kind: main, tables (that catch up) or source (that is behind). todo: tables to write; wrote: those that the cut
    gets a row of. waves: tables that a wave begins, and its low mark. held: what became of those that it couldn't take
    on. unseen: tables that a person released since it was planned. answers: what becomes of snapshots; swept: those
    whose end mark is here; whole: tables that lack no rows any more. begins: of shards, after which commit_ts; chunks:
    those that have a wave here, and its low mark. stage: how many of its closing commits are there; found: what they
    record.
    """

    kind: str
    low: int
    upto: int
    todo: tuple[tuple[int, int], ...] = ()  # table, after which commit_ts
    held: tuple[tuple[int, Standing], ...] = ()
    wrote: tuple[int, ...] = ()
    taken: tuple[int, ...] = ()
    catches: tuple[int, ...] = ()
    source: int = -1
    unseen: tuple[int, ...] = ()
    stage: int = 0
    found: tuple[tuple[int, Standing], ...] = ()
    waves: tuple[tuple[int, int], ...] = ()
    answers: tuple[tuple[int, Snap], ...] = ()
    swept: tuple[int, ...] = ()
    whole: tuple[int, ...] = ()
    begins: tuple[tuple[int, int], ...] = ()
    chunks: tuple[tuple[int, int], ...] = ()


class State(NamedTuple):
    """keeps: what the pipeline file keeps now, by table and by source; chosen: what the lake says that it follows;
    read: what the application read at its start, None when none runs. pending: states that a recorded change of the
    selection still calls for. behind: where a source stands that is behind the cut.
    failing: tables that can't be written, until a pause or a person mends that.
    made: versions of shards that apply wrote itself (shards.py); fresh: shards that joined since the cut; left_shards:
    those that were followed once.
    seen: up to where a source is captured; known: up to where its statements were replayed.
    """

    logs: tuple[Log, ...]
    tables: tuple[Table, ...]
    keeps: tuple[tuple[bool, ...], tuple[bool, ...]]
    chosen: tuple[tuple[bool, ...], tuple[bool, ...]]
    seen: tuple[int, ...]
    known: tuple[int, ...]
    behind: tuple[int, ...]
    left_sources: tuple[int, ...]
    clock: int = 0
    cut: int = 0
    read: tuple[tuple[bool, ...], tuple[bool, ...]] | None = None
    pending: tuple[tuple[int, object], ...] = ()
    window: Window | None = None
    snaps: tuple[Snap | None, ...] = ()
    policy: str = "apply"
    judged: tuple[int, ...] = ()
    failing: tuple[int, ...] = ()
    changes: int = 0
    fails: int = 0
    kills: int = 0
    stalls: int = 0
    ticks: int = 0
    waves: int = 0
    cancels: int = 0
    losses: int = 0
    gives: int = 0
    made: tuple[Log, ...] = ()
    fresh: tuple[int, ...] = ()
    left_shards: tuple[int, ...] = ()


@cache
def _counted(feeds: tuple[tuple[int, int], ...]) -> tuple[range, range]:
    """The sources and the logical tables; asked millions of times."""
    return range(1 + max(source for source, _ in feeds)), range(1 + max(table for _, table in feeds))


@cache
def _flowing(feeds: tuple[tuple[int, int], ...], table: int) -> tuple[int, ...]:
    return tuple(at for at, (_, into) in enumerate(feeds) if into == table)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may happen.

    feeds: of each physical table its source and its logical table; ops: how many operations it may have, of which
    kinds; specials: how many in all beside C, R, D and T. snaps: how many waves are read; cancels: how many snapshots a
    person ends. losses: how often somebody puts silver back. lags: sources that may be captured later than the others.
    is_followed: whether the ways on are looked for as well, of all of its states. gives: how often the writer gives a
    table back. halves: whether a kill may come between a statement and the rows after it. forgets: whether steps ask
    about tables that are held.
    keeps: what the file keeps at first; toggles: which tables and sources it may take in or leave out.
    """

    name: str
    feeds: tuple[tuple[int, int], ...] = ((0, 0),)
    ops: tuple[int, ...] = (3,)
    kinds: tuple[str, ...] = ("CRD",)
    specials: int = 1
    lags: tuple[int, ...] = ()
    keeps: tuple[tuple[bool, ...], tuple[bool, ...]] = ((True,), (True,))
    toggles: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    policy: str = "apply"
    changes: int = 0
    fails: int = 0
    kills: int = 0
    stalls: int = 0
    snaps: int = 0
    cancels: int = 0
    losses: int = 0
    gives: int = 0
    halves: bool = False
    forgets: bool = False
    is_followed: bool = True
    keeps_deleted: bool = False

    @property
    def tables(self) -> range:
        return _counted(self.feeds)[1]

    @property
    def sources(self) -> range:
        return _counted(self.feeds)[0]

    def physical(self, table: int) -> tuple[int, ...]:
        """The physical tables that flow into a logical one."""
        return _flowing(self.feeds, table)

    def routed(self, table: int) -> bool:
        """Whether several do."""
        return len(self.physical(table)) > 1


def rows_at(logs: tuple[Log, ...], at: int, upto: int) -> tuple[int, ...]:
    """A physical table's rows at a commit_ts, by its log."""
    rows: tuple[int, ...] = ()
    for commit_ts, kind in logs[at]:
        if commit_ts > upto:
            break
        if kind in ROWS:
            rows = (*rows, commit_ts)
        elif kind in EMPTIES:
            rows = ()
        elif kind in "KW":
            rows = rows_at(logs, giver_of(logs, commit_ts, at), commit_ts - 1)
    return rows


def giver_of(logs: tuple[Log, ...], commit_ts: int, taker: int) -> int:
    """Whose rows a rename gives to a table."""
    return next(at for at, log in enumerate(logs) if at != taker and {(commit_ts, "G"), (commit_ts, "W")} & {*log})


def taker_of(logs: tuple[Log, ...], commit_ts: int, giver: int) -> int:
    """Who gets a table's."""
    return next(at for at, log in enumerate(logs) if at != giver and {(commit_ts, "K"), (commit_ts, "W")} & {*log})


def is_there(log: Log, upto: int) -> bool:
    """Whether a physical table exists at a commit_ts."""
    kinds = [kind for at, kind in log if at <= upto and kind in "CDGK"]
    return bool(kinds) and kinds[-1] in "CK"


def is_unlogged(log: Log, upto: int) -> bool:
    """Whether a table changes without row events at a commit_ts."""
    kinds = [kind for at, kind in log if at <= upto and kind in "CULDGK"]
    return bool(kinds) and kinds[-1] == "U"


def replaced(state: State, table: int, **changes: object) -> State:
    """A state with another table."""
    tables = list(state.tables)
    tables[table] = tables[table]._replace(**changes)  # type: ignore[arg-type]
    return state._replace(tables=tuple(tables))


def swapped(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    """A tuple with another value."""
    return (*values[:at], value, *values[at + 1 :])
