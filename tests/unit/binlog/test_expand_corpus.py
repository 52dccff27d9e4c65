"""One workload logged by MySQL 9 twice, plain and compressed (partial JSON too): both decode to the same rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.kit.decoding import ALL_TIME, changed_rows, segment_of_file
from tests.support.servers import ROOT
from tidegate.binlog.index.event_index import index_pieces
from tidegate.binlog.rows.decode import decode_segment
from tidegate.binlog.statements.ddl_events import ddl_statements
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.result import DecodedSegment
from tidegate.tables import COMMIT_TS, ORDINAL, SEQ

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CORPUS = ROOT.parent / "shared" / "corpus" / "mysql9"


def decoded(folder: Path) -> dict[str, DecodedSegment]:
    """File -> what it decodes to, by the tables that the DDL of this and earlier files made."""
    history = SchemaHistory("test")
    found = {}
    for section in json.loads((folder / "manifest.json").read_text())["sections"]:
        for part in section["files"]:
            if not (folder / part["file"]).exists():  # one of the manifest's was not kept
                continue
            given = segment_of_file((folder / part["file"]).read_bytes())
            for statement in ddl_statements(given):
                history.replay(statement)
            versions = {name: history.versions(*name) for name in history.tables()}
            found[part["file"]] = decode_segment(
                given, versions, dict.fromkeys(versions, ALL_TIME), verify_checksums=True
            )
    return found


def still(value: Any) -> Any:
    """A value without what differs from run to run: the workload calls UUID()."""
    return UUID.sub("a uuid", value) if isinstance(value, str) else value


def rows_of(found: DecodedSegment) -> list[Any]:
    placed = [
        (row[ORDINAL], change.table, {k: still(v) for k, v in row.items() if k not in (COMMIT_TS, ORDINAL, SEQ)})
        for change in found.changes
        for row in change.batch.to_pylist()
    ]
    return [(table, row) for _, table, row in sorted(placed, key=lambda one: one[0])]


@pytest.mark.skipif(not CORPUS.exists(), reason="the recorded corpus isn't beside the checkout")
def test_compressed_files_decode_to_the_rows_of_the_plain_ones() -> None:
    plain, packed = decoded(CORPUS / "plain"), decoded(CORPUS / "zstd")
    assert plain.keys() == packed.keys()
    compared = 0
    for file, found in plain.items():
        assert [(p.table, p.error) for p in packed[file].problems] == [(p.table, p.error) for p in found.problems], file
        both = [rows_of(packed[file]), rows_of(found)]
        if file == "parallel.binlog":  # written by several connections at once
            both = [sorted(rows, key=repr) for rows in both]
        assert both[0] == both[1], file
        compared += len(changed_rows(found))
    assert compared > 500
    (index,) = index_pieces(segment_of_file((CORPUS / "zstd" / "types.binlog").read_bytes()))
    assert index.expanded
