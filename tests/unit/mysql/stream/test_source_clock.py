"""No transaction is dated after the source's clock, whoever says that it is; decode, and a restart, find the same."""

from __future__ import annotations

import random
import time

import pytest

from tests.kit.decoding import index_segment
from tests.unit.binlog.encoding import events as e
from tests.unit.mysql.stream.test_beyond_4_gib import FILE, cutter_at, moved, received
from tidegate.binlog.format.events import EventFlag, EventType
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.commit_ts import physical_ms
from tidegate.limits import CLOCK_DOUBT_SECONDS, CLOCK_SLACK_SECONDS
from tidegate.mysql.stream.place import beginning
from tidegate.mysql.stream.source_clock import SourceClock
from tidegate.segments.segment import Segment

YEAR_SECONDS = 365 * 86_400
MAPPED = e.table_map(5, "t", b"\x03", b"")
ROWS = e.rows(EventType.WRITE_ROWS_V1, 5, 1, e.image(e.integer(1)))
MORE = e.rows(EventType.WRITE_ROWS_V1, 5, 1, e.image(e.integer(1)), end=False)


def log_of(seed: int, count: int, set_back: int = 0) -> list[tuple[bytes, int]]:
    """Events of transactions and the source's clock, in ms, when each was written; some say that they are later.

    set_back: so many seconds, at once, in mid-log.
    """
    rng, found, at = random.Random(seed), [], 256
    for number in range(1, count + 1):
        clock = e.SECONDS + number - (set_back if number > count // 2 else 0)
        says = clock + rng.choice([0, 0, 0, -YEAR_SECONDS, 3600, 10 * YEAR_SECONDS])
        parts = [e.mariadb_gtid(number, seconds=says), MAPPED, *[MORE] * rng.randrange(4), ROWS, e.xid()]
        for part in parts:
            at += len(part)
            found.append((moved(part, at), clock * 1000))
    return found


@pytest.mark.parametrize("set_back", [0, 600])
@pytest.mark.parametrize("seed", range(12))
def test_sessions_that_set_their_clock_date_nothing_in_the_future(seed: int, set_back: int) -> None:
    rng, events = random.Random(seed), log_of(seed, 40, set_back)
    head = moved(e.format_description(), 0, flags=EventFlag.ARTIFICIAL)
    cutter, segments, at = cutter_at(beginning(file=FILE, offset=256)), [], 0
    feed, clock = [head], 0.0
    while at < len(events) or feed:
        more = rng.randrange(1, 12)
        feed += [event for event, _ in events[at : at + more]]
        at += more
        read_late = rng.choice([0, 0, 30])  # capture is behind: the source's clock is that of what it writes by now
        clock = float(events[min(at + read_late, len(events)) - 1][1])
        stream, cutter.state["have"] = received(feed)
        cutter.state["read"] = 0
        segments += [*cutter.advance(stream, clock)]
        segments += rng.choice([cutter.cut_now, list])()
        feed = []
        if rng.random() < 0.3:  # a restart: what is open is read again
            cutter = cutter_at(cutter.checkpoint)
            place = 256
            for number, (event, _) in enumerate(events):
                if place == cutter.checkpoint.place.replay_from:
                    at = number
                    break
                place += len(event)
            else:
                at = len(events)
            feed = [head] if at < len(events) else []
    segments += cutter.cut_now()
    check(segments, events)


def check(segments: list[Segment], events: list[tuple[bytes, int]]) -> None:
    assert b"".join(bytes(segment.payload) for segment in segments) == b"".join(event for event, _ in events)
    before = 0
    for segment in segments:
        assert segment.prev_commit_ts == before
        before = segment.resolved_ts
        stamps = {int(stamp) for stamp in index_segment(segment).events[:, K.COMMIT_TS]}
        assert (min(stamps), max(stamps)) == (segment.min_commit_ts, segment.max_commit_ts)
        written = e.SECONDS * 1000 + 1000 * 40
        assert physical_ms(segment.max_commit_ts) <= written + 1000 * CLOCK_SLACK_SECONDS
    assert physical_ms(before) >= e.SECONDS * 1000 + 1000
    assert any(segment.ceiling_ms for segment in segments)
    assert not all(segment.ceiling_ms for segment in segments)


def test_a_clock_that_leaps_is_believed_only_when_it_stays_so(caplog: pytest.LogCaptureFixture) -> None:
    clock, now, there = SourceClock("here"), time.monotonic(), int(time.time() * 1000)
    day = 86_400_000
    assert clock.take(there, now) == there
    assert clock.take(there + 10_000 + 60_000, now + 10) == there + 70_000, "a minute may be"
    assert clock.take(there + 20_000 + day, now + 20) < there + 80_000 + 1_000
    assert clock.doubted
    assert "later than it should be" in caplog.text
    assert clock.take(there + 30_000, now + 30) == there + 30_000, "it was a moment's"
    assert not clock.doubted
    assert clock.take(there + 32_000 - day, now + 32) == there + 32_000 - day, "back is no harm"
    assert clock.take(there + 34_000, now + 34) == there + 34_000, "nor is what puts that right"
    clock.take(there + 40_000 + day, now + 40)
    late = 41 + CLOCK_DOUBT_SECONDS
    said = there + late * 1000 + day
    assert clock.take(said, now + late) == said, "it was set for good"
    assert not clock.doubted


def test_before_the_first_answer_this_machines_clock_must_do() -> None:
    clock, now = SourceClock("here"), time.monotonic()
    assert clock.take(int(time.time() * 1000) + 86_400_000, now) < time.time() * 1000 + 1_000
    assert clock.doubted
