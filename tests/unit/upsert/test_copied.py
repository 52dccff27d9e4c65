"""Copies of a table's files: the bytes, the dead rows, and nothing left behind where a copy fails."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.s3 import S3
from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import SilverDamaged
from tidegate.lake.files import LakeFiles
from tidegate.limits import COPY_OBJECT_BYTES_MAX
from tidegate.upsert.deletions import deletion_vector
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.files import copied, data_file
from tidegate.upsert.files.copied import TooSlow
from tidegate.upsert.files.file_layout import FileLayout

FROM, TO = "silver/d/a", "silver/d/b"
LAYOUT = FileLayout(pa.schema([("id", pa.int64())]), ("id",), (), ("id",))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def files_of(lake: LakeFiles, dead: Sequence[Sequence[int]]) -> list[LiveFile]:
    """Files of ten rows each, with these dead positions."""
    lake.make_folder(FROM)
    lake.make_folder(TO)
    adds = [
        data_file.write(lake, FROM, pa.table({"id": range(i * 10, i * 10 + 10)}), LAYOUT)[0] for i, _ in enumerate(dead)
    ]
    with VectorWriter(lake, FROM) as vectors:
        for add, gone in zip(adds, dead, strict=True):
            if gone:
                add["deletionVector"] = vectors.add(np.array(gone, np.uint64)).as_action()
    return [LiveFile(add) for add in adds]


def live(lake: LakeFiles, path: str, file: LiveFile) -> list[int]:
    with lake.open(f"{path}/{unquote(file.path)}") as source:
        ids = pq.read_table(source)["id"].to_pylist()
    vector = file.deletion_vector
    gone = set() if vector is None else set(deletion_vector.read(lake, path, vector).tolist())
    return [value for at, value in enumerate(ids) if at not in gone]


def lakes(kind: str, folder: Path, s3: Callable[[], S3]) -> LakeFiles:
    if kind == "disk":
        return LakeFiles(str(folder))
    store = s3()
    return LakeFiles(store.folder(), store.options)


@pytest.mark.parametrize("kind", ["disk", pytest.param("s3", marks=pytest.mark.server)])
def test_copies_have_the_same_live_rows_and_other_names(
    kind: str, tmp_path: Path, pool: ThreadPoolExecutor, request: pytest.FixtureRequest
) -> None:
    lake = lakes(kind, tmp_path, lambda: request.getfixturevalue("s3"))
    files = files_of(lake, [[0, 9], [], list(range(9))])
    assert copied.can_copy(lake, files)
    adds = [LiveFile(add) for add in copied.copies(lake, FROM, TO, files, pool, seconds=60)]
    assert [live(lake, TO, add) for add in adds] == [list(range(1, 9)), list(range(10, 20)), [29]]
    assert [(add.size, add.rows, add.bounds("id")) for add in adds] == [(f.size, f.rows, f.bounds("id")) for f in files]
    assert not {add.path for add in adds} & {file.path for file in files}
    lake.delete_folder(FROM)
    assert [len(live(lake, TO, add)) for add in adds] == [8, 10, 1]


def test_deleted_rows_in_a_copy_are_as_old_as_in_its_original(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """maintain.purge_days removes them by their file's age. A table that changes names each night would keep them."""
    lake, old_ms = LakeFiles(str(tmp_path)), 1_600_000_000_000
    files = [LiveFile({**file.action, "modificationTime": old_ms}) for file in files_of(lake, [[0], []])]
    adds = [LiveFile(add) for add in copied.copies(lake, FROM, TO, files, pool, seconds=60)]
    assert [add.written_ms for add in adds] == [old_ms, old_ms]


@pytest.mark.parametrize("lost", ["a file", "a vector"])
def test_a_lost_original_is_named_and_no_copy_stays(lost: str, tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    lake = LakeFiles(str(tmp_path))
    files = files_of(lake, [[1], [2], []])
    for gone in tmp_path.joinpath(FROM).glob("deletion_vector_*" if lost == "a vector" else unquote(files[2].path)):
        gone.unlink()
    with pytest.raises(SilverDamaged, match="gone"):
        copied.copies(lake, FROM, TO, files, pool, seconds=60)
    assert not list(tmp_path.joinpath(TO).iterdir())


def test_a_full_disk_keeps_no_part_of_a_copy_and_no_more_is_copied(
    tmp_path: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeFiles(str(tmp_path))
    files = files_of(lake, [[1]] * 40)
    begun, real = list[str](), shutil.copyfile

    def copyfile(source: str, to: str) -> None:
        begun.append(to)
        real(source, to)
        if len(begun) > 2:
            os.truncate(to, 10)
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with pytest.raises(OSError, match="No space"):
        copied.copies(lake, FROM, TO, files, pool, seconds=60)
    assert not list(tmp_path.joinpath(TO).iterdir())
    assert len(begun) < 20


def test_names_that_arent_on_the_disk_keep_no_copy(
    tmp_path: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeFiles(str(tmp_path))
    files = files_of(lake, [[], []])

    def settle_names(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(LakeFiles, "settle_names", settle_names)
    with pytest.raises(OSError, match="Input/output"):
        copied.copies(lake, FROM, TO, files, pool, seconds=60)
    assert not list(tmp_path.joinpath(TO).iterdir())


def test_copies_that_take_too_long_end_at_their_time_and_none_stays(
    tmp_path: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeFiles(str(tmp_path))
    files = files_of(lake, [[1]] * 40)
    begun, real = list[str](), shutil.copyfile

    def copyfile(source: str, to: str) -> None:
        begun.append(to)
        time.sleep(0.1)
        real(source, to)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with pytest.raises(TooSlow):
        copied.copies(lake, FROM, TO, files, pool, seconds=0.3)
    assert not list(tmp_path.joinpath(TO).iterdir())
    assert 0 < len(begun) < 20


def test_what_a_store_cant_copy_in_one_request_and_azure_are_left_to_spark(tmp_path: Path) -> None:
    large = LiveFile({"path": "x", "size": COPY_OBJECT_BYTES_MAX + 1})
    assert not copied.can_copy(LakeFiles(str(tmp_path)), [large])
    assert not copied.can_copy(
        LakeFiles(str(tmp_path)), [LiveFile({"path": "x", "size": 1, "partitionValues": {"p": "1"}})]
    )
    assert not copied.can_copy(LakeFiles("abfss://c@a.dfs.core.windows.net/lake"), [])
