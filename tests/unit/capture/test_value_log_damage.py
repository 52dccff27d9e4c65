"""Any segment survives the codec; any bit that flips on disk is found, named by place, and costs only its record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.support.segments import segment
from tidegate.capture.value_log.file import Damage, Record, Torn, opened
from tidegate.capture.value_log.log import ValueLog
from tidegate.capture.value_log.record import (
    FOOTER_BYTES,
    RECORD,
    Footer,
    decode,
    decode_footer,
    decode_head,
    encode,
    encode_footer,
)
from tidegate.cli.main import app
from tidegate.errors import ValueLogError
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind

U64 = st.integers(0, (1 << 64) - 1)
U63 = st.integers(0, (1 << 63) - 1)
SEGMENTS = st.builds(
    Segment,
    source=st.text(min_size=1),
    seq=U63,
    kind=st.sampled_from(SegmentKind),
    server_id=st.integers(0, (1 << 32) - 1),
    server_uuid=st.text(),
    file=st.text(),
    start_pos=U63,
    end_pos=U63,
    gtid_executed=st.text(),
    prev_commit_ts=U63,
    min_commit_ts=U63,
    max_commit_ts=U63,
    resolved_ts=U63,
    tables=st.lists(st.text()).map(tuple),
    flags=st.sampled_from([SegmentFlag(0), SegmentFlag.HAS_DDL, SegmentFlag.OPEN_AT_END | SegmentFlag.OPEN_AT_START]),
    event_count=U63,
    txn_count=U63,
    context=st.binary(),
    payload=st.binary(),
    payload_crc32c=st.integers(0, (1 << 32) - 1),
    captured_at=st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)


@given(SEGMENTS)
def test_any_segment_comes_back_equal(one: Segment) -> None:
    record = b"".join(encode(one))
    magic_and_length, payload = record[: RECORD.size], record[RECORD.size :]
    assert RECORD.unpack(magic_and_length)[1] == len(payload)
    assert decode(payload) == one
    head = decode_head(payload)
    assert head is not None
    assert head.bytes == len(payload)
    assert head.segment == replace(one, context=b"", payload=b"")


@given(SEGMENTS, st.data())
def test_a_part_of_a_record_is_no_segment(one: Segment, data: st.DataObject) -> None:
    payload = b"".join(encode(one))[RECORD.size :]
    cut = payload[: data.draw(st.integers(4, len(payload) - 1))]
    with pytest.raises(ValueError, match=r"header|lengths|Expecting|Unterminated|Extra|Invalid"):
        decode(cut)


@given(U64, U64, st.integers(0, FOOTER_BYTES * 8 - 1))
def test_a_footer_comes_back_equal_and_never_with_a_flipped_bit(commit_ts: int, seq: int, bit: int) -> None:
    data = encode_footer(Footer(commit_ts, seq))
    assert decode_footer(data) == Footer(commit_ts, seq)
    assert decode_footer(flipped(data, bit)) is None


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def walked(path: Path, *, last: bool) -> tuple[list[int], list[Damage], list[Torn]]:
    with opened(path) as file:
        parts = list(file.walk(last=last))
    return (
        [part.segment.seq for part in parts if isinstance(part, Record)],
        [part for part in parts if isinstance(part, Damage)],
        [part for part in parts if isinstance(part, Torn)],
    )


@pytest.fixture
def three(tmp_path: Path) -> tuple[Path, bytes, list[tuple[int, int]]]:
    """A log's folder, the bytes of its full first file, and (begin, end) of each record in it, then of the footer."""
    log = ValueLog(tmp_path / "log", file_bytes=1200)
    places = [log.append(segment(seq, b"payload %d" % seq)) for seq in (1, 2, 3, 4)]
    log.sync()
    log.close()
    data = (tmp_path / "log" / "000001.vlog").read_bytes()
    assert [place.file for place in places] == [1, 1, 1, 2]
    ends = [(place.offset, place.end) for place in places[:3]]
    return tmp_path / "log", data, [*ends, (ends[-1][1], len(data))]


def bits(places: list[tuple[int, int]]) -> Iterator[int]:
    """Each bit of a record's frame, of the footer, and of its first bytes; of the rest each 23rd."""
    for begin, end in places:
        yield from range(begin * 8, (begin + 24) * 8)
        yield from range((begin + 24) * 8, end * 8, 23)


@pytest.mark.parametrize("last", [False, True], ids=["full file", "last file"])
def test_each_flipped_bit_is_one_damage_at_its_record_and_loses_nothing_else(
    three: tuple[Path, bytes, list[tuple[int, int]]], last: bool
) -> None:
    folder, data, places = three
    path = folder / "000001.vlog"
    if last:
        data, places = data[:-FOOTER_BYTES], places[:-1]
    for bit in bits(places):
        path.write_bytes(flipped(data, bit))
        number = next(n for n, (begin, end) in enumerate(places) if begin <= bit // 8 < end)
        seqs, damages, torn = walked(path, last=last)
        assert seqs == [seq for seq in (1, 2, 3) if seq != number + 1], bit
        assert [damage.offset for damage in damages] == [places[number][0]], bit
        assert not torn, bit


def test_capture_refuses_a_damaged_last_file_instead_of_cutting_it(
    three: tuple[Path, bytes, list[tuple[int, int]]],
) -> None:
    folder, data, places = three
    (folder / "000002.vlog").unlink()
    path = folder / "000001.vlog"
    damaged = flipped(data[:-FOOTER_BYTES], places[1][0] * 8 + 300)
    path.write_bytes(damaged)
    with pytest.raises(ValueLogError, match=f"{re.escape(str(path))}:{places[1][0]}: "):
        ValueLog(folder)
    assert path.read_bytes() == damaged


def test_capture_refuses_a_damaged_footer(three: tuple[Path, bytes, list[tuple[int, int]]]) -> None:
    folder, data, places = three
    (folder / "000001.vlog").write_bytes(flipped(data, places[-1][0] * 8 + 5))
    with pytest.raises(ValueLogError, match=f"000001.vlog:{places[-1][0]}: .* footer is damaged"):
        ValueLog(folder)


def test_the_tool_lists_checks_and_shows(three: tuple[Path, bytes, list[tuple[int, int]]]) -> None:
    folder, data, places = three
    run = CliRunner()
    listed = run.invoke(app, ["vlog", "ls", str(folder)])
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == ["000001.vlog", "000002.vlog"]
    checked = run.invoke(app, ["vlog", "check", str(folder)])
    assert (checked.exit_code, checked.stdout) == (0, "2 files, 4 good segments, 0 damages\n")
    shown = run.invoke(app, ["vlog", "cat", str(folder), "--seq", "2", "--raw"])
    assert shown.stdout == "payload 2payload 3payload 4"

    (folder / "000001.vlog").write_bytes(flipped(data, places[1][0] * 8 + 300))
    checked = run.invoke(app, ["vlog", "check", str(folder)])
    assert (checked.exit_code, checked.stdout) == (1, "2 files, 3 good segments, 1 damages\n")
    assert checked.stderr.startswith(f"tidegate: {folder}/000001.vlog:{places[1][0]}: ")
    assert checked.stderr.count("\n") == 1
    shown = run.invoke(app, ["vlog", "cat", str(folder)])
    assert shown.exit_code == 1
    assert [line[:30].count('"source": "one"') for line in shown.stdout.splitlines()] == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ls", "{folder}/nothing.vlog"], "no such file"),
        (["check", "{folder}/empty"], "there is no value log here"),
        (["cat", "{folder}/strange.vlog"], "isn't a file of a value log"),
        (["cat", "no_such_pipeline"], "no pipeline"),
    ],
)
def test_a_wrong_place_is_one_clear_error(
    tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from tidegate.cli.main import run

    (tmp_path / "empty").mkdir()
    (tmp_path / "strange.vlog").write_bytes(b"x")
    with pytest.raises(SystemExit) as ended:
        run(["vlog", *(argument.format(folder=tmp_path) for argument in arguments)])
    assert ended.value.code in (1, 2)
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
