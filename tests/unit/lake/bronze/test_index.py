"""Segments come back from bronze as capture appended them, and no file or row group is read twice for neighbours."""

from __future__ import annotations

import dataclasses
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.support.bronze import QuietBronze
from tests.unit.capture.test_lander import chain
from tidegate.delta.object_names import commit_name
from tidegate.delta.table.actions import add, lines, remove
from tidegate.errors import LakeRefused, StreamCorrupt
from tidegate.lake.bronze.index import BronzeIndex, read_segment, read_segments, segments_or_damage
from tidegate.lake.bronze.log import BronzeLog, bronze_log
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.segments.window import SegmentRef, in_window
from tidegate.tables import SEGMENTS


def plain(segment: Segment) -> Segment:
    return dataclasses.replace(segment, payload=bytes(segment.payload), context=bytes(segment.context))


def bronze_of(folder: Path) -> tuple[LakeFiles, list[Segment], list[SegmentRef]]:
    """Two sources, commits of one and of several segments; refs in the index's order."""
    bronze = QuietBronze(folder)
    for source in ("a", "b"):
        bronze.land(source, (10, 11, 11))
        bronze.land(source, *((ts, ts + 1, ts + 1) for ts in range(20, 90, 10)), (100,))
        bronze.land(source, (110, 111, 112))
    index = BronzeIndex(LakeFiles(str(folder)))
    index.refresh(0)
    return LakeFiles(str(folder)), bronze.landed, [ref for refs in index.refs.values() for ref in refs]


def test_what_is_read_is_what_was_appended(tmp_path: Path) -> None:
    lake, landed, refs = bronze_of(tmp_path)
    wanted = {(segment.source, segment.seq): segment for segment in landed}
    assert len(refs) == len(wanted) == 20
    found = list(read_segments(lake, refs))
    assert [ref for ref, _ in found] == refs
    for ref, segment in found:
        assert plain(segment) == wanted[ref.source, ref.seq]
        assert plain(read_segment(lake, ref)) == wanted[ref.source, ref.seq]


def test_a_segment_that_changed_since_its_capture_is_refused_with_its_place(tmp_path: Path) -> None:
    _, landed, refs = bronze_of(tmp_path)
    ref = next(ref for ref in refs if (ref.source, ref.seq) == ("a", 1))
    path = tmp_path / SEGMENTS.path / ref.path.replace("%3D", "=")
    rows = pa.parquet.ParquetFile(path).read()
    payload = bytearray(landed[0].payload)
    payload[3] ^= 0x20
    at = rows.schema.names.index("payload")
    changed = pa.chunked_array([[bytes(payload)]], rows.schema.field(at).type)
    pa.parquet.write_table(rows.set_column(at, "payload", changed), path)
    with pytest.raises(StreamCorrupt, match=r"^a at binlog\.000001:4: payload of segment 1 has CRC-32C 0x.*; restore"):
        read_segment(LakeFiles(str(tmp_path)), ref)


def test_bytes_that_changed_concern_the_segments_of_their_row_group_alone(tmp_path: Path) -> None:
    """One file of three row groups, a byte flipped in the second: what lies before it and behind it is read."""
    lake = LakeFiles(str(tmp_path))
    QuietBronze(tmp_path).land("a", *((ts, ts + 5, ts + 9) for ts in range(10, 70, 10)))
    index = BronzeIndex(lake)
    index.refresh(0)
    path = tmp_path / SEGMENTS.path / index.refs["a"][0].path.replace("%3D", "=")
    file = pa.parquet.ParquetFile(path)
    column = file.schema_arrow.names.index("payload")
    pa.parquet.write_table(file.read(), path, row_group_size=2, write_page_checksum=True, use_dictionary=False)
    file = pa.parquet.ParquetFile(path)
    offset = file.metadata.row_group(1).column(column).data_page_offset
    data = bytearray(path.read_bytes())
    data[offset + file.metadata.row_group(1).column(column).total_compressed_size - 3] ^= 1
    path.write_bytes(data)
    refs = [dataclasses.replace(ref, row_group=at // 2, row=at % 2) for at, ref in enumerate(index.refs["a"])]
    found = dict(segments_or_damage(lake, refs))
    assert [isinstance(found[ref], StreamCorrupt) for ref in refs] == [False, False, True, True, False, False]
    assert [found[ref].seq for ref in refs if isinstance(found[ref], Segment)] == [1, 2, 5, 6]
    assert path.name in str(found[refs[2]])
    with pytest.raises(StreamCorrupt, match="its bytes were changed"):
        list(read_segments(lake, refs))


def test_any_order_and_any_choice_can_be_asked_for(tmp_path: Path) -> None:
    lake, landed, refs = bronze_of(tmp_path)
    wanted = {(segment.source, segment.seq): segment for segment in landed}
    chosen = [*reversed(refs), refs[3], refs[3], refs[1]]
    found = list(read_segments(lake, chosen))
    assert [ref for ref, _ in found] == chosen
    assert all(plain(segment) == wanted[ref.source, ref.seq] for ref, segment in found)


def test_neighbours_share_one_opening_and_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, _, refs = bronze_of(tmp_path)
    opened: list[str] = []
    real = LakeFiles.open

    def counted(self: LakeFiles, path: str) -> pa.NativeFile:
        opened.append(path)
        return real(self, path)

    monkeypatch.setattr(LakeFiles, "open", counted)
    groups: list[int] = []
    real_group = pa.parquet.ParquetFile.read_row_group

    def counted_group(self: pa.parquet.ParquetFile, number: int, **given: object) -> pa.Table:
        groups.append(number)
        return real_group(self, number, **given)

    monkeypatch.setattr(pa.parquet.ParquetFile, "read_row_group", counted_group)
    list(read_segments(lake, refs))
    files = {f"{SEGMENTS.path}/{ref.path.replace('%3D', '=')}" for ref in refs}
    assert sorted(opened) == sorted(files)
    assert len(groups) == len({(ref.path, ref.row_group) for ref in refs})


def test_a_refresh_takes_in_new_commits_only_and_survives_a_cleaned_or_rewritten_log(tmp_path: Path) -> None:
    bronze, index = QuietBronze(tmp_path), BronzeIndex(LakeFiles(str(tmp_path)))
    assert not index.refresh(0), "no bronze yet"
    for ts in range(10, 60, 10):
        bronze.land("a", (ts, ts + 1, ts + 1))
        assert index.refresh(0)
        assert not index.refresh(0)
        assert [ref.seq for ref in index.refs["a"]] == list(range(1, ts // 10 + 1))
    cleaned = bronze.land("a", (60, 61, 61))
    bronze.land("a", (70, 71, 71))
    DeltaTable(str(tmp_path / SEGMENTS.path)).create_checkpoint()
    for version in range(cleaned + 1):
        (tmp_path / SEGMENTS.path / "_delta_log" / f"{version:020d}.json").unlink()
    assert any(index.refresh(25) for _ in range(20)), "whether what it knows is still there is looked at now and then"
    assert [ref.seq for ref in index.refs["a"]] == [3, 4, 5, 6, 7], "what is applied is not read again"
    index.forget(45)
    assert [ref.seq for ref in index.refs["a"]] == [5, 6, 7]
    assert index.refresh(0), "a table was released: from the start"
    assert [ref.seq for ref in index.refs["a"]] == list(range(1, 8))


def test_the_beginning_of_a_transaction_that_goes_on_in_later_segments_is_not_forgotten(tmp_path: Path) -> None:
    """All before it is applied while it is still coming: its first segments resolve no more than that."""
    bronze, index = QuietBronze(tmp_path), BronzeIndex(LakeFiles(str(tmp_path)))
    bronze.land("a", (10, 11, 11))
    index.refresh(0)
    for _ in range(2):
        bronze.land("a", (20, 20, 11))
        index.refresh(11)
        index.forget(11)
    bronze.land("a", (20, 20, 20))
    again = BronzeIndex(LakeFiles(str(tmp_path)))
    for found in (index, again):
        found.refresh(11)
        assert [ref.seq for ref in in_window(found.refs["a"], 11, 20)] == [2, 3, 4]


def test_a_flipped_byte_anywhere_in_a_file_of_bronze_is_found_or_harmless(tmp_path: Path) -> None:
    """In the payload, in the columns beside it, in the footer; what is found names the file."""
    lake, bronze = LakeFiles(str(tmp_path)), QuietBronze(tmp_path)
    payload = random.Random(1).randbytes(300) + b"again and " * 100
    landed = dataclasses.replace(
        bronze._segment("a", 10, 11, 11),
        payload=payload,
        context=b"context " * 20,
        payload_crc32c=crc32c(payload),
        end_pos=4 + len(payload),
    )
    Bronze(lake, "a").append([landed])
    index = BronzeIndex(lake)
    index.refresh(0)
    path = next((tmp_path / SEGMENTS.path).rglob("*.parquet"))
    sound, found = path.read_bytes(), 0
    for at in range(3, len(sound), 7):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ (1 << at % 8)]) + sound[at + 1 :])
        told = ""
        try:
            segment = read_segment(lake, index.refs["a"][0])
        except StreamCorrupt as error:
            told = str(error)
            found += 1
        else:
            assert plain(segment) == landed, f"byte {at} of {len(sound)}"
        assert not told or ("changed after they were" in told and (path.name in told or "segment 1" in told))
    assert found > len(sound) // 7 // 3


def test_segments_that_somebody_else_deleted_are_named_and_never_passed_over(tmp_path: Path) -> None:
    lake, _, _ = bronze_of(tmp_path)
    index = BronzeIndex(lake)
    index.refresh(0)
    table = DeltaTable(lake.uri(SEGMENTS.path))
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    table.delete("source = 'a' AND seq = 4")
    for one in (index, BronzeIndex(lake)):
        with pytest.raises(LakeRefused, match=r"has 7 segments instead of all from 2 to 9; .*restore it"):
            one.refresh(0)


def test_a_deletion_vector_on_bronze_is_named(tmp_path: Path) -> None:
    lake, _, _ = bronze_of(tmp_path)
    log = bronze_log(lake)
    state = log.state()
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    body = {**state.files[0].action, "deletionVector": vector}
    actions = [remove(state.files[0], data_change=True), add(body, data_change=True)]
    log.store.create(commit_name(state.version + 1), lines(actions))
    with pytest.raises(LakeRefused, match="were deleted by a deletion vector"):
        BronzeIndex(lake).refresh(0)
    with pytest.raises(LakeRefused, match="were deleted by a deletion vector"):
        BronzeLog(lake, log, log.state()).files()


def test_a_clock_that_is_set_back_over_midnight_within_a_batch_leaves_no_file_with_holes(tmp_path: Path) -> None:
    night = datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)
    times = [night, night + timedelta(seconds=2), night, night + timedelta(seconds=2), night + timedelta(seconds=3)]
    landed = [
        dataclasses.replace(one, captured_at=at, payload_crc32c=crc32c(one.payload))
        for one, at in zip(chain(range(1, 6)), times, strict=True)
    ]
    lake = LakeFiles(str(tmp_path))
    Bronze(lake, landed[0].source).append(landed)
    index = BronzeIndex(lake)
    index.refresh(0)
    (refs,) = index.refs.values()
    assert [ref.seq for ref in refs] == [1, 2, 3, 4, 5]
    assert [segment.captured_at for _, segment in read_segments(lake, refs)] == times
    assert len({ref.path for ref in refs}) == 4
