"""Chunks that another writer's OPTIMIZE has packed into one file keep their own bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from tests.unit.snapshot.test_contracts import chunk
from tidegate import tables
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.chunks.chunk import rows_of
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, chunk_refs, claim_reader


def test_each_chunk_of_a_packed_file_has_its_own_rows(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    writer = ChunkWriter(lake, "s", claim_reader(ControlTables(lake), "s"))
    for number in range(1, 4):
        writer.append([replace(chunk(number, [(number, "a")]), low_token="a" * 32)])
    DeltaTable(lake.uri(tables.CHUNKS.path)).optimize.compact()
    refs = chunk_refs(LakeFiles(str(tmp_path)), "s", ["a" * 32])
    assert len({ref.path for ref in refs}) == 1
    assert [rows_of(ref.read(lake)).column(0).to_pylist() for ref in refs] == [[1], [2], [3]]
