"""Resolving takes no more memory than the driver is said to need, whatever the number of keys."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidegate.upsert.cost import KEY_RECORD_BYTES

PROGRAM = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa
from tidegate.upsert.keys.file import KeyFile
from tidegate.upsert.keys.hash import SEED, key_hashes, leads
from tidegate.upsert.keys.resolve import resolve

def keys(count):
    column, zeros, each = pa.array(np.arange(count)), np.zeros(count, np.int64), np.arange(count)
    schema, file = pa.schema([("id", pa.int64())]), zeros.astype(np.int32)
    lead = leads(column).reshape(1, -1)
    return KeyFile("s", schema, SEED, key_hashes([column]), zeros, each, each.copy(), file, each.copy(), lead, ({},))

def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

resolve([keys(1000)])
count = int(sys.argv[1])
Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
before = kilobytes("VmRSS")
resolve([keys(count)])
print((kilobytes("VmHWM") - before) * 1024 / count)
"""


@pytest.mark.parametrize("count", [2_050_000, 2_150_000])
def test_a_change_takes_at_most_what_is_reckoned_for_it(count: int) -> None:
    """The second count is just above what a table of slots has room for."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(count)], capture_output=True, text=True, check=True)
    assert float(done.stdout) <= KEY_RECORD_BYTES + 8, done.stdout
