"""The keys that a phase changes: is this key among them, and can it lie between these bounds?

In:  hashes and leads of the last change per key (resolve.py).
Out: KeyTable: flat arrays, saved once and mapped into memory by every task that probes.

Open addressing at no more than half its slots, 16 bytes a slot: the hashes themselves. In front of
it a filter of 16 bits per key, in the second-level cache, which answers nearly all missing keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import LakeRefused
from tidegate.lake.files import LakeFiles
from tidegate.upsert.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.upsert.kernel.hashes import probe_rows
from tidegate.upsert.kernel.table import any_inside
from tidegate.upsert.keys.file import Int64s
from tidegate.upsert.keys.hash import Cells, Hashes, Seed

_FILTER_BITS_PER_KEY: Final = 16
_MAGIC: Final = b"TGKEYS01"
_ALIGN: Final = 64
WHOLE: Final = (-(1 << 63), (1 << 63) - 1)  # bounds of leads that rule nothing out


def sizes(keys: int) -> tuple[int, int]:
    """(slots, 64-bit words of the filter) for a number of keys: powers of two."""
    slots = max(16, 1 << (2 * keys - 1).bit_length()) if keys else 16
    return slots, max(1, 1 << (keys * _FILTER_BITS_PER_KEY // 64).bit_length())


@dataclass(frozen=True)
class KeyTable:
    """keys: how many. slots: uint64[slots, 2]. filter: uint64[words]. seed: of the hashes.

    leads: int64[columns, keys] of the leading key columns, in ascending order of row `sorted_by`.
    key_schema: the key's columns as silver has them.
    """

    keys: int
    slots: Hashes
    filter: npt.NDArray[np.uint64]
    leads: Int64s
    sorted_by: int
    seed: Seed
    key_schema: pa.Schema
    _words: Int64s = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = np.zeros(L.TABLE_WORDS, np.int64)
        words[L.SLOTS], words[L.SLOT_MASK] = self.slots.ctypes.data, len(self.slots) - 1
        words[L.FILTER], words[L.FILTER_MASK] = self.filter.ctypes.data, 64 * len(self.filter) - 1
        words[L.SEED : L.SEED + 2] = np.array(self.seed, np.uint64).view(np.int64)
        object.__setattr__(self, "_words", words)

    def __reduce__(self) -> tuple[Any, ...]:
        about = (self.keys, self.slots, self.filter, self.leads, self.sorted_by, self.seed, self.key_schema)
        return (KeyTable, about)  # addresses are this process's own

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(self.key_schema.names)

    @property
    def lead_names(self) -> tuple[str, ...]:
        return self.key_names[: len(self.leads)]

    @cached_property
    def key_kinds(self) -> tuple[str, ...]:
        """Names and types of the key's columns."""
        return tuple(f"{field.name} {field.type}" for field in self.key_schema)

    @property
    def lead_kinds(self) -> tuple[str, ...]:
        """Names and types of the leading columns."""
        return self.key_kinds[: len(self.leads)]

    @cached_property
    def hashes(self) -> Hashes:
        """uint64[keys, 2] of the keys, in no order."""
        return np.ascontiguousarray(self.slots[self.slots.any(axis=1)])

    def probe(self, cells: Cells) -> Int64s:
        """Positions of the rows whose key is in the table, ascending; rows with a NULL in the key never are."""
        out = np.empty(cells.rows, np.int64)
        hits = probe_rows(cells.address, cells.count, cells.rows, self._words.ctypes.data, out.ctypes.data)
        return out[:hits]

    def may_lie_in(self, box: Int64s) -> bool:
        """Whether a key may lie in box: int64[columns, 2], inclusive bounds of leads."""
        return bool(self.may_lie_in_each(box[np.newaxis])[0])

    def may_lie_in_each(self, boxes: Int64s) -> npt.NDArray[np.bool_]:
        """The same for each of boxes: int64[boxes, columns, 2], contiguous."""
        if not self.keys:
            return np.zeros(len(boxes), np.bool_)
        column = self.leads[self.sorted_by]
        first = np.searchsorted(column, boxes[:, self.sorted_by, 0], "left")
        last = np.searchsorted(column, boxes[:, self.sorted_by, 1], "right")
        may: npt.NDArray[np.bool_] = first < last
        if len(self.leads) > 1:
            leads = self.leads.ctypes.data
            for at in np.flatnonzero(may).tolist():
                box = boxes[at].ctypes.data
                may[at] = any_inside(leads, len(self.leads), self.keys, int(first[at]), int(last[at]), box)
        return may

    def save(self, lake: LakeFiles, path: str) -> None:
        """Write the table where tasks can map it; path: relative to the lake."""
        arrays = (self.slots, self.filter, self.leads)
        about = {
            "keys": self.keys,
            "slots": len(self.slots),
            "filter": len(self.filter),
            "leads": len(self.leads),
            "sorted_by": self.sorted_by,
            "seed": self.seed,
            "key": self.key_schema.serialize().to_pybytes().hex(),
        }
        head = json.dumps(about).encode()
        parts: list[Any] = [_MAGIC + len(head).to_bytes(8, "little") + head]
        at = 16 + len(head)
        for array in arrays:
            parts += [bytes(-at % _ALIGN), np.ascontiguousarray(array).reshape(-1).view(np.uint8)]
            at += -at % _ALIGN + array.nbytes
        lake.write(path, parts)

    @classmethod
    def open(cls, lake: LakeFiles, path: str) -> KeyTable:
        """Map a saved table. Raises LakeRefused when the file isn't one."""
        with lake.open(path) as source:
            buffer = source.read_buffer(source.size())
        if len(buffer) < 16 or buffer[:8].to_pybytes() != _MAGIC:
            raise LakeRefused(
                "not a table of keys", where=path, remedy="start apply again: it makes such files anew from bronze"
            )
        at = 16 + int.from_bytes(buffer[8:16].to_pybytes(), "little")
        about = json.loads(buffer[16:at].to_pybytes())
        shapes = [(about["slots"], 2), (about["filter"],), (about["leads"], about["keys"])]
        kinds: list[Any] = [np.uint64, np.uint64, np.int64]
        arrays: list[Any] = []
        for shape, kind in zip(shapes, kinds, strict=True):
            at += -at % _ALIGN
            count = int(np.prod(shape))
            if at + 8 * count > len(buffer):
                raise LakeRefused(
                    "a table of keys is cut short",
                    where=path,
                    remedy="start apply again: it makes such files anew from bronze",
                )
            arrays.append(np.frombuffer(buffer, kind, count, at).reshape(shape))
            at += 8 * count
        seed = (int(about["seed"][0]), int(about["seed"][1]))
        key_schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(about["key"])))
        slots, bits, leads = arrays
        return cls(about["keys"], slots, bits, leads, about["sorted_by"], seed, key_schema)
