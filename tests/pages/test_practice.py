"""`make mariadb` ends quietly: Ctrl-C and SIGTERM are its ordinary end, of which make has nothing to report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.servers import ROOT
from tidegate.home import EXIT_OK
from tidegate.local import mariadb
from tidegate.local.server import free_port


@pytest.mark.server
@pytest.mark.timeout(600)
def test_make_mariadb_ends_quietly(tmp_path: Path) -> None:
    mariadb.install(ROOT)
    (tmp_path / ".tidegate").mkdir()
    (tmp_path / ".tidegate" / "servers").symlink_to(ROOT / ".tidegate" / "servers")
    program = ROOT / "tools" / "practice_mariadb.py"
    for number in (signal.SIGINT, signal.SIGTERM):
        said = tmp_path / f"{number.name}.log"
        with said.open("wb") as log:
            server = subprocess.Popen(
                ["env", "--default-signal=INT", sys.executable, str(program), str(free_port())],
                env=os.environ | {"TIDEGATE_HOME": str(tmp_path)},
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
