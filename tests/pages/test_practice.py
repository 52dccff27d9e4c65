"""`make mariadb` ends quietly: Ctrl-C and SIGTERM are its ordinary end, of which make has nothing to report. A port in
use is said at once, with the way out.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.servers import ROOT
from tidegate.home import EXIT_ERROR, EXIT_OK
from tidegate.local import mariadb
from tidegate.local.server import free_port

_PROGRAM = ROOT / "tools" / "practice_mariadb.py"


def _a_home(tmp_path: Path) -> dict[str, str]:
    mariadb.install(ROOT)
    (tmp_path / ".tidegate").mkdir()
    (tmp_path / ".tidegate" / "servers").symlink_to(ROOT / ".tidegate" / "servers")
    return os.environ | {"TIDEGATE_HOME": str(tmp_path)}


@pytest.mark.server
@pytest.mark.timeout(600)
def test_make_mariadb_says_that_its_port_is_in_use(tmp_path: Path) -> None:
    environment = _a_home(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, str(_PROGRAM), port]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == EXIT_ERROR
    assert ended.stderr.startswith(f"tidegate: make mariadb: port {port} is in use on this computer; ")
    assert "make mariadb PORT=" in ended.stderr


@pytest.mark.server
@pytest.mark.timeout(600)
def test_make_mariadb_ends_quietly(tmp_path: Path) -> None:
    environment = _a_home(tmp_path)
    for number in (signal.SIGINT, signal.SIGTERM):
        said = tmp_path / f"{number.name}.log"
        with said.open("wb") as log:
            server = subprocess.Popen(
                ["env", "--default-signal=INT", sys.executable, str(_PROGRAM), str(free_port())],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while "SQL as its administrator" not in said.read_text():
            assert server.poll() is None, said.read_text()
            time.sleep(0.1)
        os.killpg(server.pid, number)
        assert server.wait(120) == EXIT_OK
        assert len(said.read_text().splitlines()) == 2, said.read_text()
