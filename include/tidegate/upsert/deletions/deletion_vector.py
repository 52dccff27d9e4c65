"""Deletion vectors as Delta stores them (PROTOCOL.md, "Deletion Vectors").

In:  positions of dead rows of data files, or a descriptor from the log.
Out: one file that packs many vectors, a descriptor each; or the positions again.

A file: version byte 1; per vector size i32 big-endian, the bitmap (roaring.py), its CRC-32 u32
big-endian. A vector is checked against its checksum and its descriptor when it is read: a misread
vector would bring deleted rows back.
"""

from __future__ import annotations

import uuid
import zlib
from types import TracebackType
from typing import Final, Self
from urllib.parse import unquote, urlsplit

import numpy as np

from tidegate.delta.table.live_file import VectorDescriptor
from tidegate.errors import LakeUnavailable, SilverDamaged
from tidegate.lake.files import LakeFiles, refused_of
from tidegate.remedy import DAMAGED
from tidegate.upsert.deletions import roaring, z85
from tidegate.upsert.deletions.roaring import DamagedBitmap, Positions

_VERSION: Final = b"\x01"
_UUID_CHARACTERS: Final = 20


def read(lake: LakeFiles, table_path: str, descriptor: VectorDescriptor) -> Positions:
    """Ascending positions of dead rows. Raises SilverDamaged for one that is damaged or gone."""
    try:
        if descriptor.storage_type == "i":
            data = z85.decode(descriptor.path_or_inline)[: descriptor.size]
        else:
            data = _stored(lake, stored_path(lake, table_path, descriptor), descriptor)
        positions = roaring.decode(data)
    except (DamagedBitmap, ValueError) as error:
        raise _damaged(table_path, descriptor, str(error)) from None
    if len(positions) != descriptor.cardinality:
        raise _damaged(table_path, descriptor, f"{len(positions)} positions, the log says {descriptor.cardinality}")
    return positions


def stored_path(lake: LakeFiles, table_path: str, descriptor: VectorDescriptor) -> str:
    """Where a vector's file lies, relative to the lake. Raises ValueError for one that is in the log itself."""
    name = descriptor.path_or_inline
    if descriptor.storage_type == "u":
        made = uuid.UUID(bytes=z85.decode(name[-_UUID_CHARACTERS:]))
        prefix = name[:-_UUID_CHARACTERS]
        return f"{table_path}/{prefix}{'/' if prefix else ''}deletion_vector_{made}.bin"
    if descriptor.storage_type == "p":
        path, root = unquote(urlsplit(name).path), urlsplit(lake.root).path.rstrip("/")
        if path.startswith(f"{root}/"):
            return path.removeprefix(f"{root}/")
    raise ValueError(f"storage type {descriptor.storage_type!r} at {name}")


def _stored(lake: LakeFiles, path: str, descriptor: VectorDescriptor) -> bytes:
    offset = descriptor.offset or 0
    try:
        with lake.open(path) as source:
            version = source.read_at(1, 0)
            framed = source.read_at(descriptor.size + 8, offset)
    except FileNotFoundError:
        raise SilverDamaged("a deletion vector is gone", where=path, remedy=DAMAGED) from None
    except LakeUnavailable as error:
        raise refused_of(error) from error
    data, checksum = framed[4:-4], framed[-4:]
    if version != _VERSION or len(framed) != descriptor.size + 8:
        raise ValueError(f"version {version!r}, {len(framed)} of {descriptor.size + 8} bytes")
    if int.from_bytes(framed[:4], "big") != descriptor.size or int.from_bytes(checksum, "big") != zlib.crc32(data):
        raise ValueError("size or checksum is wrong")
    return bytes(data)


def _damaged(table_path: str, descriptor: VectorDescriptor, why: str) -> SilverDamaged:
    return SilverDamaged(
        f"deletion vector {descriptor.unique_id[:60]} is damaged: {why}",
        where=table_path,
        remedy=DAMAGED,
    )


class VectorWriter:
    """Packs the vectors of one commit, or one task, into one file, which is written when the block ends well.

    with VectorWriter(lake, "silver/shop/orders") as vectors: descriptor = vectors.add(positions)
    """

    def __init__(self, lake: LakeFiles, table_path: str, *, named: bool = True) -> None:
        """named: as data_file.write's."""
        self._lake = lake
        self._table_path = table_path
        self._named = named
        self._name = uuid.uuid4()
        self._parts: list[bytes] = [_VERSION]
        self._size = len(_VERSION)

    def add(self, positions: Positions) -> VectorDescriptor:
        """positions: ascending, distinct, at least one."""
        assert len(positions), "a file without dead rows has no vector"
        assert len(positions) == 1 or bool(np.all(positions[1:] > positions[:-1])), "ascending"
        data = roaring.encode(positions)
        offset = self._size
        self._parts += [len(data).to_bytes(4, "big"), data, zlib.crc32(data).to_bytes(4, "big")]
        self._size += len(data) + 8
        return VectorDescriptor("u", z85.encode(self._name.bytes), offset, len(data), len(positions))

    def close(self) -> None:
        """Write the file; nothing without vectors."""
        if len(self._parts) == 1:
            return
        path = f"{self._table_path}/deletion_vector_{self._name}.bin"
        self._lake.write(path, self._parts)
        self._lake.settle_file(path)
        if self._named:
            self._lake.settle_names(self._table_path, [])
        self._parts = [_VERSION]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
