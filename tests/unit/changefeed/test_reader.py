"""A changefeed's files are given in order of commit_ts, whatever TiCDC writes late, twice or in pieces."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.changefeed_writer import CREATE_PLAIN, PLAIN, Change, Changefeed, plain, ts
from tests.support.seeds import share
from tidegate.capture.captured import Captured
from tidegate.capture.own_stream import StreamCheckpoint
from tidegate.changefeed import falls, stream, wave
from tidegate.changefeed.reader import ChangefeedReader, ChangefeedSettings, ChangefeedSource
from tidegate.config import Csv, Protocol
from tidegate.errors import PositionLost, SourceRefused, SourceUnavailable, SourceUnwilling, StreamCorrupt
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind
from tidegate.ticdc.pieces import Form, pieces_of

NOBODY: Any = None  # this source looks at no more than the tail
CAPTURED = Captured(NOBODY, NOBODY, None)


def source(feed: Changefeed, **more: Any) -> ChangefeedSource:
    form = Form(Protocol(feed.protocol), "UTC", all_rows=True, csv=Csv())
    settings = ChangefeedSettings("one", str(feed.path), {}, form, 1 << 20, 0.001, 0.001, 0)
    return ChangefeedSource(replace(settings, **more))


def opened(
    made: ChangefeedSource, checkpoint: StreamCheckpoint | None = None, captured: Captured = CAPTURED
) -> ChangefeedReader:
    reader = made.connect()
    found = reader.resume(checkpoint, captured, patient=False) if checkpoint else reader.first_checkpoint(CAPTURED)
    reader.open(found)
    return reader


def given(reader: ChangefeedReader, upto_ts: int) -> list[Segment]:
    """Segments until the reader stands at upto_ts."""
    found: list[Segment] = []
    for _ in range(10_000):
        found += reader.receive(0.01)
        if reader.resolved_ts >= upto_ts:
            return found
    raise AssertionError(f"resolved_ts is {reader.resolved_ts}, expected {upto_ts}")


def lines(segments: list[Segment]) -> list[tuple[int, str, int]]:
    """(commit_ts, table, id) of each line, as given."""
    found = []
    for segment in segments:
        if segment.kind is SegmentKind.HEARTBEAT:
            continue
        for placed in pieces_of(segment):
            if not placed.piece.schema:
                parsed = [json.loads(line) for line in placed.data.splitlines()]
                found += [(one["_tidb"]["commitTs"], one["table"], int(one["data"][0]["id"])) for one in parsed]
    return found


@pytest.fixture
def feed(tmp_path: Path) -> Changefeed:
    made = Changefeed(tmp_path / "feed")
    made.ddl("shop.t", ts(1), CREATE_PLAIN.format("shop", "t"), 3, PLAIN)
    return made


def test_nothing_above_the_checkpoint_is_given_whatever_a_file_holds(feed: Changefeed) -> None:
    feed.rows("shop.t", *(Change(ts(at), plain(at, "x")) for at in range(2, 10)))
    feed.checkpoint(ts(5))
    reader = opened(source(feed))
    assert [at for at, _, _ in lines(given(reader, ts(5)))] == [ts(2), ts(3), ts(4), ts(5)]
    feed.checkpoint(ts(9))
    assert [at for at, _, _ in lines(given(reader, ts(9)))] == [ts(6), ts(7), ts(8), ts(9)]


def test_a_ddl_of_the_checkpoint_itself_may_come_after_it(feed: Changefeed) -> None:
    """TiCDC stops its checkpoint at a DDL's commit_ts, writes it down, and then writes the DDL."""
    feed.rows("shop.t", Change(ts(3), plain(3, "x")))
    feed.checkpoint(ts(5) - 1)
    reader = opened(source(feed))
    assert len(given(reader, ts(5) - 1)) == 1
    feed.ddl("shop.t", ts(5), "TRUNCATE TABLE t", 11)
    feed.checkpoint(ts(6))
    (segment,) = given(reader, ts(6))
    assert (segment.flags, segment.min_commit_ts) == (SegmentFlag.HAS_DDL, ts(5))


def test_the_bytes_of_a_segment_are_those_of_the_files(feed: Changefeed) -> None:
    file = feed.rows("shop.t", *(Change(ts(at), plain(at, 'é "\n')) for at in range(2, 10)))
    feed.checkpoint(ts(9))
    (segment,) = given(opened(source(feed)), ts(9))
    segment.verify()
    schema, data = pieces_of(segment)
    assert data.data == file.read_bytes()
    assert schema.data == next((feed.path / "shop/t/meta").iterdir()).read_bytes()
    assert segment.flags == SegmentFlag.HAS_DDL
    assert segment.tables == ("shop.t",)
    assert (segment.min_commit_ts, segment.max_commit_ts, segment.resolved_ts) == (ts(1), ts(9), ts(9))


def test_what_is_missing_between_files_is_said(feed: Changefeed) -> None:
    files = [feed.rows("shop.t", Change(ts(at), plain(at, "x"))) for at in range(2, 6)]
    files[1].unlink()
    feed.checkpoint(ts(9))
    with pytest.raises(SourceRefused, match="data file 2 is missing"):
        given(opened(source(feed)), ts(9))
    files[0].unlink()
    files[2].unlink()
    with pytest.raises(SourceRefused, match="data file 3 is missing"):
        given(opened(source(feed)), ts(9))


def test_a_line_without_its_commit_ts_says_what_to_set(feed: Changefeed) -> None:
    file = feed.rows("shop.t", Change(ts(2), plain(2, "x")), Change(ts(3), plain(3, "x")))
    file.write_bytes(file.read_bytes().replace(b'"_tidb"', b'"tidb"', 1))
    feed.checkpoint(ts(9))
    with pytest.raises(StreamCorrupt, match="enable-tidb-extension"):
        given(opened(source(feed)), ts(9))


def test_another_path_and_removed_files_are_no_place_to_go_on_at(feed: Changefeed) -> None:
    feed.checkpoint(ts(5))
    reader = opened(source(feed))
    given(reader, ts(5))
    with pytest.raises(PositionLost, match="its own"):
        opened(source(feed), replace(reader.checkpoint, place=replace(reader.checkpoint.place, name="/elsewhere")))
    feed.checkpoint(ts(5 + 3 * 24 * 3600))
    with pytest.raises(PositionLost, match="older than 3 days"):
        opened(source(feed, expiration_days=3), reader.checkpoint)
    assert opened(source(feed, expiration_days=4), reader.checkpoint).resolved_ts == ts(5)


def test_files_that_begin_anew_where_others_were_captured_are_refused(feed: Changefeed) -> None:
    """The path was emptied, and another changefeed writes to it: what lies between nobody has."""
    files = [feed.rows("shop.t", Change(ts(at), plain(at, "x"))) for at in (2, 3)]
    feed.checkpoint(ts(3))
    reader = opened(source(feed))
    assert len(lines(given(reader, ts(3)))) == 2
    for file in files:
        file.unlink()
    feed.checkpoint(ts(4))
    given(reader, ts(4))  # TiCDC removes old files itself where it is told to
    feed.tables["shop", "t"].number.clear()
    feed.rows("shop.t", Change(ts(6), plain(6, "x")))
    feed.checkpoint(ts(7))
    with pytest.raises(SourceRefused, match=r"CDC000002\.json is gone, and CDC000001\.json is there"):
        given(reader, ts(7))


def test_a_run_that_begins_looks_whether_what_was_captured_last_is_still_there(feed: Changefeed) -> None:
    file = feed.rows("shop.t", *(Change(ts(at), plain(at, "x")) for at in (2, 3, 5)))
    feed.checkpoint(ts(3))
    reader = opened(source(feed))
    captured = Captured(NOBODY, NOBODY, None)
    captured.add(given(reader, ts(3)))
    assert opened(source(feed), reader.checkpoint, captured).resolved_ts == ts(3)
    whole = file.read_bytes()
    for other in (whole.replace(b'"x"', b'"y"'), whole[:20], None):
        file.unlink() if other is None else file.write_bytes(other)
        with pytest.raises(PositionLost, match=r"CDC000001\.json no longer has what was captured of it"):
            opened(source(feed), reader.checkpoint, captured)
    feed.checkpoint(ts(3 + 2 * 24 * 3600))
    assert opened(source(feed, expiration_days=3), reader.checkpoint, captured).resolved_ts == ts(3)


def test_a_run_looks_also_where_a_statement_came_last(feed: Changefeed) -> None:
    reader, captured = opened(source(feed)), Captured(NOBODY, NOBODY, None)
    feed.ddl("shop.u", ts(6), CREATE_PLAIN.format("shop", "u"), 3, PLAIN)
    feed.checkpoint(ts(7))
    captured.add(given(reader, ts(7)))
    assert opened(source(feed), reader.checkpoint, captured).resolved_ts == ts(7)
    (made,) = (feed.path / "shop/u/meta").iterdir()
    made.unlink()
    with pytest.raises(PositionLost, match=r"schema_.*no longer has what was captured of it"):
        opened(source(feed), reader.checkpoint, captured)


def test_a_checkpoint_that_falls_far_is_refused_by_name(feed: Changefeed) -> None:
    """As of a changefeed that was set back, or of a second one of this path."""
    feed.rows("shop.t", Change(ts(3), plain(3, "x")))
    feed.checkpoint(ts(1000))
    reader = opened(source(feed))
    given(reader, ts(1000))
    feed.checkpoint(ts(600))
    with pytest.raises(SourceRefused, match=r"the checkpoint fell 1 times, by 400 s now, .*: another changefeed"):
        given(reader, ts(1001))
    with pytest.raises(SourceRefused, match="the checkpoint fell"):
        given(opened(source(feed), reader.checkpoint), ts(1001))
    (feed.path / "metadata").unlink()
    with pytest.raises(SourceUnavailable, match="metadata is gone"):
        given(opened(source(feed), reader.checkpoint), ts(1001))


def test_a_checkpoint_that_falls_by_turns_is_two_changefeeds(feed: Changefeed) -> None:
    """Each fall is waited for, as of an owner that died; they are counted."""
    made = source(feed)
    reader = opened(made)
    for turn in range(2):
        feed.checkpoint(ts(10 * turn + 20))
        given(reader, ts(10 * turn + 20))
        feed.checkpoint(ts(10 * turn + 15))
        for _ in range(3):
            with pytest.raises(SourceUnwilling, match="the checkpoint fell below"):
                given(reader, ts(100))
            reader = opened(made, reader.checkpoint if reader.checkpoint.seq else None)
            reader._quiet_ts = ts(10 * turn + 20)
    feed.checkpoint(ts(40))
    given(reader, ts(40))
    feed.checkpoint(ts(35))
    with pytest.raises(SourceRefused, match="fell 3 times, by 5 s now"):
        given(reader, ts(100))


def test_a_checkpoint_from_the_future_is_refused_by_name(feed: Changefeed) -> None:
    feed.checkpoint((1 << 62) - 1)
    with pytest.raises(SourceRefused, match="ahead of this machine's clock"):
        source(feed).connect()
    feed.checkpoint(ts(5))
    reader = opened(source(feed))
    given(reader, ts(5))
    feed.checkpoint((1 << 62) - 1)
    with pytest.raises(SourceRefused, match="ahead of this machine's clock"):
        given(reader, ts(6))


@pytest.mark.parametrize("name", ["x/y", "x/123"])
def test_a_table_whose_name_has_a_slash_is_named(feed: Changefeed, name: str) -> None:
    feed.ddl(f"shop.{name}", ts(2), CREATE_PLAIN.format("shop", name), 3, PLAIN)
    feed.rows(f"shop.{name}", Change(ts(3), plain(3, "x")))
    feed.checkpoint(ts(5))
    with pytest.raises(SourceRefused, match="a table or a database with a slash in its name"):
        given(opened(source(feed)), ts(5))


def test_a_folder_that_is_not_there_may_come(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.path.rmdir()
    with pytest.raises(SourceUnavailable, match="isn't there"):
        source(feed).connect()
    feed.path.mkdir()
    assert opened(source(feed)).receive(0.01) == []  # TiCDC has written no checkpoint yet


def test_a_file_that_is_being_written_is_read_again(feed: Changefeed) -> None:
    file = feed.rows("shop.t", *(Change(ts(at), plain(at, "x")) for at in range(2, 6)))
    whole = file.read_bytes()
    cut = whole.index(b"\n", len(whole) // 2) + 20
    file.write_bytes(whole[:cut])
    feed.checkpoint(ts(2))
    reader = opened(source(feed))
    found = given(reader, ts(2))
    file.write_bytes(whole)
    feed.rows("shop.t", Change(ts(6), plain(6, "x")))
    feed.checkpoint(ts(6))
    found += given(reader, ts(6))
    assert [number for _, _, number in lines(found)] == [2, 3, 4, 5, 6]


def test_a_table_that_the_changefeed_found_comes_with_its_first_lines(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.found("shop.t", ts(0), PLAIN)
    feed.checkpoint(ts(3))
    reader = opened(source(feed))
    assert given(reader, ts(3)) == []
    feed.rows("shop.t", Change(ts(4), plain(4, "x")))
    feed.checkpoint(ts(4))
    (segment,) = given(reader, ts(4))
    assert [placed.piece.found for placed in pieces_of(segment)] == [True, False]
    feed.rows("shop.t", Change(ts(5), plain(5, "x")))
    feed.checkpoint(ts(5))
    (segment,) = given(reader, ts(5))
    assert [placed.piece.found for placed in pieces_of(segment)] == [False]


def test_folders_of_days_that_are_captured_are_forgotten(feed: Changefeed) -> None:
    """Each keeps its share of what a run may hold, and a changefeed runs for years."""
    day = 24 * 3600
    reader = opened(source(feed))
    found = []
    for number in range(6):
        at = ts(2 + number * day)
        feed.rows("shop.t", Change(at, plain(number, "x")), folder=f"2022-05-{19 + number}")
        feed.checkpoint(at + 1)
        found += given(reader, at + 1)
    assert [number for _, _, number in lines(found)] == [0, 1, 2, 3, 4, 5]
    assert len(list(reader._folders.streams)) <= 4


class Cluster:
    """A changefeed over some streams: it flushes, moves its checkpoint, and begins again after a crash."""

    def __init__(self, feed: Changefeed, draw: random.Random) -> None:
        self.feed, self.draw = feed, draw
        self.checkpoint = ts(1)
        dates = ("2022-05-19", "2022-05-20")
        self.streams = [
            ("shop.t", "", "", False), ("shop.p", "101", "", False), ("shop.p", "102", "", False),
            ("shop.w", "", "a", False), ("shop.w", "", "b", False), ("shop.d", dates[0], "", True),
        ]  # fmt: skip
        self.date, self.dates = dates[0], dates
        self.flushed = [0] * len(self.streams)
        self.events = [
            [(ts(2) + at, 1000 * number + at) for at in sorted(draw.sample(range(1, 400), 60))]
            for number in range(len(self.streams))
        ]
        for name in ("shop.t", "shop.p", "shop.w", "shop.d"):
            feed.ddl(name, ts(1), CREATE_PLAIN.format(*name.split(".")), 3, PLAIN)

    def step(self) -> None:
        at = self.draw.randrange(len(self.streams))
        self.date = self.dates[1] if self.draw.random() < 0.02 else self.date
        match self.draw.random():
            case chance if chance < 0.6:
                self._flush(at)
            case chance if chance < 0.9:
                ahead = [events[done][0] for events, done in zip(self.events, self.flushed, strict=True) if done < 60]
                most = min(ahead, default=ts(3)) - 1
                self.checkpoint = self.draw.randint(self.checkpoint, max(most, self.checkpoint))
                self.feed.checkpoint(self.checkpoint)
            case _:
                begin = self.draw.randint(ts(1), self.checkpoint)
                for number, events in enumerate(self.events):
                    done = sum(stamp <= begin for stamp, _ in events)
                    self.flushed[number] = min(done, self.flushed[number])
                self.checkpoint = begin
                self.feed.checkpoint(begin)

    def _flush(self, at: int) -> None:
        table, folder, writer, dated = self.streams[at]
        start, count = self.flushed[at], self.draw.randint(1, 12)
        changes = [Change(stamp, plain(number, "x" * 20)) for stamp, number in self.events[at][start : start + count]]
        if changes:
            self.feed.rows(table, *changes, folder=self.date if dated else folder, writer=writer)
        self.flushed[at] = min(start + count, 60)

    def upto(self, commit_ts: int) -> set[tuple[int, str, int]]:
        return {
            (stamp, self.streams[at][0].split(".")[1], number)
            for at, events in enumerate(self.events)
            for stamp, number in events
            if stamp <= commit_ts
        }


@pytest.mark.parametrize("seed", share(range(8)))
def test_whatever_is_written_again_each_line_up_to_the_checkpoint_is_given_in_its_range(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Changefeed(tmp_path / "feed")
    whatever_is_written_again(feed, source(feed, segment_bytes=2500), seed, monkeypatch)


def whatever_is_written_again(
    feed: Changefeed, made: ChangefeedSource, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader is asked at any time, dies at any time, and holds a few lines of each folder only."""
    monkeypatch.setattr(wave, "TICDC_CHUNK_BYTES", 1500)
    monkeypatch.setattr(wave, "TICDC_CHUNK_BYTES_MIN", 700)
    monkeypatch.setattr(stream, "TICDC_FIRST_LINE_BYTES", 100)
    monkeypatch.setattr(falls, "TICDC_FALL_ATTEMPTS_MAX", 1000)
    draw = random.Random(seed)
    cluster = Cluster(feed, draw)
    reader, segments = opened(made), []
    for _ in range(160):
        cluster.step()
        if draw.random() < 0.5:
            with suppress(SourceUnwilling):  # it fell: that is waited for
                segments += reader.receive(0)
            proof = reader.heartbeat()
            segments += [proof] if proof else []
        if draw.random() < 0.1:
            assert reader.checkpoint.resolved_ts <= max(reader.resolved_ts, cluster.checkpoint)
            reader = opened(made, reader.checkpoint if reader.checkpoint.seq else None)
    while any(done < 60 for done in cluster.flushed):
        for at in range(len(cluster.streams)):
            cluster._flush(at)
    cluster.feed.checkpoint(ts(4))
    segments += given(reader, ts(4))
    everything = cluster.upto(ts(4))
    assert set(lines(segments)) == everything
    before = 0
    for number, segment in enumerate(segments, 1):
        assert (segment.seq, segment.prev_commit_ts) == (number, before)
        mine = lines([segment])
        assert {line for line in everything if before < line[0] <= segment.resolved_ts} == set(mine)
        assert all(before < stamp <= segment.resolved_ts for stamp, _, _ in mine)
        before = segment.resolved_ts
    assert len(segments) > 10
