"""What a person sees of a job that tidegate submits: the job's own lines, nothing of Spark's start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.event_log import Log
from tests.support.servers import ROOT
from tests.unit.binlog.encoding import events as e
from tidegate.local import jars


@pytest.mark.spark
def test_apply_prints_its_windows_and_no_word_of_spark(tmp_path: Path) -> None:
    jars.ensure(ROOT)
    log = Log(tmp_path)
    rows = e.table_map(7, "a", b"\x03", b"") + e.rows(30, 7, 1, b"\0\1\0\0\0")
    log.send("one", b"", ("shop.a",), event=rows)
    log.level()
    done = subprocess.run(
        [str(Path(sys.executable).parent / "tidegate"), "apply", str(log.file)],
        env=os.environ | {"TIDEGATE_HOME": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    *windows, last = done.stdout.splitlines()
    assert windows
    assert all(line.startswith("silver is complete up to ") for line in windows), done.stdout
    assert any("by MERGE" in line for line in windows), "Spark had work"
    assert last.startswith("applied ")
