"""`tidegate snapshot run --follow` while its source is down: it is there when the source is again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.support.servers import ROOT
from tidegate.home import EXIT_INTERRUPTED
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress.requests import request


def test_a_reader_that_follows_tries_a_source_that_is_down_again(tmp_path: Path) -> None:
    file, lake = tmp_path / "p.yaml", LakeFiles(str(tmp_path / "lake"))
    text = f"pipeline: p\nlake: {{path: {lake.root}}}\nsources: {{s: {{conn_id: down, flavour: mysql}}}}\n"
    file.write_text(f"{text}tables: {{include: ['d.*']}}\n")
    request(lake, "p", [("s", "d", "t")])
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # it doesn't listen
        port = nobody.getsockname()[1]
        connection = {"conn_type": "mysql", "host": "127.0.0.1", "port": port, "login": "a", "password": "b"}
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "tidegate"), "snapshot", "run", str(file), "--follow"],
            env=os.environ | {"TIDEGATE_HOME": str(ROOT), "AIRFLOW_CONN_DOWN": json.dumps(connection)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        lines = []
        while not lines or "until it passes" not in lines[-1]:
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        assert "connection refused" in lines[-1]
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=120)
    assert (process.returncode, rest) == (EXIT_INTERRUPTED, "")
