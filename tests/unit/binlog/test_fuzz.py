"""Damaged files end in rows, in problems or in a TidegateError; never in a crash, a hang, or a wild read.

In:  every golden case, damaged by tests/fuzz/mutate.py: sizes and checksums are made good again, so that the CRC hides
     nothing, and damage goes into compressed events too.
Out: tests/fuzz/target.py's judgement: index, kernel, slow twin and `tidegate decode`'s library, in a process of their
     own with memory that is fenced behind every payload and every Arrow buffer, and limits on address space, resident
     memory and time per file. Kernel and twin must say the same of each file.

TIDEGATE_FUZZ=50000 (files) and TIDEGATE_FUZZ_SEED=7 make a longer run, `python -m tests.fuzz.worker --help` explores.

Not covered here: files of more than some 50 kB (several pieces, several segments), the capture side (packet_walk),
reads within a buffer but outside an event, writes from one column's room into another's (only a difference from the
twin would tell), memory of NumPy's own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.decoding import ALL_TIME, DECODERS, decode_both
from tests.support.seeds import many, seed
from tests.support.servers import ROOT
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.encoding.types import WireType, wire_type
from tests.unit.binlog.logs import WRITE, Dress, Table, rows_event, segment_of, transaction
from tidegate.errors import StreamCorrupt, Terminal
from tidegate.log_files.inferred_plan import infer_plan

COUNT = os.environ.get("TIDEGATE_FUZZ") or str(many(200, 6000))
SEED = os.environ.get("TIDEGATE_FUZZ_SEED") or str(seed())


@pytest.mark.long
def test_damaged_files_end_in_typed_errors(tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    command = [sys.executable, "-m", "tests.fuzz.worker", "--seed", SEED, "--count", COUNT, "--progress", str(progress)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    reached = int.from_bytes(progress.read_bytes(), "little") if progress.exists() else -1
    told = f"seed {SEED}, reached file {reached}, exit code {done.returncode}\n{done.stdout}{done.stderr[-3000:]}"
    assert done.returncode == 0, told
    print(told)


@pytest.mark.parametrize("how", ["read", "write"])
def test_the_fence_ends_a_process_that_goes_one_byte_too_far(how: str) -> None:
    program = {
        "read": "from tests.fuzz.guarded import fenced; import numpy as n; a = n.frombuffer(fenced(b'x' * 99), 'u1');"
        "import ctypes; print(a[98], flush=True); ctypes.string_at(a.ctypes.data + 99, 1)",
        "write": "from tests.fuzz.guarded import allocate_fenced; import ctypes; b = allocate_fenced(99);"
        "ctypes.memset(b.address, 1, 99); print(120, flush=True); ctypes.memset(b.address + 99, 1, 1)",
    }[how]
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("120\n", -signal.SIGSEGV)


# --- what fuzzing found ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "wire"),
    [
        ("decimal(1,0)", "e4"),  # 100
        ("decimal(9,9)", "fecdef00"),
        ("decimal(10,0)", "8affffffff"),
        ("decimal(18,9)", "bfffffff00000000"),
        ("decimal(20,2)", "e4000000000000000001"),
        ("decimal(30,20)", "80000000000000000000ffffffff"),
        ("decimal(38,2)", "80000000000000000000000000000000ff"),
        ("decimal(65,30)", "80" + "ff" * 29),
    ],
)
def test_digits_that_a_decimal_has_no_room_for_stop_the_table(kind: str, wire: str) -> None:
    table, dress = Table("t", (wire_type(kind),)), Dress()
    rows = rows_event(WRITE, 9, 1, e.image(bytes.fromhex(wire)), dress, end=True)
    given = segment_of(transaction(1, [table.map_event(9, dress), rows], dress), dress)
    found = decode_both(given, {("shop", "t"): [table.version]}, {("shop", "t"): ALL_TIME})
    assert [problem.error for problem in found.problems] == ["DecodeError"]


@pytest.mark.parametrize(
    ("code", "metadata"),
    [(246, b"\x00\x00"), (246, b"\x05\xc8"), (246, b"\x28\x29"), (254, b"\xf8\x00"), (254, b"\xf8\x05")],
    ids=["decimal(0,0)", "decimal(5,200)", "decimal(40,41)", "set of 0 bytes", "set of 5 bytes"],
)
def test_a_type_that_no_server_has_is_refused(code: int, metadata: bytes) -> None:
    table = Table("t", (WireType("odd", "", code, metadata, bytes),))
    with pytest.raises(Terminal):
        infer_plan(table.map_event(9, Dress(metadata=""))[19 + 8 : -4])


@pytest.mark.parametrize(("kind", "size"), [("inet4", 5), ("inet6", 17), ("uuid", 17)])
def test_an_address_that_is_too_long_stops_the_table(kind: str, size: int) -> None:
    table, dress = Table("t", (wire_type(kind),)), Dress()
    rows = rows_event(WRITE, 9, 1, e.image(bytes([size]) + b"x" * size), dress, end=True)
    given = segment_of(transaction(1, [table.map_event(9, dress), rows], dress), dress)
    found = decode_both(given, {("shop", "t"): [table.version]}, {("shop", "t"): ALL_TIME})
    assert [problem.error for problem in found.problems] == ["DecodeError"]


@pytest.mark.parametrize("unpacked", [(1 << 64) - 1, 1 << 63, 1 << 62, (1 << 62) - 1, 1 << 40])
def test_a_payload_that_says_it_is_endless_is_refused(unpacked: int) -> None:
    whole = e.payload(e.xid())
    body = whole[19:-4]
    packed = body[body.index(b"\x28\xb5\x2f\xfd") :]
    made = e.event(40, e.fields(compression=0, unpacked=unpacked, size=len(packed)) + packed)
    given = segment_of([e.mysql_gtid(1, 10**15), made], Dress(mysql=True))
    for decode in DECODERS:
        with pytest.raises(StreamCorrupt):
            decode(given, {}, {})
