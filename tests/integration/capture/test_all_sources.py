"""`tidegate capture` without --source: every source of the pipeline, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.servers import FreshDatabase
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server

pytestmark = pytest.mark.server


def wait_for(lake: LakeFiles, source: str, seq: int) -> int:
    """Until bronze has more of a source than this."""
    end = time.monotonic() + 120
    while (last := Bronze(lake, source).last_seq) <= seq:
        assert time.monotonic() < end, f"nothing of {source} beyond {seq}"
        time.sleep(0.1)
    return last


def test_a_source_out_of_reach_doesnt_keep_the_others_from_being_captured(
    mariadb: Server, mysql9: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    fresh_database(mariadb)
    fresh_database(mysql9)
    file, lake = tmp_path / "all.yaml", LakeFiles(str(tmp_path / "lake"))
    file.write_text(
        f"pipeline: all\nlake: {{path: {tmp_path / 'lake'}}}\ntables: {{include: ['*.*']}}\n"
        "sources:\n  eu: {conn_id: eu, flavour: mariadb}\n  us: {conn_id: us, flavour: mysql}\n"
        "  gone: {conn_id: gone, flavour: mysql}\n"
        "capture: {land_seconds: 0.1, heartbeat_seconds: 0.5}\n"
    )
    logins = {
        f"AIRFLOW_CONN_{name}": f"mysql://{server.user}:{server.password}@{server.host}:{port}"
        for name, server, port in (("EU", mariadb, mariadb.port), ("US", mysql9, mysql9.port), ("GONE", mysql9, 1))
    }
    argv = [str(Path(sys.executable).parent / "tidegate"), "capture", str(file), "--state-dir", str(tmp_path / "state")]
    with subprocess.Popen(
        [*argv, "--run-for", "900"],
        env=os.environ | logins | {"TIDEGATE_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            seqs = {name: wait_for(lake, name, 0) for name in ("eu", "us")}
            for name, seq in seqs.items():
                wait_for(lake, name, seq)
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert Bronze(lake, "gone").last_seq == 0
    assert process.returncode in {0, 75}, "75 if the third source's capture had ended by then"
    assert "eu: stopped: " in said
    assert "us: stopped: " in said
