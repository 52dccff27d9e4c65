"""A file of bronze: what was packed in any way is read back as it was, by any reader of Parquet."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.bronze import QuietBronze
from tidegate.config import Capture
from tidegate.lake.bronze.file import created, write_file
from tidegate.lake.files import LakeFiles
from tidegate.segments.crc32c import crc32c

PACKINGS = {"zstd": "ZSTD", "lz4": "LZ4", "none": "UNCOMPRESSED"}


def test_every_packing_that_a_pipeline_file_may_name_is_tested() -> None:
    assert set(PACKINGS) == set(get_args(Capture.model_fields["compression"].annotation))


@pytest.mark.parametrize("packing", PACKINGS)
def test_payloads_come_back_as_they_were(packing: str, tmp_path: Path) -> None:
    source = QuietBronze(tmp_path / "lake")
    source.land("one", (10, 20, 30), (40, 50, 60))
    payloads = [bytes(range(256)) * 5000, b"x"]
    segments = [
        replace(segment, payload=payload, payload_crc32c=crc32c(payload))
        for segment, payload in zip(source.landed, payloads, strict=True)
    ]
    path = tmp_path / "file.parquet"
    with path.open("wb") as sink:
        write_file(sink, segments, packing)
    found = pq.ParquetFile(path)
    assert found.read(["payload"])["payload"].to_pylist() == payloads
    at = found.schema_arrow.names.index("payload")
    assert found.metadata.row_group(0).column(at).compression == PACKINGS[packing]


def test_a_new_file_is_never_one_that_is_there_and_a_full_disk_says_its_number(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    with created(lake, "a/b.parquet") as file:
        file.write(b"first")
        assert file.tell() == 5
    with pytest.raises(FileExistsError), created(lake, "a/b.parquet") as file:
        file.write(b"second")
    assert (tmp_path / "a" / "b.parquet").read_bytes() == b"first"
    with pytest.raises(OSError, match="No space left") as full, pa.OSFile("/dev/full", "wb") as file:
        file.write(b"x")
    assert full.value.errno == errno.ENOSPC
