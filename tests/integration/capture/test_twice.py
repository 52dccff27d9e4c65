"""Two captures of one source: the second is told who captures; where both think to be alone, bronze stays whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.snapshots import patiently
from tests.support.captures import (
    Background,
    assert_equals_binlog,
    bronze_segments,
    capture_run,
    capture_to_end,
    capture_until_quiet,
    info_of,
    pipeline_for,
    pipeline_text,
    wait_for_bronze,
)
from tests.support.servers import FreshDatabase
from tidegate.capture.run import CaptureRun
from tidegate.capture.source_lease import SourceLease
from tidegate.errors import Fenced, LeaseHeld
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import LEASES, take_lease
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import BinlogReader, BinlogSource, binlog_run

pytestmark = pytest.mark.server
DUMPS = ("gtid", "position")


def elsewhere(server: Server, lake: Path, folder: Path) -> CaptureRun:
    """The same capture on another machine: it shares the lake and nothing else."""
    pipeline = pipeline_for(server, lake)
    source = pipeline.sources["one"].model_copy(update={"server_id": 777})
    pipeline = pipeline.model_copy(update={"sources": {"one": source}})
    return binlog_run(pipeline, "one", info_of(server), folder, on_first_start=lambda _facts, _position: None)


def test_a_second_capture_elsewhere_is_told_who_captures_and_goes_on_after_it(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    mariadb.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    with Background(capture_run(mariadb, lake)):
        wait_for_bronze(lake, lambda _: True)
        with pytest.raises(LeaseHeld) as told:
            elsewhere(mariadb, lake, tmp_path / "elsewhere").run(300)
        assert f"{LEASES}/one.capture: held by capture of one on " in str(told.value)
        assert not (tmp_path / "elsewhere").exists()
        mariadb.query(f"INSERT INTO `{database}`.t VALUES (1)")
    elsewhere(mariadb, lake, tmp_path / "elsewhere").run(300, idle_seconds=1)
    assert_equals_binlog(bronze_segments(lake), mariadb)


@contextmanager
def capturing(server: Server, file: Path, state: Path) -> Iterator[subprocess.Popen[str]]:
    """`tidegate capture` in a process of its own."""
    login = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}"
    argv = [str(Path(sys.executable).parent / "tidegate"), "capture", str(file), "--state-dir", str(state)]
    environment = os.environ | {"AIRFLOW_CONN_ONE": login, "TIDEGATE_HOME": str(state)}
    with subprocess.Popen(
        [*argv, "--run-for", "900"], env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_with_a_home_of_its_own_each_one_captures_and_the_other_takes_over_from_a_killed_one(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    file = tmp_path / "one.yaml"
    file.write_text(pipeline_text(mariadb, lake, land_seconds=0.1, heartbeat_seconds=0.5))
    mariadb.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    with capturing(mariadb, file, tmp_path / "home-a") as first:
        wait_for_bronze(lake, lambda _: True)
        with capturing(mariadb, file, tmp_path / "home-b") as second:
            assert second.wait(300) == 75
            assert second.stderr is not None
            said = second.stderr.read()
            assert "held by capture of one on " in said
            assert f"pid {first.pid}, since " in said
            assert len(said.strip().splitlines()) == 1
        assert first.poll() is None
        mariadb.query(f"INSERT INTO `{database}`.t VALUES (1)")
        wait_for_bronze(lake, lambda segments: any(b"t" in segment.payload for segment in segments))
        first.send_signal(signal.SIGKILL)
        first.wait()
        mariadb.query(f"INSERT INTO `{database}`.t VALUES (2)")
        seqs = bronze_segments(lake)[-1].seq
        with capturing(mariadb, file, tmp_path / "home-b") as second:
            wait_for_bronze(lake, lambda segments: segments[-1].seq > seqs)
            second.send_signal(signal.SIGTERM)
            assert second.wait(300) == 0
            assert second.stderr is not None
            assert "waiting for a sign of life" not in second.stderr.read(), "on its own machine it is known to be dead"
    assert_equals_binlog(bronze_segments(lake), mariadb)


def test_a_capture_that_lost_its_lease_takes_it_anew_before_it_lands(tmp_path: Path) -> None:
    """As after a lake's outage; and it lands no more once another capture has begun."""
    lake, lines = LakeFiles(str(tmp_path / "lake")), list[str]()
    with SourceLease(lake, "one", threading.Event()) as mine:
        mine.take()
        assert mine._lease is not None
        mine._lease._hold.until = 0.0
        mine.check()
        assert mine._lease.epoch == 2
        mine._lease.release()
        other = take_lease(lake, "one", "capture", report=lines.append)
        with pytest.raises(LeaseHeld):
            mine.check()
        other.release()


def both_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceLease, "_hold", lambda _: None)


def test_a_second_reader_of_one_value_log_is_fenced_by_it(
    mariadb: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_hold(monkeypatch)
    with Background(capture_run(mariadb, tmp_path / "lake")):
        wait_for_bronze(tmp_path / "lake", lambda _: True)
        with pytest.raises(Fenced, match="another process"):
            capture_run(mariadb, tmp_path / "lake").run(300)


@pytest.mark.parametrize("dump", DUMPS)
def test_what_another_capture_took_while_this_one_connected_is_not_lost(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dump: str
) -> None:
    """The server's facts are asked for first, then bronze is read."""
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    mariadb.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    capture_until_quiet(mariadb, lake, dump=dump)
    both_hold(monkeypatch)
    connect = BinlogSource.connect

    def slowly(source: BinlogSource) -> BinlogReader:
        reader = connect(source)
        monkeypatch.setattr(BinlogSource, "connect", connect)
        mariadb.query(f"INSERT INTO `{database}`.t VALUES (1)")
        mariadb.query("FLUSH BINARY LOGS")
        mariadb.query(f"INSERT INTO `{database}`.t VALUES (2)")
        capture_to_end(mariadb, lake, dump=dump)
        return reader

    monkeypatch.setattr(BinlogSource, "connect", slowly)
    late = binlog_run(pipeline_for(mariadb, lake, dump=dump), "one", info_of(mariadb), tmp_path / "elsewhere")
    late.run(300, idle_seconds=1)
    assert_equals_binlog(bronze_segments(lake), mariadb)


def test_of_two_that_both_hold_the_lease_one_is_fenced_by_bronze(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever commits second finds that bronze moved, and stops; bronze stays whole."""
    both_hold(monkeypatch)
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    mariadb.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    one = Background(capture_run(mariadb, lake))
    two = Background(elsewhere(mariadb, lake, tmp_path / "elsewhere"))
    with pytest.raises(Fenced, match=r"another writer|reader"), one:  # noqa: PT012  raised when the block ends
        wait_for_bronze(lake, lambda _: True)
        with two:
            further = iter(range(5))  # the other one goes on
            for number in patiently():
                mariadb.query(f"INSERT INTO `{database}`.t VALUES ({number})")
                one.thread.join(0.1)
                two.thread.join(0.1)
                if (one.error or two.error) and next(further, None) is None:
                    break
            assert isinstance(one.error, Fenced) != isinstance(two.error, Fenced), "one of the two"
            if two.error is not None:
                one.error, two.error = two.error, None
    assert_equals_binlog(bronze_segments(lake), mariadb)
