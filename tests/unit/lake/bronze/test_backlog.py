"""A window below the cut has at most the bytes that it may have, of all its sources together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bronze import QuietBronze
from tidegate.lake.bronze.backlog import WantedSegments, backlog
from tidegate.lake.files import LakeFiles

LAST_TS = 999


@pytest.fixture
def bronze(tmp_path: Path) -> QuietBronze:
    """Two sources with 80 segments each; all have the same size."""
    bronze = QuietBronze(tmp_path)
    for ts in range(100, 900, 100):
        rows = [(at, at + 1, at + 1) for at in range(ts, ts + 100, 10)]
        for source in ("a", "b"):
            bronze.land(source, *rows)
    return bronze


@pytest.mark.parametrize("sources", ["a", "ab"])
@pytest.mark.parametrize("segments", [2, 7, 20, 33])
def test_windows_below_the_cut_have_at_most_the_bytes_asked_for(
    tmp_path: Path, bronze: QuietBronze, sources: str, segments: int
) -> None:
    size, low_ts, seen = len(bronze.landed[0].payload), 0, list[tuple[str, int]]()
    while True:
        wanted = {source: WantedSegments(low_ts) for source in sources}
        upto_ts, refs = backlog(LakeFiles(str(tmp_path)), wanted, LAST_TS, segments * size)
        assert sum(ref.payload_bytes for ref in refs) <= segments * size
        if not refs:
            break
        assert upto_ts > low_ts
        seen += [(ref.source, ref.seq) for ref in refs]
        low_ts = upto_ts
    assert sorted(seen) == [(source, seq) for source in sources for seq in range(1, 81)]


def test_a_segment_that_is_larger_by_itself_is_a_window(tmp_path: Path, bronze: QuietBronze) -> None:
    assert bronze.landed
    assert backlog(LakeFiles(str(tmp_path)), {"a": WantedSegments(101)}, LAST_TS, 1)[0] == 111
