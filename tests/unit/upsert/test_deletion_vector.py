"""Vectors in files: many in one, read back by descriptor, refused when anything differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tidegate.delta.table.live_file import VectorDescriptor
from tidegate.errors import LakeRefused
from tidegate.lake.files import LakeFiles
from tidegate.upsert.deletions import deletion_vector, roaring, z85
from tidegate.upsert.deletions.deletion_vector import VectorWriter

TABLE = "silver/shop/orders"


@pytest.fixture
def lake(tmp_path: Path) -> LakeFiles:
    (tmp_path / TABLE).mkdir(parents=True)
    return LakeFiles(str(tmp_path))


def vectors_of(lake: LakeFiles, *many: list[int]) -> list[VectorDescriptor]:
    with VectorWriter(lake, TABLE) as writer:
        return [writer.add(np.array(positions, np.int64)) for positions in many]


def test_many_vectors_in_one_file_come_back_each(lake: LakeFiles) -> None:
    many = [[0], [5, 6, 7], list(range(0, 300_000, 3)), [1 << 33]]
    descriptors = vectors_of(lake, *many)
    assert len(list(Path(lake.root, TABLE).iterdir())) == 1
    for positions, descriptor in zip(many, descriptors, strict=True):
        assert deletion_vector.read(lake, TABLE, descriptor).tolist() == positions
        assert VectorDescriptor.of(descriptor.as_action()) == descriptor


def test_a_block_that_fails_or_adds_nothing_writes_nothing(lake: LakeFiles) -> None:
    vectors_of(lake)
    with pytest.raises(AssertionError, match="ascending"):
        vectors_of(lake, [1], [2, 2])
    assert not list(Path(lake.root, TABLE).iterdir())


def test_inline_and_absolute_vectors_are_read(lake: LakeFiles) -> None:
    data = roaring.encode(np.array([3, 9], np.int64))
    inline = VectorDescriptor("i", z85.encode(data), None, len(data), 2)
    assert deletion_vector.read(lake, TABLE, inline).tolist() == [3, 9]
    (descriptor,) = vectors_of(lake, [4, 8])
    (file,) = Path(lake.root, TABLE).iterdir()
    absolute = replace(descriptor, storage_type="p", path_or_inline=file.as_uri())
    assert deletion_vector.read(lake, TABLE, absolute).tolist() == [4, 8]


def test_a_prefix_is_a_folder(lake: LakeFiles) -> None:
    (descriptor,) = vectors_of(lake, [4, 8])
    (file,) = Path(lake.root, TABLE).iterdir()
    (file.parent / "aB").mkdir()
    file.rename(file.parent / "aB" / file.name)
    prefixed = replace(descriptor, path_or_inline=f"aB{descriptor.path_or_inline}")
    assert deletion_vector.read(lake, TABLE, prefixed).tolist() == [4, 8]


def test_every_flipped_byte_is_noticed(lake: LakeFiles) -> None:
    (descriptor,) = vectors_of(lake, [1, 2, 70_000])
    (file,) = Path(lake.root, TABLE).iterdir()
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with pytest.raises(LakeRefused, match="damaged"):
            deletion_vector.read(lake, TABLE, descriptor)


def test_a_vector_that_is_not_what_the_log_says_is_refused(lake: LakeFiles) -> None:
    (descriptor,) = vectors_of(lake, [1, 2])
    with pytest.raises(LakeRefused, match="2 positions, the log says 3"):
        deletion_vector.read(lake, TABLE, replace(descriptor, cardinality=3))
    with pytest.raises(LakeRefused, match="storage type"):
        deletion_vector.read(lake, TABLE, replace(descriptor, storage_type="q"))
    with pytest.raises(LakeRefused, match="storage type"):
        deletion_vector.read(lake, TABLE, replace(descriptor, storage_type="p", path_or_inline="file:///elsewhere.bin"))


def test_a_file_that_is_gone_holds_its_table_and_no_other(lake: LakeFiles) -> None:
    (descriptor,) = vectors_of(lake, [1, 2])
    (file,) = Path(lake.root, TABLE).iterdir()
    file.unlink()
    with pytest.raises(LakeRefused, match="gone"):
        deletion_vector.read(lake, TABLE, descriptor)
