"""Two applies with homes of their own: one works, the other says who it is, and follows a killed one at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.road import Road
from tests.support.servers import ROOT, FreshDatabase
from tidegate.lake.jobs.lease_wishes import wait_for_lease
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def other_home(tmp_path: Path) -> Path:
    """A folder from which jobs can be submitted, as on another machine."""
    home = tmp_path / "home"
    (home / ".tidegate").mkdir(parents=True)
    (home / "spark_jobs").symlink_to(ROOT / "spark_jobs")
    (home / ".tidegate" / "jars").symlink_to(ROOT / ".tidegate" / "jars")
    return home


@contextmanager
def applying(file: Path, home: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`tidegate apply` and all that it starts, killed in the end."""
    argv = [str(Path(sys.executable).parent / "tidegate"), "apply", str(file), *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = os.environ | {"TIDEGATE_HOME": str(home)}
    with subprocess.Popen(argv, env=environment, text=True, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def test_one_works_the_other_says_who_and_follows_a_killed_one_at_once(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, other_home: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "CREATE TABLE t (a INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
    )
    road.capture()
    with applying(road.file, ROOT, "--mode", "micro_batch", "--run-for", "600") as first:
        assert first.stdout is not None
        assert any(line.startswith("silver is complete") for line in first.stdout)
        with applying(road.file, other_home) as second:
            said, error = second.communicate(timeout=900)
        assert second.returncode == 75, said
        (line,) = [line for line in error.splitlines() if line.startswith("tidegate: ")]
        assert "control/leases/road.apply: held by apply of road on " in line
        assert first.poll() is None
        kill(first)
        first.wait()
    mariadb.query(f"INSERT INTO {database}.t VALUES (2)")
    road.capture()
    began = time.monotonic()
    with applying(road.file, other_home) as third:
        said, error = third.communicate(timeout=900)
    assert third.returncode == 0, error
    assert "waiting for a sign of life" not in said
    print(f"{time.monotonic() - began:.1f} s")
    assert road.assert_equal() == {"t": 2}


def test_a_loop_ends_for_a_waiter(mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path) -> None:
    database, lines = fresh_database(mariadb), list[str]()
    road = Road.begun(mariadb, tmp_path, database, "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    road.capture()
    with applying(road.file, ROOT, "--mode", "micro_batch", "--run-for", "600") as loop:
        assert loop.stdout is not None
        assert any(line.startswith("silver is complete") for line in loop.stdout)
        with wait_for_lease(road.lake, "road", "apply", 60, report=lines.append):
            said, error = loop.communicate(timeout=60)
            assert (loop.returncode, error) == (0, ""), error
    assert "somebody waits for apply's lease" in said
    assert lines[0].endswith("; it ends after its window")
    assert road.assert_equal() == {"t": 1}
