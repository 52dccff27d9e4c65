"""A pipeline over years in a second each, for its complete hours: two sources, three tables, and what happens to them.

In:  dice.
Out: World: its sources fail over and stall, its tables are rebuilt, its apply is killed. Each rule is tidegate's own:
     commit_ts and the proof of a quiet server, the cut, the standing, what follows, the hours and their record.

Silver of a table is its prefix of the log, so it is one commit_ts here: all at or below it is in silver, and nothing
above. The watcher looks, and Airflow's run adds the hours later: by what is so then.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from tidegate.binlog.transaction_scan import next_commit_ts
from tidegate.commit_ts import compose
from tidegate.config import Tables
from tidegate.config.table_keys.tables import Route
from tidegate.lake.figures import complete_hours
from tidegate.lake.figures.complete_hours import ALL_TABLES, NewHours, read_complete_hours
from tidegate.lake.figures.status import TableStatus
from tidegate.lake.standing.followed import (
    CATCHING_UP,
    FOLLOWED,
    FollowedChange,
    FollowedSources,
    Selection,
    rows_of,
)
from tidegate.limits import HOUR_SECONDS
from tidegate.mysql.stream.quiet import Quiet
from tidegate.remedy import Needs
from tidegate.segments.frontier import cut_frontier
from tidegate.standing.causes import Cause
from tidegate.standing.events import (
    CaughtUp,
    CutReached,
    Emptied,
    Event,
    Refused,
    SilverOlder,
    SourceBack,
    SourceStalls,
)
from tidegate.standing.facts import Facts
from tidegate.standing.standing import Standing
from tidegate.standing.step import step
from tidegate.tables import State
from tidegate_airflow.complete_operator import missing_hours

HOUR_MS: Final = HOUR_SECONDS * 1000
BEGINS: Final = 1_700_000_000.0
# Which sources flow into each table: the last one is made of shards.
FEEDS: Final = {"s.a": ("eu",), "s.b": ("us",), "s.all": ("eu", "us")}
SELECTION: Final = Selection(
    frozenset({"eu", "us"}), Tables(include=("s.*",), routes=(Route(match="s.all_.*", to="s.all"),))
)
STALLED_SECONDS: Final = 2 * HOUR_SECONDS


@dataclass
class SourceWorld:
    """A source, its server's clock, and capture of it."""

    ahead: float = 0.0
    resolved: int = 0
    back_at: float = 0.0  # down until then
    commits: list[tuple[int, str]] = field(default_factory=list)  # the newest: (commit_ts, table)


class World:
    """now: this machine's clock, Unix seconds."""

    def __init__(self, dice: random.Random, patched: pytest.MonkeyPatch) -> None:
        # A cut of 0 would be 1970: a table whose source is down from the first moment would catch up from there.
        self.dice, self.now, self.cut = dice, BEGINS, compose(int(BEGINS * 1000))
        self.sources = {"eu": SourceWorld(resolved=self.cut), "us": SourceWorld(resolved=self.cut)}
        self.silver = dict.fromkeys(FEEDS, self.cut)
        self.standings: dict[str, Standing | None] = dict.fromkeys(FEEDS)
        self.followed = FollowedSources()
        self._follow([], SELECTION)
        self.added: dict[str, int] = {}
        self.events: dict[str, list[int]] = {name: [] for name in (ALL_TABLES, *FEEDS)}
        self.due: float | None = None  # when Airflow comes to run the task
        self.versions = dict.fromkeys(("control/cuts", "control/table_states", "control/followed"), 0)
        self.happened: dict[str, int] = {}
        patched.setattr("tidegate.lake.figures.status.cut_ts", lambda _: self.cut)
        patched.setattr("tidegate.lake.figures.status.table_statuses", lambda _: self._statuses())
        patched.setattr("tidegate.lake.standing.followed.load", lambda _: self.followed)
        patched.setattr(complete_hours.time, "time", lambda: self.now)
        patched.setattr("tidegate.delta.tail.LogTail", lambda log: Tail(self, log))
        patched.setattr("tidegate.delta.log.DeltaLog", lambda uri, _: uri)
        self.watched = self._watcher(None)

    def _watcher(self, kept: Any) -> NewHours:
        watched = NewHours(tuple(FEEDS), verified=False, kept=kept)
        watched.open("/lake", {})
        return watched

    # --- the sources -----------------------------------------------------------------------------
    def write(self, name: str) -> None:
        """Some commits, and then a heartbeat proves that there is no other."""
        source = self.sources[name]
        if self.now < source.back_at:
            return
        for _ in range(self.dice.randrange(3)):
            server_ms = int((self.now + source.ahead - self.dice.random()) * 1000)
            source.resolved = next_commit_ts(source.resolved, server_ms)
            table = self.dice.choice([table for table, feeds in FEEDS.items() if name in feeds])
            self._no_hour_was_early(table, source.resolved)
        quiet = Quiet(10.0)
        quiet.came(0.0)
        quiet.read(int((self.now + source.ahead) * 1000), 1.0)
        proved = quiet.heartbeat(10.0, at_end=True)
        assert proved is not None
        source.resolved = max(source.resolved, compose(proved))

    def _no_hour_was_early(self, table: str, commit_ts: int) -> None:
        for name in (table, ALL_TABLES):
            hours = self.events[name]
            assert not hours or commit_ts >= compose((hours[-1] + 1) * HOUR_MS), f"{name}: a commit of a complete hour"

    def fail_over(self, name: str) -> None:
        """Another server goes on, by a clock of its own."""
        source = self.sources[name]
        source.back_at = self.now + self.dice.choice((5, 300, HOUR_SECONDS, 9 * HOUR_SECONDS))
        source.ahead = self.dice.uniform(-200, 200)

    # --- apply -----------------------------------------------------------------------------------
    def apply(self, killed: str = "") -> None:
        """A run's start, and what it does. killed: after silver, or after the states."""
        for name in FEEDS:  # silver_guard: silver older than published
            if self.silver[name] < self.mark(name):
                self.note(name, SilverOlder(self.silver[name], "by its own log"))
        self._catch_up(killed)
        if killed == "below":
            return
        self._leave_behind()
        resolved = {name: source.resolved for name, source in self.sources.items()}
        goes_on = [name for name in self.sources if name not in self.followed.behind]
        upto = max(self.cut, cut_frontier(resolved, goes_on))
        if upto == self.cut:
            return
        for name in filter(self._is_in_the_window, FEEDS):
            self.silver[name] = max(self.silver[name], upto)
        if killed == "silver":
            return
        for name in FEEDS:
            self.note(name, CutReached(self.cut, upto))
        self.wrote("control/table_states")
        if killed == "states":
            return
        self.cut = upto
        self.wrote("control/cuts")

    def _is_in_the_window(self, name: str) -> bool:
        """As plan_window takes tables: one that is released below the cut, or whose source is, has its own windows."""
        of = self.standings[name]
        if of is None or of.state is not State.RELEASED:
            return of is None or of.state is State.ACTIVE
        return self.mark(name) >= self.cut and not any(source in self.followed.behind for source in FEEDS[name])

    def _leave_behind(self) -> None:
        newest = max(source.resolved for source in self.sources.values())
        for name, source in self.sources.items():
            is_late = newest - source.resolved > compose(STALLED_SECONDS * 1000)
            if is_late and name not in self.followed.behind and len(self.followed.behind) + 1 < len(self.sources):
                self.count("left behind")
                for table in FEEDS:
                    if name in FEEDS[table]:
                        self.note(table, SourceStalls(name, "the cut goes on without it"))
                self._follow([FollowedChange(name, CATCHING_UP, self.cut)])

    def _catch_up(self, killed: str) -> None:
        for name, at_ts in list(self.followed.behind.items()):
            upto = min(self.cut, self.sources[name].resolved)
            for table, of in self.standings.items():
                if of is not None and of.state is State.RELEASED and of.source == name:
                    self.silver[table] = max(self.silver[table], upto)
            if killed == "below":
                return
            if upto > at_ts or upto == self.cut:
                back = upto == self.cut
                self._follow([FollowedChange(name, FOLLOWED if back else CATCHING_UP, upto)])
                for table, of in self.standings.items():
                    if back and of is not None and of.source == name:
                        self.note(table, SourceBack(name))
        for table, of in self.standings.items():
            if of is None or of.state is not State.RELEASED or of.source:
                continue
            target = min(self.followed.position(source, self.cut) for source in FEEDS[table])
            upto = min(target, self.mark(table) + self.dice.randrange(1, compose(20 * HOUR_MS)))
            self.silver[table] = max(self.silver[table], upto)
            if killed != "below" and upto > of.applied_ts:
                self.note(table, CaughtUp(upto))

    # --- rebuilds --------------------------------------------------------------------------------
    def rebuild(self, table: str, *, swap: bool, killed: bool) -> None:
        """From bronze: beside it and put in its place by one commit, or in its place, emptied first."""
        at_ts = max(0, self.cut - self.dice.randrange(compose(30 * HOUR_MS)))
        of = self.standings[table]
        if swap and (of is None or of.state in (State.ACTIVE, State.RELEASED)):
            self.count("swapped")
            if at_ts < self.mark(table):
                self.note(table, SilverOlder(at_ts, "it was rebuilt"))  # before the commit, as spark_jobs/swap.py
            self.silver[table] = at_ts
            if killed:
                self.count("swap killed")
                return
            self.wrote("control/cuts")
        elif not swap and (of is None or of.state is State.ACTIVE):
            self.count("rebuilt in place")
            self.note(table, Refused(Cause.NEEDS_ROWS, "silver is gone", needs=Needs.ROWS))
            if not killed:
                self.silver[table] = at_ts
                self.note(table, Emptied(at_ts))

    def mend(self) -> None:
        """What a killed rebuild in place has left is done again."""
        for name, of in self.standings.items():
            if of is not None and of.state is State.HELD:
                self.silver[name] = max(0, self.cut - compose(9 * HOUR_MS))
                self.note(name, Emptied(self.silver[name]))

    # --- Airflow ---------------------------------------------------------------------------------
    def look(self) -> None:
        """The watcher's, and the task's when its time has come."""
        if self.dice.random() < 0.02:
            self.watched = self._watcher(self.watched.kept)  # the triggerer was started again
        if self.watched.look() is not None and self.due is None:
            self.due = self.now + self.dice.choice((0, 5, 60, 5 * HOUR_SECONDS))
        if self.due is not None and self.now >= self.due:
            self.due = None
            self.run()

    def run(self) -> None:
        """The task `complete`."""
        for name, hour in read_complete_hours(None, tuple(FEEDS)).items():  # type: ignore[arg-type]
            further = missing_hours(hour, self.added.get(name))
            for each in further:
                assert each < int(self.now) // HOUR_SECONDS, "the hour goes on"
                assert each not in self.events[name][-1:], "doubled"
                self.events[name].append(each)
                for table in FEEDS if name == ALL_TABLES else (name,):
                    assert self.silver[table] + 1 >= compose((each + 1) * HOUR_MS), f"{table}: silver lacks the hour"
            if further:
                self.added[name] = further.stop

    # --- the rules' own --------------------------------------------------------------------------
    def note(self, table: str, event: Event) -> None:
        self.standings[table] = step(self.standings[table], event, self._facts(table)).standing
        self.wrote("control/table_states")

    def mark(self, table: str) -> int:
        """Up to where control tables say that silver has it."""
        of = self.standings[table]
        if of is None or of.state not in (State.HELD, State.RELEASED):
            return self.cut
        return max(of.applied_ts, self.followed.position(of.source, self.cut)) if of.source else of.applied_ts

    def _facts(self, table: str) -> Facts:
        late = [source for source in FEEDS[table] if source in self.followed.behind]
        return Facts(
            table,
            self.cut,
            applied=lambda: max(self.silver[table], self.mark(table)),
            written=lambda: self.silver[table],
            reached=lambda: self.silver[table],
            mark=lambda: self.mark(table),
            position=lambda source: self.followed.position(source, self.cut),
            late=lambda: late,
            feeds=lambda: FEEDS[table],
            dropped=lambda _: False,
            filled=lambda _: None,
            has_silver=lambda: True,
        )

    def _follow(self, changes: list[FollowedChange], selection: Selection | None = None) -> None:
        number = self.followed.number + 1
        self.followed.take_in(number, rows_of(number, "p", changes, selection, self.cut))
        if number > 1:
            self.wrote("control/followed")

    def wrote(self, path: str) -> None:
        self.versions[path] += 1

    def count(self, what: str) -> None:
        self.happened[what] = self.happened.get(what, 0) + 1

    def _statuses(self) -> list[TableStatus]:
        return [
            TableStatus(name, of.state if of is not None else State.ACTIVE, self.mark(name), 1, "")
            for name, of in self.standings.items()
        ]


class Tail:
    """In place of a LogTail: the version of a control table."""

    def __init__(self, world: World, path: Any) -> None:
        self._world, self._path = world, next(name for name in world.versions if str(path).endswith(name))

    def version(self) -> int:
        return self._world.versions[self._path]
