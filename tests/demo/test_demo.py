"""`make demo`, as a user types it, but in a folder of its own: it ends, proves equality, and leaves nothing running.

In:  a root made of links to this checkout, with this checkout's downloads.
Out: exit code 0, the proof, queries that can be pasted and run; no process left.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.seeds import LONG
from tests.support.servers import ROOT
from tidegate.local import jars, mariadb
from tidegate.local.ivy import locked
from tidegate.local.processes import marked

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.airflow, pytest.mark.timeout(3600)]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    jars.ensure(ROOT)
    mariadb.install(ROOT)
    for name in ("include", "dags", "plugins", "spark_jobs", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    state = tmp_path / ".tidegate"
    state.mkdir()
    for name in ("jars", "servers", "download", "ivy"):
        if (ROOT / ".tidegate" / name).exists():
            (state / name).symlink_to(ROOT / ".tidegate" / name)
    with locked(state / "spark.lock"):  # no archive of classes is made beside it: that has its own test
        yield tmp_path


def start(root: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(Path(sys.executable).parent / "tidegate"), "demo", *arguments],
        env=os.environ | {"TIDEGATE_HOME": str(root)},
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def running(root: Path) -> list[str]:
    """Servers of the demo and processes of its Airflow that still run."""
    found = [f"Airflow {pid}" for pid in marked(f"AIRFLOW_HOME={root / '.tidegate' / 'airflow'}")]
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if entry.name.isdigit() and f"--datadir={root}".encode() in command:
            found.append(f"MariaDB {entry.name}")
    return found


@pytest.mark.parametrize("run", [pytest.param(1, id="tidegate query"), pytest.param(2, id="Spark SQL, too")])
def test_demo_ends_with_every_table_equal_and_nothing_left_running(root: Path, run: int) -> None:
    """run: how many of the commands that it prints for a look at its lake. Spark SQL takes two JVMs."""
    process = start(root, "--seconds", "12")
    told, _ = process.communicate(timeout=1800)
    assert process.returncode == 0, told
    assert "silver equals the source" in told
    equal = re.findall(r"(shop\.\w+)\s+│\s+(\d+) │\s+(\d+) │ ([0-9a-f]{12})\s+│ ([0-9a-f]{12})\s+│ equal", told)
    assert len(equal) >= 10, told
    for name, source_rows, silver_rows, source_hash, silver_hash in equal:
        assert (source_rows, source_hash) == (silver_rows, silver_hash), name
        assert int(source_rows) > 0, name
    assert {"shop.page_views", "shop.reviews", "shop.orders"} <= {name for name, *_ in equal}
    recorded = DeltaTable(root / ".tidegate" / "demo" / "lake" / "control" / "verification").to_pyarrow_table()
    assert set(recorded["outcome"].to_pylist()) <= {"", "equal", "dropped"}, "the page shows when it was verified"
    assert recorded.num_rows >= len(equal)
    assert running(root) == []
    passwords = (root / ".tidegate" / "airflow" / "passwords.json").stat()
    assert passwords.st_mode & 0o077 == 0, "others may read the password"
    commands = [line for line in told.splitlines() if "count(*) AS orders" in line]
    assert len(commands) == 2, "one of tidegate's own, one for Spark SQL"
    for command in commands[:run]:
        done = subprocess.run(
            command,
            shell=True,
            cwd=root,
            env=os.environ | {"TIDEGATE_HOME": str(root)},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        assert "shipped" in done.stdout, f"{command}\n{done.stdout}{done.stderr}"
    if LONG:  # every version of each table, by all readers; a Spark of its own reads for minutes
        command = [sys.executable, "-m", "tests.readers", str(root / ".tidegate" / "demo" / "lake"), "--history"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def started(root: Path, stage: str, count: int) -> subprocess.Popen[str]:
    """A demo of which so much runs already."""
    process = start(root, "--seconds", "60")
    end = time.monotonic() + 600
    while sum(name.startswith(stage) for name in running(root)) < count and time.monotonic() < end:
        time.sleep(0.1)
    assert process.poll() is None
    return process


def ended(process: subprocess.Popen[str], root: Path) -> None:
    """By SIGTERM: it ends what it started."""
    process.send_signal(signal.SIGTERM)
    told, _ = process.communicate(timeout=300)
    assert running(root) == []
    assert process.returncode == 1, told
    assert "Traceback" not in told


def test_demo_that_is_ended_by_sigterm_ends_its_server(root: Path) -> None:
    ended(started(root, "MariaDB", 1), root)


def test_a_second_demo_is_refused_in_one_line_and_the_first_ends_its_airflow(root: Path) -> None:
    process = started(root, "Airflow", 5)
    second = start(root, "--seconds", "60")
    told, _ = second.communicate(timeout=300)
    ended(process, root)  # before anything is judged: it must not live on beside other tests
    assert second.returncode == 2
    assert f"a demo runs already: process {process.pid}" in told
    assert len(told.splitlines()) == 1
