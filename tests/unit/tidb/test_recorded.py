"""Streams recorded from a real TiDB end as its own SELECTs said: at the end, at checkpoints, without the orphans.

A folder of tests/golden/tidb is a case; adding one needs no code.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tests.kit.tidb.replay.command import checked, tidb_replay
from tests.kit.tidb.replay.recording import Recording
from tests.kit.tidb.replay.stream import RecordedStream, rows_hash
from tidegate.errors import StreamCorrupt, UsageError

app = typer.Typer()
app.command()(tidb_replay)
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tidb"
CASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_stream_ends_as_select_said(case: str) -> None:
    found = checked(GOLDEN / case, Recording(GOLDEN / case))
    assert found["tables"] > 0
    assert found["differences"] == []


def test_the_rows_hash_is_the_recordings() -> None:
    path = next((GOLDEN / "p12_fuzz" / "tables").glob("*.json"))
    table = json.loads(path.read_text())
    assert rows_hash(table["rows"]) == table["sha256"]


def test_orphans_without_an_answer_hold_the_tables_back(tmp_path: Path) -> None:
    case = GOLDEN / "p09_orphan"
    for name in ("binlog.bin", "ddl_jobs.jsonl", "index.jsonl"):
        (tmp_path / name).write_bytes((case / name).read_bytes())
    stream = RecordedStream(Recording(tmp_path))
    oldest = min(stream.unanswered)
    assert len(stream.unanswered) == 13  # eleven lost commits, two lost rollbacks
    assert stream.resolved_ts <= oldest
    with pytest.raises(StreamCorrupt, match="isn't resolved"):
        stream.at(oldest + 1)
    ran = CliRunner().invoke(app, [str(tmp_path)])
    assert ran.exit_code == 1
    assert len(json.loads(ran.stdout)["unanswered"]) == 13


def test_the_command_prints_tables_and_writes_files(tmp_path: Path) -> None:
    case = str(GOLDEN / "p11_fake")
    ran = CliRunner().invoke(app, [case])
    table = json.loads(ran.stdout)["tables"]["p11_fake_db.t"]
    recorded = json.loads((GOLDEN / "p11_fake/tables/p11_fake_db.t.json").read_text())
    assert (ran.exit_code, table["sha256"], table["table_id"]) == (0, recorded["sha256"], recorded["table_id"])
    assert CliRunner().invoke(app, [case, "--out", str(tmp_path)]).exit_code == 0
    assert json.loads((tmp_path / "p11_fake_db.t.json").read_text())["rows"] == recorded["rows"]
    assert CliRunner().invoke(app, [case, "--check"]).exit_code == 0


def test_a_cut_file_and_an_empty_folder_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no binlog\.bin"):
        Recording(tmp_path)
    (tmp_path / "ddl_jobs.jsonl").write_text("")
    (tmp_path / "binlog.bin").write_bytes((GOLDEN / "p11_fake/binlog.bin").read_bytes()[:-1])
    with pytest.raises(StreamCorrupt, match="cut off"):
        RecordedStream(Recording(tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("ddl_jobs.jsonl", "{}\n", r"ddl_jobs.jsonl:1: a DDL job isn't as TiDB 7.5 writes it"),
        ("index.jsonl", '{"seq": 0}\n', r"index.jsonl:1: it names no pump"),
        ("manifest.json", "{", r"manifest.json: it is no JSON"),
        ("manifest.json", '{"checkpoints": [{"tso": 1}]}', r"manifest.json: its orphans or checkpoints"),
    ],
)
def test_a_damaged_file_is_named(name: str, text: str, says: str, tmp_path: Path) -> None:
    for file in ("binlog.bin", "ddl_jobs.jsonl", "index.jsonl"):
        (tmp_path / file).write_bytes((GOLDEN / "p11_fake" / file).read_bytes())
    (tmp_path / name).write_text(text)
    with pytest.raises(StreamCorrupt) as raised:
        list(Recording(tmp_path).payloads())
    assert re.search(says, str(raised.value))


def test_check_needs_the_recorded_tables(tmp_path: Path) -> None:
    for file in ("binlog.bin", "ddl_jobs.jsonl", "index.jsonl"):
        (tmp_path / file).write_bytes((GOLDEN / "p11_fake" / file).read_bytes())
    with pytest.raises(UsageError, match="there is no folder"):
        checked(tmp_path, Recording(tmp_path))
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "d.t.json.gz").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(StreamCorrupt, match=r"isn't the JSON of a table"):
        checked(tmp_path, Recording(tmp_path))


def test_a_changed_byte_of_a_recording_is_never_replayed_in_silence_as_another_table(tmp_path: Path) -> None:
    """A lost row of the history is noticed by the next change of it."""
    case = GOLDEN / "p04_bank"
    for name in ("ddl_jobs.jsonl", "index.jsonl"):
        (tmp_path / name).write_bytes((case / name).read_bytes())
    payloads = [payload for _, payload in Recording(case).payloads()]
    kept = payloads[:10] + payloads[12:]
    (tmp_path / "binlog.bin").write_bytes(b"".join(len(one).to_bytes(8, "little") + one for one in kept))
    with pytest.raises(StreamCorrupt):
        RecordedStream(Recording(tmp_path)).at()
