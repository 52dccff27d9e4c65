"""A store's files through pyarrow: odd names, ranges, folders, and errors like a disk's."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from tests.kit.s3 import BUCKET, S3, moto
from tidegate.delta.stores.object_store import bucket
from tidegate.errors import SilverDamaged, StreamCorrupt
from tidegate.lake.bronze.file import reading
from tidegate.lake.files import LakeFiles
from tidegate.lake.storage import store_files
from tidegate.lake.storage.store_error import StoreError, StoreNameError
from tidegate.limits import STORE_TAIL_BYTES
from tidegate.tables import SEGMENTS
from tidegate.upsert.files.open_file import opened

NAMES = ["r=a%3Ab/x", "r=\u00e4 b/x#y?z", "r=a+b~{}/[x]^`|", "r=100%/x"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_key_as_it_stands(s3: S3, name: str) -> None:
    lake = LakeFiles(s3.folder(), s3.options)
    lake.write(name, [b"abc", memoryview(b"de"), pa.py_buffer(b"f")])
    assert [info.path for info in lake.listed("", recursive=True) if info.is_file] == [lake.local(name)]
    assert list(lake.written_ms("")) == [name]
    with lake.open(name) as file:
        assert (file.size(), file.read()) == (6, b"abcdef")


def test_a_large_file_goes_in_parts_and_is_read_by_ranges(s3: S3) -> None:
    lake = LakeFiles(s3.folder(), s3.options)
    rows = pa.table({"n": pa.array(range(3_000_000), pa.int64())})
    with lake.filesystem.open_output_stream(lake.local("t/big.parquet")) as sink:
        pq.write_table(rows, sink, compression="none", use_dictionary=False, row_group_size=1_000_000)
        size = sink.tell()
    with lake.open("t/big.parquet") as file:
        assert file.size() == size > 20 << 20
        assert pq.ParquetFile(file).read_row_group(1).equals(rows.slice(1_000_000, 1_000_000))


def test_a_file_that_is_no_longer_than_its_tail_is_read_by_one_request(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = LakeFiles(s3.folder(), s3.options)
    rows = pa.table({"n": range(1000), "of": ["a", "b"] * 500})
    for name in ("small", "large"):
        with lake.filesystem.open_output_stream(lake.local(name)) as sink:
            pq.write_table(rows, sink)
            if name == "large":
                sink.write(bytes(STORE_TAIL_BYTES))
    asked = Counter[str]()

    class Counting:
        def __init__(self, client: Any) -> None:
            self._client = client

        def __getattr__(self, kind: str) -> Any:
            asked[kind] += 1
            return getattr(self._client, kind)

    monkeypatch.setattr(store_files, "bucket", lambda *given: Counting(bucket(*given)))
    with lake.open("small") as file:
        assert pq.ParquetFile(file).read().equals(rows)
    assert asked == {"get": 1}
    with lake.open("large") as file:
        assert file.read(4) == b"PAR1"
        file.seek(-STORE_TAIL_BYTES - 1, 2)
        assert len(file.read()) == STORE_TAIL_BYTES + 1
        file.seek(-10, 2)
        assert (file.read(4), file.read(), file.read(), file.tell()) == (bytes(4), bytes(6), b"", file.size())
    assert asked == {"get": 2, "get_range": 2}


def test_a_store_copies_an_object_itself(s3: S3) -> None:
    lake = LakeFiles(s3.folder(), s3.options)
    lake.write("t/p=a%20b/x", [b"12345"])
    lake.copy("t/p=a%20b/x", "u/y")
    with lake.open("u/y") as file:
        assert (file.size(), file.read()) == (5, b"12345")
    with pytest.raises(FileNotFoundError):
        lake.copy("t/none", "u/z")
    assert sorted(lake.written_ms("")) == ["t/p=a%20b/x", "u/y"]


def test_a_name_that_nobody_can_list_is_told_with_what_to_do(s3: S3) -> None:
    """Somebody's object, as consoles and scripts make them."""
    lake = LakeFiles(s3.folder(), s3.options)
    lake.write("t/x", [b"1"])
    urlopen(Request(f"{s3.endpoint}/{BUCKET}/{lake.local('t')}//y", data=b"2", method="PUT")).close()
    for recursive in (False, True):
        with pytest.raises(StoreNameError, match=r"delete it in the bucket: .*/t//"):
            lake.listed("t", recursive=recursive)
    with lake.open("t/x") as file:
        assert file.read() == b"1"


def test_folders_are_those_that_hold_something(s3: S3) -> None:
    lake = LakeFiles(s3.folder(), s3.options)
    lake.make_folder("t")
    lake.write("t/a/b/x", [b"1"])
    lake.write("t/y", [b"2"])
    names = {info.path.removeprefix(lake.local("t/")): info.type for info in lake.listed("t", recursive=True)}
    folder, file = pafs.FileType.Directory, pafs.FileType.File
    assert names == {"a": folder, "a/b": folder, "a/b/x": file, "y": file}
    assert {info.base_name for info in lake.listed("t")} == {"a", "y"}
    assert lake.listed("none") == []
    lake.delete_folder("t/a")
    assert [info.base_name for info in lake.listed("t", recursive=True)] == ["y"]
    lake.filesystem.delete_file(lake.local("t/none"))


def test_a_folder_that_nothing_was_made_in_is_emptied_without_a_request(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeFiles(s3.folder(), s3.options)
    lake.make_folder("staging/window")
    lake.write("staging/window/keys", [b"1"])
    lake.empty("staging")
    assert lake.listed("staging") == []
    monkeypatch.setattr(LakeFiles, "delete_folder", None)
    lake.empty("staging")
    pickle.loads(pickle.dumps(lake)).empty("staging")


def test_an_object_that_stands_for_a_folder_is_no_file(s3: S3) -> None:
    """S3A makes them, and so do people at a console."""
    lake = LakeFiles(s3.folder(), s3.options)
    lake.write("t/a/x", [b"1"])
    for folder in ("t", "t/a"):
        with urlopen(Request(f"{s3.endpoint}/{BUCKET}/{lake.local(folder)}/", data=b"", method="PUT"), timeout=30):
            pass
    for recursive in (False, True):
        listed = lake.listed("t", recursive=recursive)
        assert [info.base_name for info in listed if info.is_file] == ["x"] * recursive
    assert list(lake.written_ms("t")) == ["a/x"]


def test_what_is_not_there_is_not_found(s3: S3) -> None:
    lake = pickle.loads(pickle.dumps(LakeFiles(s3.folder(), s3.options)))
    with pytest.raises(FileNotFoundError):
        lake.open("t/none")
    with pytest.raises(FileNotFoundError):
        lake.filesystem.get_file_info(pafs.FileSelector(lake.local("none")))
    assert lake.filesystem.get_file_info(lake.local("none")).type == pafs.FileType.NotFound


def test_a_bucket_that_is_not_there_is_an_error_of_the_disk(s3: S3) -> None:
    with pytest.raises(OSError, match=r"NoSuchBucket|not found"):
        LakeFiles("s3://nobodys/x", s3.options).write("t/x", [b"1"])


def test_a_file_that_fails_half_written_leaves_its_error(s3: S3) -> None:
    lake = LakeFiles(s3.folder(), s3.options)
    with pytest.raises(TypeError):
        lake.write("t/x", [b"1", 2])


def test_a_store_that_does_not_answer_says_nothing_of_the_bytes_of_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words have the file's address, with "parquet" in it. A table would be held, or all of apply stopped, for
    damage.
    """
    monkeypatch.setattr(store_files, "STORE_FILE_RETRY_SECONDS_MAX", 1.0)
    monkeypatch.setattr(store_files, "STORE_TAIL_BYTES", 8)
    with moto() as own:
        lake = LakeFiles(own.folder(), {**own.options, "timeout": "1s"})
        for path in ("t/x.parquet", f"{SEGMENTS.path}/x.parquet"):
            with lake.filesystem.open_output_stream(lake.local(path)) as sink:
                pq.write_table(pa.table({"n": [1, 2]}), sink)
        lake.write("t/damaged.parquet", [b"no Parquet at all"])
        lake.write("t/empty.parquet", [b""])
        assert opened(lake, "t/x.parquet").metadata.num_rows == 2
        handle = lake.open("t/x.parquet")
        with own.silent():
            with pytest.raises(StoreError):
                opened(lake, "t/x.parquet")
            with pytest.raises(StoreError), reading(lake, "x.parquet"):
                pass
            monkeypatch.setattr(LakeFiles, "open", lambda *_: handle)  # it is silent from now on
            with pytest.raises(StoreError):
                opened(lake, "t/x.parquet")
            with pytest.raises(StoreError), reading(lake, "x.parquet"):
                pass
        monkeypatch.undo()
        with pytest.raises(SilverDamaged):
            opened(lake, "t/damaged.parquet")
        with pytest.raises(SilverDamaged):
            opened(lake, "t/empty.parquet")
        with pytest.raises(StreamCorrupt), reading(lake, "x.parquet"):
            pass  # it has no column of bronze
        with pytest.raises(FileNotFoundError), reading(lake, "none.parquet"):
            pass
