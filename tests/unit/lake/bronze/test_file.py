"""A file of bronze: what was packed in any way is read back as it was, by any reader of Parquet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest

from tests.support.bronze import QuietBronze
from tidegate.config import Capture
from tidegate.lake.bronze.file import write_file
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
