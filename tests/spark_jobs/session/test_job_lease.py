"""A job of which there is one at a time: the second says who runs, before Spark starts, and is tried again."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from spark_jobs.session.job import sole
from tests.unit.copies.lakes import SCHEMA
from tidegate import config, tables
from tidegate.delta.leases.lease import Lease
from tidegate.delta.leases.lease_entry import LeaseEntry, Process, entry_name
from tidegate.delta.log import Change
from tidegate.delta.stores.store import LocalStore
from tidegate.delta.table.actions import metadata, protocol
from tidegate.errors import LakeRefused, Overtaken
from tidegate.home import EXIT_ERROR, EXIT_TRANSIENT
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import LEASES, take_lease
from tidegate.lake.standing.followed import FollowedChange, rows_of

JOBS = {"apply": [], "maintain": [], "rebuild": ["--table", "shop.a"]}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline; Spark that starts is an error."""
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path / "home"))
    for job in JOBS:
        monkeypatch.setattr(f"spark_jobs.{job}.application_session", None)
    found = tmp_path / "shop.yaml"
    found.write_text(
        f"pipeline: shop\nlake: {{path: {tmp_path / 'lake'}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['shop.*']}\n"
    )
    return found


@pytest.mark.parametrize("job", JOBS)
def test_a_second_one_says_who_runs_and_since_when(
    job: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = importlib.import_module(f"spark_jobs.{job}").main
    lake = LakeFiles(str(tmp_path / "lake"))
    with take_lease(lake, "shop", job, report=print):
        assert main(["--pipeline", str(file), *JOBS[job]]) == EXIT_TRANSIENT
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    place = f"{lake.root}/{LEASES}/shop.{job}"
    here = Process.this()
    assert line.startswith(f"tidegate: LeaseHeld: {place}: held by {job} of shop on {here.host}, ")
    assert f", pid {here.pid}, since 20" in line
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("job", JOBS)
def test_no_job_works_on_another_pipelines_lake(
    job: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Maintain would remove its bronze and its cuts, by a copy of the pipeline file under another name."""
    lake = LakeFiles(str(tmp_path / "lake"))
    control.append(lake, tables.FOLLOWED, rows_of(1, "elsewhere", [FollowedChange("one", "followed", 0)], None, 0))
    log = lake.log(tables.SEGMENTS.path)
    log.commit(log.state(), Change([protocol(()), metadata(SCHEMA, {})], "WRITE"))
    main = importlib.import_module(f"spark_jobs.{job}").main
    assert main(["--pipeline", str(file), *JOBS[job]]) == EXIT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tidegate: LakeRefused: {lake.root}: this lake belongs to pipeline elsewhere")


def test_other_jobs_and_other_pipelines_run_beside_it(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    with sole(lake, "shop", "apply"), sole(lake, "shop", "maintain"), sole(lake, "other", "apply") as lease:
        assert lease.epoch == 1


def test_one_that_was_killed_on_this_machine_keeps_nobody_waiting(tmp_path: Path) -> None:
    store = LocalStore(f"{tmp_path}/{LEASES}/shop.apply")
    gone = Process.this()._replace(start=1)
    store.create(entry_name(1), LeaseEntry(1, 1, "x", "apply of shop", gone, 30.0, 0, 0).encoded())
    with sole(LakeFiles(str(tmp_path)), "shop", "apply") as lease:
        assert lease.epoch == 2


def test_an_apply_without_its_lease_neither_begins_a_window_nor_publishes(file: Path, tmp_path: Path) -> None:
    from spark_jobs.window.application import Application

    lake = LakeFiles(str(tmp_path))
    with sole(lake, "shop", "apply") as lease:
        app = Application(None, config.load(file), lake, None, lease)  # type: ignore[arg-type]
        app.check_claim()
    for act in (app.check_claim, lambda: app.publish([])):
        with pytest.raises(Overtaken, match="the lease of apply of shop is lost"):
            act()


def test_a_lake_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    with pytest.raises(LakeRefused), sole(LakeFiles(str(tmp_path / "lake")), "shop", "apply"):
        pass


def test_in_an_object_store_a_request_for_a_lease_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline file may say otherwise."""
    seen = list[dict[str, str]]()

    def log_store(_: str, options: dict[str, str]) -> LocalStore:
        seen.append(options)
        return LocalStore(str(tmp_path))

    monkeypatch.setattr("tidegate.lake.jobs.leases.log_store", log_store)
    monkeypatch.setattr(Lease, "take", lambda *_, **__: None)
    take_lease(LakeFiles("s3://b/x", {"AWS_REGION": "r"}), "shop", "apply", report=print)
    take_lease(LakeFiles("s3://b/x", {"TIMEOUT": "9s"}), "shop", "apply", report=print)
    assert [options["timeout"] for options in seen] == ["5s", "9s"]
    assert seen[0]["aws_region"] == "r"
