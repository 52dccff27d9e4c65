"""Chunks as transactions at their low watermark, and the log: together they are the source, however they interleave.

A model in plain Python around the code that decides (waves, spans, events): a table with keys 0 to 9, its log, a reader
that may die anywhere, an apply whose windows end anywhere and that may die before it commits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.seeds import many
from tidegate.segments.crc32c import crc32c
from tidegate.snapshot.chunks.spans import Key, ReadSpans, Span, left_of
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableProgress, progress
from tidegate.snapshot.watermark import Manifest, Mark, MarkKind
from tidegate.snapshot.waves import EndedWave, OpenWave, SeenMark, follow, refusals

KEYS = 10
NAME = ("d", "t")
START = datetime(2026, 1, 1, tzinfo=UTC)


class Rule(Enum):
    """The rule, and what it would be without one of its parts."""

    EXACT = auto()
    ROWS_AT_THE_HIGH_MARK = auto()
    LOG_FROM_WHERE_APPLY_IS = auto()
    VIEWS_OLDER_THAN_THE_LOW_MARK = auto()
    REFUSED_WAVES_COUNT = auto()
    WITHOUT_THE_SWEEP = auto()


@dataclass(frozen=True)
class Chunk:
    """As LandedChunk, with its rows."""

    token: str
    rows: dict[int, int]
    server_uuid: str = "A"
    database: str = NAME[0]
    table: str = NAME[1]

    @property
    def payload_crc32c(self) -> int:
        return crc32c(repr(self.rows).encode())


@dataclass
class Wave:
    token: str
    number: int
    chunks: list[Chunk] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)


def number_of(key: Key | None, otherwise: int) -> int:
    return otherwise if key is None else int(key[0])


@dataclass
class World:
    """heals: silver had rows before and keeps them until the end; else it is emptied at the first wave."""

    rule: Rule
    heals: bool
    log: list[tuple[int, dict[int, int | None]]] = field(default_factory=list)
    marks: list[SeenMark] = field(default_factory=list)
    ddl: list[int] = field(default_factory=list)
    bronze: list[Chunk] = field(default_factory=list)
    events: list[SnapshotEvent] = field(default_factory=list)
    wave: Wave | None = None
    waves: int = 0
    silver: dict[int, tuple[int, int]] = field(default_factory=dict)
    applied: int = 0
    open: dict[str, OpenWave] = field(default_factory=dict)
    first_low: int = 0
    clock: int = 0
    value: int = 0

    def __post_init__(self) -> None:
        for key in range(0, KEYS, 2):
            self.write({key: self.next_value()})
        self.record(EventKind.REQUESTED)
        self.record(EventKind.RANGES, spans=(Span(None, ("4",)), Span(("4",), None)))
        if self.heals:  # a silver that has gone wrong: rows that aren't there, and others' values
            self.silver = {key: (1, -key) for key in range(0, KEYS, 3)}

    # --- the source ---------------------------------------------------------------------------------

    def next_value(self) -> int:
        self.value += 1
        return self.value

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def write(self, changes: dict[int, int | None]) -> None:
        self.log.append((self.tick(), changes))

    def rows(self, upto_ts: int) -> dict[int, int]:
        found: dict[int, int] = {}
        for commit_ts, changes in self.log:
            if commit_ts <= upto_ts:
                for key, value in changes.items():
                    found.pop(key, None)
                    if value is not None:
                        found[key] = value
        return found

    # --- the reader -----------------------------------------------------------------------------------

    def record(self, kind: EventKind, **cells: object) -> None:
        at = START + timedelta(seconds=len(self.events))
        event = SnapshotEvent("s1", "p", "s", kind, at, *NAME, **cells)  # type: ignore[arg-type]
        self.events.append(SnapshotEvent.from_row(event.to_row()))

    @property
    def told(self) -> TableProgress:
        if self.rule is Rule.REFUSED_WAVES_COUNT:
            kept = [event for event in self.events if event.event is not EventKind.REFUSED]
            waiting = [event for event in self.events if event.event is EventKind.REFUSED]
            answered = [SnapshotEvent.from_row(one.to_row() | {"event": "applied"}) for one in waiting]
            return progress([*kept, *answered])["s1", "s", *NAME]
        return progress(self.events)["s1", "s", *NAME]

    def mark(self, kind: MarkKind, token: str, number: int, tables: tuple[Manifest, ...] = ()) -> None:
        mark = Mark.from_text(Mark("s1", number, kind, token, tables).to_text())
        assert mark is not None
        self.marks.append(SeenMark(self.tick(), "A", mark))

    def low(self) -> None:
        if self.wave is None and self.told.left:
            self.waves += 1
            self.wave = Wave(f"token{self.waves}", self.waves)
            self.mark(MarkKind.LOW, self.wave.token, self.waves)

    def read(self, which: int, count: int) -> None:
        """A chunk of `count` rows from the beginning of a span that is left, as the table is now."""
        left = left_of(self.told.left, [ReadSpans(tuple(self.wave.spans))]) if self.wave else ()
        if self.wave is None or not left:
            return
        span = left[which % len(left)]
        seen = self.clock - 4 if self.rule is Rule.VIEWS_OLDER_THAN_THE_LOW_MARK else self.clock
        low, high = number_of(span.after, -1), number_of(span.upto, KEYS)
        keys = sorted(key for key in self.rows(seen) if low < key <= high)[:count]
        ends = span.upto if len(keys) < count else (str(keys[-1]),)
        rows = {key: value for key, value in self.rows(seen).items() if key in keys}
        chunk = Chunk(self.wave.token, rows)
        self.wave.chunks.append(chunk)
        self.wave.spans.append(Span(span.after, ends))
        self.bronze.append(chunk)

    def high(self, *, dies: bool = False) -> None:
        if self.wave is None:
            return
        crc = 0
        for chunk in self.wave.chunks:
            crc ^= chunk.payload_crc32c
        tables = (Manifest(*NAME, len(self.wave.chunks), crc),)
        wave, self.wave = self.wave, None
        self.mark(MarkKind.HIGH, wave.token, wave.number, tables)
        if not dies:
            self.record(EventKind.WAVE, wave=wave.number, token=wave.token, spans=tuple(wave.spans), rows=1)

    def end(self) -> None:
        if self.told.is_read:
            self.mark(MarkKind.END, "end", 0, (Manifest(*NAME),))
            self.record(EventKind.ENDED)

    # --- apply ----------------------------------------------------------------------------------------

    def apply(self, upto_ts: int, *, dies: bool = False) -> None:
        """One window (applied, upto_ts]."""
        if upto_ts <= self.applied:
            return
        mine = [seen for seen in self.marks if self.applied < seen.commit_ts <= upto_ts]
        found = follow(self.open.values(), mine)
        after_ts, changes, answers = self.applied, [], []
        for wave in found.ended:
            chunks = [chunk for chunk in self.bronze if chunk.token == wave.token]
            between = {NAME} if any(wave.low_ts < ts <= wave.high_ts for ts in self.ddl) else set()
            if refused := refusals(wave, chunks, between):
                answers.append((EventKind.REFUSED, wave, refused[NAME]))
                if self.rule is not Rule.REFUSED_WAVES_COUNT or wave.refused:
                    continue
            else:
                answers.append((EventKind.APPLIED, wave, ""))
            stamp = wave.high_ts if self.rule is Rule.ROWS_AT_THE_HIGH_MARK else wave.low_ts
            after_ts = min(after_ts, wave.after_ts)
            changes += [(stamp, key, value) for chunk in chunks for key, value in chunk.rows.items()]
        if self.rule is Rule.LOG_FROM_WHERE_APPLY_IS:
            after_ts = self.applied
        if dies:
            return
        silver = dict(self.silver)
        low = self._first_low(answers)
        if low and not self.first_low and not self.heals:
            silver, after_ts = {}, low - 1
        self._write(silver, after_ts, upto_ts, changes)
        if found.whole and self.heals and self.rule is not Rule.WITHOUT_THE_SWEEP:
            silver = {key: row for key, row in silver.items() if row[0] >= (low or self.first_low)}
        self.silver, self.applied, self.open = silver, upto_ts, found.open
        self.first_low = self.first_low or low
        for kind, wave, reason in answers:
            low_ts = None if kind is EventKind.REFUSED else wave.low_ts
            self.record(kind, wave=wave.wave, token=wave.token, reason=reason, low_ts=low_ts)
        for _ in found.whole:
            self.record(EventKind.DONE)

    def _first_low(self, answers: list[tuple[EventKind, EndedWave, str]]) -> int:
        return min((wave.low_ts for kind, wave, _ in answers if kind is EventKind.APPLIED), default=0)

    def _write(
        self, silver: dict[int, tuple[int, int]], after_ts: int, upto_ts: int, chunk_rows: list[tuple[int, int, int]]
    ) -> None:
        """The last change per key, without a look at what silver has."""
        logged = [(ts, key, value) for ts, row in self.log if after_ts < ts <= upto_ts for key, value in row.items()]
        for ts, key, value in sorted([*chunk_rows, *logged], key=lambda change: change[0]):
            silver.pop(key, None)
            if value is not None:
                silver[key] = (ts, value)

    # --- a run ------------------------------------------------------------------------------------------

    def step(self, op: int, one: int, two: int) -> None:
        match op:
            case 0 | 1:
                self.write({one % KEYS: self.next_value()})
            case 2:
                self.write({one % KEYS: None})
            case 3:  # a key moves
                held = self.rows(self.clock).get(one % KEYS)
                if held is not None and one % KEYS != two % KEYS:
                    self.write({one % KEYS: None, two % KEYS: self.next_value()})
            case 4:
                self.low()
            case 5 | 6:
                self.read(one, 1 + two % 4)
            case 7:
                self.high()
            case 8:
                if one % 2:
                    self.high(dies=True)
                self.wave = None  # the reader dies before its high mark, or behind it
            case 9:
                self.apply(min(self.applied + 1 + one % 7, self.clock) if two % 2 else self.clock)
            case 10:
                self.apply(self.clock, dies=True)
            case 11:
                self.ddl.append(self.tick())

    def finish(self) -> None:
        """The reader goes on until all is read and marked; apply is at the end of the log."""
        for _ in range(60):
            self.low()
            for _ in range(3):
                self.read(0, 3)
            self.high()
            self.apply(self.clock)
            self.end()
            self.write({self.clock % KEYS: self.next_value()})
            self.apply(self.clock)
            if self.told.state is SnapshotState.DONE:
                return
        raise AssertionError(f"the snapshot doesn't end: {self.told}")

    @property
    def is_exact(self) -> bool:
        return {key: value for key, (_, value) in self.silver.items()} == self.rows(self.applied)


Program = list[tuple[int, int, int]]
STEPS = st.tuples(st.integers(0, 11), st.integers(0, 27), st.integers(0, 9))
PROGRAMS = st.lists(STEPS, max_size=60)


def run(program: Program, rule: Rule, *, heals: bool) -> World:
    world = World(rule, heals)
    for step in program:
        world.step(*step)
    world.finish()
    return world


@settings(max_examples=many(800, 50_000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=PROGRAMS, heals=st.booleans())
def test_chunks_and_the_log_are_the_source_however_they_interleave(program: Program, heals: bool) -> None:
    world = run(program, Rule.EXACT, heals=heals)
    assert world.is_exact, (world.silver, world.rows(world.applied))
    for step in program:  # and so it stays
        if step[0] < 4:
            world.step(*step)
    world.apply(world.clock)
    assert world.is_exact


# Of each part a shortest run that goes wrong without it; an empty one goes wrong as its reader ends.
GOES_WRONG: dict[Rule, Program] = {
    Rule.ROWS_AT_THE_HIGH_MARK: [(4, 0, 0), (5, 1, 0), (0, 6, 0)],
    Rule.LOG_FROM_WHERE_APPLY_IS: [*[(0, 0, 0)] * 12, (4, 0, 0), (5, 0, 0), (0, 0, 0), (9, 0, 0)],
    Rule.VIEWS_OLDER_THAN_THE_LOW_MARK: [],
    Rule.REFUSED_WAVES_COUNT: [(4, 0, 0), (5, 0, 0), (11, 0, 0), (0, 0, 0), (7, 0, 0)],
    Rule.WITHOUT_THE_SWEEP: [],
}


@pytest.mark.parametrize("rule", [rule for rule in Rule if rule is not Rule.EXACT])
def test_without_a_part_of_the_rule_some_run_goes_wrong(rule: Rule) -> None:
    heals = rule in (Rule.WITHOUT_THE_SWEEP, Rule.LOG_FROM_WHERE_APPLY_IS)  # else the first wave hides it
    assert not run(GOES_WRONG[rule], rule, heals=heals).is_exact
    assert run(GOES_WRONG[rule], Rule.EXACT, heals=heals).is_exact
