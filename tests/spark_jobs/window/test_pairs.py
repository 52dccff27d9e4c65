"""Prewrites and commits of random streams on two Pumps: whatever the windows, each row is taken once, in its own.

Nothing of a window is remembered by the next one, and none looks further back than its commits need.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.pairing import pairs
from spark_jobs.window.pairing.pairs import Pairs, pairs_of
from spark_jobs.window.window import Window
from tests.kit.spark import no_spark
from tests.kit.tidb import encode
from tests.kit.tidb.replay.recording import Recording
from tests.kit.tidb.road import Fed, Told, lake_with, reader_of
from tests.support.seeds import share
from tidegate.errors import StreamCorrupt
from tidegate.lake.bronze.backlog import WantedSegments, backlog
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.bronze.table import Bronze
from tidegate.pump.server import Write
from tidegate.segments.segment import Segment
from tidegate.segments.window import choose_cut, in_window, resolved_everywhere
from tidegate.tidb.records.payload import BinlogType, Mutation, binlog_of, fake_payload

CASE = Path(__file__).resolve().parents[2] / "golden" / "tidb" / "p04_bank"
PUMPS = ("one", "two")
FIRST = 470_607_423_145_247_720
COUNT = 160


def prewrite(start_ts: int, *tables: int) -> bytes:
    value = b"".join(encode.mutations(one, (Mutation.INSERT, b"\0"))[2 * bool(at) :] for at, one in enumerate(tables))
    return encode.binlog(BinlogType.PREWRITE, start_ts, value=value, key=b"t" + bytes(19))


class Stream:
    """Transactions as a cluster commits them. said: commit_ts -> start_ts and tables of those that were."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.said: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.late: list[tuple[str, bytes]] = []  # what TiDB sends after others that were committed later
        told = Told(Recording(CASE), CASE, FIRST - 1)
        self.fed = {pump: Fed() for pump in PUMPS}
        self.readers = {pump: reader_of(pump, told, self.fed[pump]) for pump in PUMPS}
        for reader in self.readers.values():
            reader._begins = False
        self.segments: dict[str, list[Segment]] = {pump: [] for pump in PUMPS}

    def give(self, pump: str, payload: bytes) -> None:
        self.fed[pump].waiting.append(Write(payload, binlog_of(payload)))

    def cut(self, pump: str) -> None:
        reader = self.readers[pump]
        reader._orphans.ask_at = 1e18
        self.segments[pump] += reader.receive(0) + reader.cut_now()

    def run(self) -> None:
        """Commits late, out of order, twice and to another Pump; the first ones have their answer at the end."""
        draw, now, open_ = self.draw, FIRST, list[tuple[int, tuple[int, ...], str]]()
        for number in range(COUNT):
            now += draw.randint(1, 9)
            began, on = now, draw.choice(PUMPS)
            tables = tuple(sorted(draw.sample((154, 156, 158), draw.randint(1, 3))))
            for _ in range(1 + (draw.random() < 0.2)):
                self.give(on, prewrite(began, *tables))
                on = draw.choice(PUMPS)
            open_.append((began, tables, on))
            while open_[2:] and draw.random() < 0.6:
                now += draw.randint(1, 9)
                self._answer(open_.pop(draw.randrange(2 if number < COUNT - 9 else 0, len(open_))), now)
            if draw.random() < 0.3:
                self.cut(draw.choice(PUMPS))
            while self.late[4:] and draw.random() < 0.7:
                self.give(*self.late.pop(draw.randrange(len(self.late))))
        for one in open_:
            now += 3
            self._answer(one, now)
        for late in self.late:
            self.give(*late)
        for pump in PUMPS:
            self.give(pump, fake_payload(now + 5))
            self.cut(pump)

    def _answer(self, of: tuple[int, tuple[int, ...], str], now: int) -> None:
        start_ts, tables, _ = of
        committed = self.draw.random() < 0.9
        tp = BinlogType.COMMIT if committed else BinlogType.ROLLBACK
        # A Pump with a copy of the prewrite alone would hold the cut back until it had asked TiDB.
        for pump in PUMPS:
            for _ in range(1 + (self.draw.random() < 0.2)):
                payload = encode.binlog(tp, start_ts, now if committed else 0, key=b"k")
                self.late.append((pump, payload)) if self.draw.random() < 0.3 else self.give(pump, payload)
        if committed:
            self.said[now] = start_ts, tables


def application(folder: Path, segments: dict[str, list[Segment]]) -> Application:
    pipeline, lake = lake_with(folder, {pump: [] for pump in PUMPS})
    for pump, mine in segments.items():
        for at in range(0, len(mine), 3):
            Bronze(lake, pump).append(mine[at : at + 3])
    app = Application(BackgroundSession(no_spark), pipeline, lake, BronzeIndex(lake))
    app.index.refresh(0)
    return app


def caught_up(app: Application, bytes_max: int) -> Iterator[tuple[Window, list[Pairs]]]:
    """The same below the published cut."""
    low_ts, last_ts = FIRST - 1, resolved_everywhere(app.index.refs, PUMPS)
    while low_ts < last_ts:
        cut_ts, refs = backlog(app.lake, {pump: WantedSegments(low_ts) for pump in PUMPS}, last_ts, bytes_max)
        assert cut_ts > low_ts
        window = Window(low_ts, cut_ts, refs)
        yield window, pairs_of(app, window)
        low_ts = cut_ts


def windows_of(app: Application, bytes_max: int) -> Iterator[tuple[Window, list[Pairs]]]:
    low_ts = FIRST - 1
    while (cut_ts := choose_cut(app.index.refs, PUMPS, low_ts, bytes_max)) is not None:
        every = [ref for mine in app.index.refs.values() for ref in mine]
        window = Window(low_ts, cut_ts, in_window(every, low_ts, cut_ts))
        yield window, pairs_of(app, window)
        app.index.forget(cut_ts)
        low_ts = cut_ts


@pytest.mark.parametrize("made", [windows_of, caught_up])
@pytest.mark.parametrize("seed", share(range(6)))
def test_each_transaction_is_taken_once_and_in_its_window(
    seed: int,
    made: Callable[[Application, int], Iterator[tuple[Window, list[Pairs]]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = random.Random(seed)
    stream = Stream(draw)
    stream.run()
    monkeypatch.setattr(pairs, "TIDB_KEPT_BYTES_MAX", draw.choice((1, 1 << 30)))
    app = application(tmp_path, stream.segments)
    found: dict[int, int] = {}
    cuts = [FIRST - 1]
    for window, told in made(app, 2500):
        cuts.append(window.cut_ts)
        for one in told:
            assert (one.lost, one.late) == ({}, {})
            for place, answers in one.rows.items():
                for start_ts, commit_ts in answers.items():
                    assert window.low_ts < commit_ts <= window.cut_ts
                    assert commit_ts not in found, "taken twice"
                    found[commit_ts] = start_ts
                mine = {table for stamp in answers.values() for table in stream.said[stamp][1]}
                assert set(one.touched[place]) == mine
                for table, (low, high) in one.touched[place].items():
                    stamps = [stamp for stamp in answers.values() if table in stream.said[stamp][1]]
                    assert (low, high) == (min(stamps), max(stamps))
    assert found == {commit_ts: start_ts for commit_ts, (start_ts, _) in stream.said.items()}
    # Two prewrites had no answer until the end, and what was committed meanwhile is many windows all the same.
    assert len(cuts) > 3
    assert max(sum(low < stamp <= high for stamp in stream.said) for low, high in pairwise(cuts)) < COUNT // 2


def test_a_window_looks_back_no_further_than_its_commits_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One prewrite waits, and a thousand others that were committed lie between it and the window."""
    stream = Stream(random.Random(1))
    stream.give("one", prewrite(FIRST, 154))
    for at in range(40):
        began = FIRST + 10 * (at + 1)
        for _ in range(3):
            stream.give("one", prewrite(began := began + 1, 154))
            stream.give("one", encode.binlog(BinlogType.COMMIT, began, began + 5, key=b"k"))
        stream.cut("one")
    stream.give("two", fake_payload(FIRST + 1000))
    stream.cut("two")
    stream.give("one", encode.binlog(BinlogType.COMMIT, FIRST, FIRST + 900, key=b"k"))
    stream.give("one", fake_payload(FIRST + 1000))
    stream.cut("one")
    app = application(tmp_path, stream.segments)
    read: list[int] = []
    monkeypatch.setattr(pairs, "TIDB_KEPT_BYTES_MAX", 1)
    real = pairs._summaries
    monkeypatch.setattr(
        pairs, "_summaries", lambda app, refs: (read.extend(ref.seq for ref in refs), real(app, refs))[1]
    )
    looked = []
    for window, told in windows_of(app, 600):
        here = {(ref.source, ref.seq) for ref in window.refs}
        looked.append((len(read), len(here)))
        read.clear()
        assert not any(one.lost for one in told)
    assert len(looked) > 10
    *others, (last, _) = looked
    assert all(count <= 2 * here + 6 for count, here in others)  # its own twice, and a row group or two below
    assert last > 40, "the one that waited is found, however far"


def test_two_answers_that_differ_stop_the_pipeline(tmp_path: Path) -> None:
    stream = Stream(random.Random(1))
    stream.give("one", prewrite(FIRST, 154))
    for commit_ts in (FIRST + 3, FIRST + 4):
        stream.give("one", encode.binlog(BinlogType.COMMIT, FIRST, commit_ts, key=b"k"))
    for pump in PUMPS:
        stream.give(pump, fake_payload(FIRST + 100))
        stream.cut(pump)
    app = application(tmp_path, stream.segments)
    with pytest.raises(StreamCorrupt, match=f"committed at {FIRST + 3}, says one answer, and at {FIRST + 4}"):
        list(windows_of(app, 1 << 30))
