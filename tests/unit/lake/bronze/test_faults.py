"""Whatever the store answers, each segment is in bronze once: landings, restarts, a second source, upkeep."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.bronze import QuietBronze
from tests.support.memory_store import MemoryStore, faults
from tests.support.seeds import many
from tidegate.delta import log as log_module
from tidegate.errors import CommitConflict, Fenced, LakeUnavailable
from tidegate.lake.bronze import table as bronze_module
from tidegate.lake.bronze.index import BronzeIndex, read_segments
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.bronze.upkeep import Limits, choose_runs, compact_run
from tidegate.lake.files import LakeFiles
from tidegate.segments.segment import Segment


class Capture:
    """A source's value log and the writer that lands it; killed now and then."""

    def __init__(self, lake: LakeFiles, source: str, chance: random.Random) -> None:
        self.segments: list[Segment] = []  # all that was captured
        self._lake, self._source, self._chance = lake, source, chance
        self._quiet = QuietBronze(lake)
        self._start()

    def _start(self) -> None:
        """What bronze ends with is asked for, as recovery does, and what the value log has beyond it is due."""
        self._bronze, self._landed, self._batch = Bronze(self._lake, self._source), 0, 0
        with suppress(LakeUnavailable):
            newest = self._bronze.last_segments()
            self._landed = newest[-1].seq if newest else 0

    def step(self) -> None:
        if self._chance.random() < 0.1:
            self._start()
        if not self._batch:
            for _ in range(self._chance.randint(1, 3)):
                ts = 10 * len(self.segments) + 10
                self.segments.append(self._quiet._segment(self._source, ts, ts, ts))
            self._batch = len(self.segments)
        try:
            self._bronze.append(self.segments[self._landed : self._batch])
        except LakeUnavailable:
            return  # the same batch again
        except Fenced:
            self._start()  # a commit of a run before arrived late
            return
        self._landed, self._batch = self._batch, 0


@contextmanager
def faulty(store: MemoryStore) -> Iterator[None]:
    with (
        patch.object(log_module, "log_store", lambda *_: store),
        patch.object(log_module, "COMMIT_BACKOFF_SECONDS", 0),
        patch.object(log_module, "COMMIT_ATTEMPTS_MAX", 1),  # so that fates stay unknown from one landing to the next
        patch.object(bronze_module, "BRONZE_BACKOFF_SECONDS", 0),
        patch.object(os, "fsync", lambda _: None),
    ):
        yield


def pack(lake: LakeFiles) -> None:
    with suppress(LakeUnavailable, CommitConflict):
        log = BronzeLog.load(lake)
        runs = choose_runs(log.files(), Limits(1 << 30, 1 << 40, 1 << 60)) if log else []
        for run in runs:
            assert log is not None
            compact_run(log, run)


@pytest.mark.long
@settings(max_examples=many(12, 200), deadline=None)
@given(seed=st.integers(0, 1 << 30), share=st.sampled_from([0.1, 0.5, 0.8]))
def test_each_segment_is_there_once_whatever_the_store_answers(seed: int, share: float) -> None:
    chance, store = random.Random(seed), MemoryStore()
    with tempfile.TemporaryDirectory() as folder, faulty(store):
        lake = LakeFiles(str(Path(folder)))
        captures = [Capture(lake, source, chance) for source in ("a", "b")]
        store.fate = faults(seed, share=share)
        for _ in range(40):
            chance.choice(captures).step()
            if chance.random() < 0.1:
                pack(lake)
        store.fate = lambda: "fine"
        for capture in captures:
            for _ in range(3):
                capture.step()
        index = BronzeIndex(lake)
        index.refresh(0)
        found = [segment for refs in index.refs.values() for _, segment in read_segments(lake, refs)]
        wanted = [segment for capture in captures for segment in capture.segments]
        assert [replace(one, payload=bytes(one.payload), context=b"") for one in found] == wanted
