"""What apply keeps of a Pump's segments between windows is bounded, however many transactions they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.pairing import pairs
from spark_jobs.window.pairing.pairs import Summaries
from tests.kit.spark import no_spark
from tests.kit.tidb.described import summed
from tests.kit.tidb.road import lake_with, segments_of
from tidegate.lake.bronze.index import BronzeIndex

CASE = Path(__file__).resolve().parents[2] / "golden" / "tidb" / "p04_bank"


def test_the_oldest_are_read_again_where_the_others_fill_the_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, lake = lake_with(tmp_path, segments_of(CASE, 7))
    index = BronzeIndex(lake)
    index.refresh(0)
    app = Application(BackgroundSession(no_spark), pipeline, lake, index)
    refs = next(iter(index.refs.values()))
    assert len(refs) > 20
    whole = Summaries()
    found = dict(whole.of(app, refs))
    said = [summed(one) for one in found.values()]
    assert whole.held_bytes == sum(one.held_bytes for one in found.values())
    room = whole.held_bytes // 3
    monkeypatch.setattr(pairs, "TIDB_KEPT_BYTES_MAX", room)
    few = Summaries()
    for _ in range(2):
        assert [summed(one) for _, one in few.of(app, refs)] == said
        assert room // 2 < few.held_bytes <= room
        assert few.held_bytes == sum(one.held_bytes for one in few.kept.values())
    assert list(few.kept)[-1] == (refs[-1].source, refs[-1].seq)
