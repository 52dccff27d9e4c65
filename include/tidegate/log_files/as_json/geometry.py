"""Geometries as plain WKB, and their SRIDs beside them.

In:  canonical values: WKB, or EWKB where the SRID isn't 0 (byte order, type with a flag, SRID u32,
     the rest).
Out: WKB alone; SRIDs; the last key of a line, "srid": {"column": 4326}.
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_FLAG_AT: Final = 4
_FLAG: Final = 0x20
_HEAD_BYTES: Final = 9
NONE: Final = -1  # no geometry there


def without_srid(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """(WKB, SRID per value, NONE where it is null)."""
    raw = pc.cast(values, pa.large_binary())
    _, offsets_buffer, data_buffer = raw.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[raw.offset : raw.offset + len(raw) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    srids = np.where(raw.is_valid().to_numpy(zero_copy_only=False), 0, NONE).astype(np.int64)
    long = np.flatnonzero((srids == 0) & (np.diff(offsets) >= _HEAD_BYTES))
    flagged = long[(data[offsets[long] + _FLAG_AT] & _FLAG) != 0]
    if not len(flagged):
        return raw, srids
    places = offsets[flagged][:, np.newaxis] + np.arange(5, _HEAD_BYTES)
    srids[flagged] = data[places].astype(np.int64) @ (np.int64(1) << np.arange(0, 32, 8))
    plain = raw.to_pylist()
    for i in flagged.tolist():
        value = plain[i]
        plain[i] = value[:_FLAG_AT] + bytes([value[_FLAG_AT] & ~_FLAG]) + value[_HEAD_BYTES:]
    return pa.array(plain, pa.large_binary()), srids


def srid_keys(before: dict[str, npt.NDArray[np.int64]], after: dict[str, npt.NDArray[np.int64]]) -> list[str] | None:
    """Per line, `,"srid":{...}` or ""; None when no line has one. before, after: column -> SRID, or NONE.

    An update that changes a column's SRID says both: {"before": 0, "after": 4326}.
    """
    sides = np.stack([side[name] for name in before for side in (before, after)], axis=1)
    if not (sides > 0).any():
        return None
    distinct, which = np.unique(sides, axis=0, return_inverse=True)
    texts = []
    for row in distinct.tolist():
        shown: dict[str, int | dict[str, int]] = {}
        for name, old, new in zip(before, row[0::2], row[1::2], strict=True):
            if old > NONE and new > NONE and old != new:
                shown[name] = {"before": old, "after": new}
            elif max(old, new) > 0:
                shown[name] = max(old, new)
        texts.append(',"srid":' + json.dumps(shown, ensure_ascii=False, separators=(",", ":")) if shown else "")
    return [texts[i] for i in which.ravel().tolist()]
