"""Random interleavings of branches, cut into segments and windows anywhere, with kills, beside a plain oracle."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support import seeds
from tidegate.cli.prewrites import _parked
from tidegate.errors import UsageError
from tidegate.lake import control
from tidegate.lake.bronze import prewrites as recorded
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.mysql.facts.branches import readable
from tidegate.segments.prewrites import Pending, Prewrite, PrewriteAnswer, Prewrites, within_segment
from tidegate.tables.prewrites_table import PREWRITES, PrewriteState

Told = Pending | PrewriteAnswer


def log_of(rng: random.Random, steps: int) -> tuple[list[Told], dict[int, int]]:
    """What a source says, in log order; the oracle: start_ts of what is committed -> commit_ts of the commit."""
    told: list[Told] = []
    waiting: dict[str, int] = {}
    committed: dict[int, int] = {}
    for at in range(1, steps + 1):
        name = f"b{rng.randrange(6)}"  # names come again
        if name not in waiting:
            waiting[name] = at
            told.append(Pending(name, at, 0, 0, ("d.t",)))
            continue
        commits = rng.random() < 0.6
        began = waiting.pop(name)
        told.append(PrewriteAnswer(name, commits, at, "log", at))
        if commits:
            committed[began] = at
    return told, committed


def in_segments(rng: random.Random, told: list[Told]) -> list[list[Told]]:
    """Cut anywhere; a branch lies in the segment of its PREPARE."""
    found: list[list[Told]] = []
    while told:
        size = rng.randrange(1, 8)
        seq = len(found) + 1
        part = [Pending(p.id, p.start_ts, seq, seq, p.tables) if isinstance(p, Pending) else p for p in told[:size]]
        found.append(part)
        told = told[size:]
    return found


def ts_of(one: Told) -> int:
    return one.start_ts if isinstance(one, Pending) else one.commit_ts


def test_what_windows_commit_is_what_the_log_commits_however_both_are_cut_and_killed(tmp_path: Path) -> None:
    rng = random.Random(seeds.seed())
    for number in range(seeds.many(40, 600)):
        lake = LakeFiles(str(tmp_path / str(number)))
        told, committed = log_of(rng, 80)
        segments = in_segments(rng, told)
        known, low, found = Prewrites("s"), 0, dict[int, int]()
        while low < 80:
            cut = low + rng.randrange(1, 30)
            rest: list[Told] = []
            here: dict[int, int] = {}
            for segment in segments:
                whole, left = within_segment("s", segment)
                here |= {
                    one.start_ts: one.answer_ts
                    for one in whole
                    if low < one.answer_ts <= cut and one.state is PrewriteState.COMMITTED
                }
                rest += [one for one in left if low < ts_of(one) <= cut]
            recorded.record(ControlTables(lake), known.take(rest))
            killed = rng.random() < 0.3
            if not killed:
                answered = {one.start_ts: one for one in known.answered_in(low, cut)}
                here |= {at: one.answer_ts for at, one in answered.items() if one.state is PrewriteState.COMMITTED}
                assert not here.keys() & found.keys(), "committed twice"
                found |= here
                low = cut
                known.forget(low)
            if killed or rng.random() < 0.2:  # another application
                known = Prewrites("s", recorded.standing(lake, low).get("s", ()))
        assert found == committed, f"log {number}"
        open_now = {one.start_ts for one in known if one.waits}
        answered_all = {at for at, _ in committed.items()}
        assert not open_now & answered_all


def test_a_hundred_branches_answered_a_hundred_segments_later_leave_nothing_in_memory(tmp_path: Path) -> None:
    known, lake = Prewrites("s"), LakeFiles(str(tmp_path))
    news = known.take([Pending(f"b{n}", n + 1, n + 1, n + 1, ("d.t",)) for n in range(100)])
    recorded.record(ControlTables(lake), news)
    assert recorded.first_needed(lake, {"s": 1000}) == {"s": 1}, "bronze keeps the oldest"
    news = known.take([PrewriteAnswer(f"b{n}", n % 2 == 0, 200 + n, "log", n) for n in range(100)])
    recorded.record(ControlTables(lake), news)
    known.forget(300)
    assert not list(known)
    assert recorded.first_needed(lake, {"s": 300}) == {}
    assert recorded.first_needed(lake, {"s": 250}) == {"s": 52}, "a table that waits at 250 still needs its rows"
    assert len(recorded.answered_in(lake, 250, 260)["s"]) == 10


def test_a_late_answer_settles_what_is_parked_and_contradicts_what_was_decided() -> None:
    place = PrewriteAnswer("", False, 50, "log", 4)
    for decided, late, state in (
        (PrewriteState.PARKED, True, PrewriteState.COMMITTED),
        (PrewriteState.PARKED, False, PrewriteState.ROLLED_BACK),
        (PrewriteState.COMMITTED, True, None),
        (PrewriteState.ROLLED_BACK, False, None),
        (PrewriteState.COMMITTED, False, PrewriteState.UNKNOWN),
        (PrewriteState.ROLLED_BACK, True, PrewriteState.UNKNOWN),
    ):
        known = Prewrites("s")
        known.take([Pending("x", 1, 1, 1, ("d.t",)), Pending("young", 40, 1, 1, ()), Pending("there", 2, 1, 1, ())])
        (orphan,) = known.orphans(30, {"there"})
        assert orphan.id == "x"
        known.decide(orphan, decided, place, "" if decided is PrewriteState.PARKED else "somebody")
        known.forget(60)
        found = known.take([PrewriteAnswer("x", late, 70, "log", 9)])
        assert [one.state for one in found] == ([] if state is None else [state])
        if state is PrewriteState.UNKNOWN:
            assert found[0].tables == ("d.t",), "its own tables wait, and no others"


def test_who_catches_up_meets_an_answer_that_came_after_all_where_it_stands_and_not_what_was_said_before(
    tmp_path: Path,
) -> None:
    known, lake = Prewrites("s"), LakeFiles(str(tmp_path))
    tables = ControlTables(lake)
    recorded.record(tables, known.take([Pending("x", 1, 1, 1, ("d.t",))]))
    (orphan,) = known.orphans(30, set())
    recorded.record(tables, [known.decide(orphan, PrewriteState.PARKED, PrewriteAnswer("", False, 50, "log", 4), "")])
    assert [one.state for one in recorded.answered_in(lake, 40, 60)["s"]] == [PrewriteState.PARKED]
    recorded.record(tables, known.take([PrewriteAnswer("x", True, 70, "log", 9)]))
    assert recorded.answered_in(lake, 40, 60) == {}, "parked no longer: its tables would be held for ever"
    assert [one.answer_ts for one in recorded.answered_in(lake, 60, 80)["s"]] == [70]


def test_an_answer_to_nothing_is_told_when_it_commits() -> None:
    known = Prewrites("s")
    assert known.take([PrewriteAnswer("x", False, 5, "log", 9)]) == []
    (found,) = known.take([PrewriteAnswer("x", True, 7, "log", 19)])
    assert (found.state, found.answer_ts, found.began_seq) == (PrewriteState.UNKNOWN, 7, 0)
    assert known.take([PrewriteAnswer("x", True, 7, "log", 19)]) == [], "once"


def test_maintain_keeps_what_bronze_may_still_ask_for(tmp_path: Path) -> None:
    known, lake = Prewrites("s"), LakeFiles(str(tmp_path))
    tables = ControlTables(lake)
    recorded.record(tables, known.take([Pending(f"b{n}", n, 1, 1, ()) for n in range(1, 5)]))
    recorded.record(
        tables, known.take([PrewriteAnswer("b1", True, 10, "log", 1), PrewriteAnswer("b2", True, 20, "log", 2)])
    )
    rows: pa.Table = control.read(lake, PREWRITES)
    kept = recorded.worth_keeping(rows, {"s": 10})
    assert sorted(kept["id"].to_pylist()) == ["b2", "b3", "b4"]


def test_branches_are_named_as_a_person_would() -> None:
    assert readable("X'6731',X'',1") == "'g1'"
    assert readable("X'6731',X'6231',7") == "'g1','b1',7"
    assert readable("X'00ff',X'',1") == "X'00ff',X'',1"


def test_one_of_two_parked_branches_of_a_name_is_named_in_full() -> None:
    parked = [Prewrite(source, "x", 7, 1, 1, (), PrewriteState.PARKED, 50) for source in ("one", "two")]
    with pytest.raises(UsageError, match="x is parked more than once") as told:
        _parked(parked, "x", "p")
    assert "one x 7; two x 7" in str(told.value)
    assert _parked(parked, "two x 7", "p") is parked[1]
    assert _parked(parked[:1], "x", "p") is parked[0]


def test_a_persons_word_counts_once_and_by_any_clock(tmp_path: Path) -> None:
    """The clock of apply's machine is ahead; a second person decides at the same time, in another way."""
    lake = LakeFiles(str(tmp_path))
    orphan = Prewrite("s", "X'61',X'',1", 7, 1, 1, ("d.t",), PrewriteState.PARKED, 9, "log", 4)
    ahead = datetime.now(UTC) + timedelta(hours=1)
    ControlTables(lake).append(PREWRITES, [orphan.to_row(ahead)])
    assert recorded.decide(lake, orphan, PrewriteState.COMMITTED, "ann")
    assert not recorded.decide(lake, orphan, PrewriteState.ROLLED_BACK, "bob")
    ((known,),) = recorded.unsettled(lake).values()
    assert (known.state, known.decided_by) == (PrewriteState.COMMITTED, "ann")
