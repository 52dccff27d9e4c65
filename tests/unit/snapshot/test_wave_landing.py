"""What a wave's readers land is of several tables: a lake that refuses it ends the wave, and is no table's fault."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidegate.errors import CommitOverwritten, DeltaUnsupported, LakeRefused, TidegateError
from tidegate.snapshot import wave_reading
from tidegate.snapshot.chunks.chunk import Chunk
from tidegate.snapshot.chunks.spans import WHOLE, Span
from tidegate.snapshot.reading.table_reader import ChunkBounds, Pace, WaveOf
from tidegate.snapshot.wave_reading import TableWork, WaveReading

WAVE = WaveOf("s", "snapshot", 1, "token", 1, "server")
BOUNDS = ChunkBounds(10, 10, 1.0)


class Reader:
    """Each table is one chunk."""

    def __init__(self, _connection: Any, _info: Any, version: Any, **_: Any) -> None:
        self._version = version

    def reads(self, *_: Any) -> bool:
        return False

    def read(self, span: Span, *_: Any) -> Iterator[tuple[Chunk, Span | None]]:
        name = (self._version.database, self._version.table)
        keys = (1, 0, "token", "token", span.after, span.upto, 1, 0, "shape", b"x", 1, 0, 0, 1, "server")
        yield Chunk("s", "snapshot", *name, *keys, datetime.now(UTC)), None


@pytest.mark.parametrize("kind", [CommitOverwritten, DeltaUnsupported, LakeRefused])
def test_a_lake_that_refuses_a_landing_ends_the_wave(
    kind: type[TidegateError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else other tables' chunks that were to be landed with it would be told in the high mark, and not be there."""
    monkeypatch.setattr(wave_reading, "connected", lambda *_: SimpleNamespace(raw=None, close=lambda: None))
    monkeypatch.setattr(wave_reading, "ChunkReader", Reader)
    monkeypatch.setattr(wave_reading, "SNAPSHOT_LAND_BYTES", 2)
    tables = [cast("Any", SimpleNamespace(database="d", table=name)) for name in "abc"]
    work = [TableWork(version, [WHOLE], Pace()) for version in tables]
    landed: list[Chunk] = []

    def land(chunks: Sequence[Chunk]) -> None:
        if not landed:
            landed.extend(chunks)
            raise kind("somebody else's hand", where="bronze/chunks")

    with pytest.raises(kind):
        WaveReading(cast("Any", None), WAVE, work, BOUNDS, land).run(1, 1 << 20, time.monotonic() + 60)
    assert len(landed) == 2
    assert [one.trouble for one in work] == [None, None, None]
