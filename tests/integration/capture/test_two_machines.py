"""A value log on which commits were acknowledged, and capture that goes on at another machine.

In:  a source that promises, two folders that stand for two machines.
Out: the other machine doesn't begin without a log that owes bronze something, unless a person says so; a log whose
     numbers bronze has passed is never taken for one that was landed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import typer.testing

from tests.integration.capture.test_any_source import SEGMENT_BYTES, assert_has_every_line, wrote
from tests.support.captures import bronze_segments
from tests.support.file_capture import file_run
from tests.support.file_source import FileReader, FileSource
from tidegate.capture.owing import Owing
from tidegate.capture.run import CaptureRun
from tidegate.capture.value_log.folder import value_log_folder
from tidegate.capture.value_log.log import ValueLog
from tidegate.cli.main import app
from tidegate.errors import LakeUnavailable, SourceRefused, StrayValueLog, StreamCorrupt
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.segments.segment import Segment
from tidegate.tables.actions_table import ACTIONS


def machine(tmp_path: Path, name: str, *, promises: bool = True) -> CaptureRun:
    run = file_run(tmp_path, lambda: FileSource(tmp_path / "lines", SEGMENT_BYTES, promises=promises))
    run.state_dir = tmp_path / name
    return run


def capture(run: CaptureRun) -> None:
    run.run(300, idle_seconds=0.5)


def killed(run: CaptureRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends without a word to the lake."""
    with monkeypatch.context() as patched:
        patched.setattr(Owing, "settle", lambda *_: None)
        capture(run)


def owing(tmp_path: Path) -> Owing:
    return Owing(LakeFiles(str(tmp_path / "lake")), "one")


def test_another_machine_waits_for_the_log_of_one_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote(tmp_path, 0, 20)
    killed(machine(tmp_path, "a"), monkeypatch)
    wrote(tmp_path, 20, 5)
    for _ in range(2):
        with pytest.raises(StrayValueLog, match=rf"{tmp_path}/a/.* has acknowledged commits that bronze may lack"):
            capture(machine(tmp_path, "b"))
    capture(machine(tmp_path, "a"))
    assert not owing(tmp_path).debts(), "all of it is landed"
    wrote(tmp_path, 25, 5)
    capture(machine(tmp_path, "b"))
    wrote(tmp_path, 30, 5)
    capture(machine(tmp_path, "a"))
    assert_has_every_line(tmp_path)


def test_a_start_that_the_source_refuses_owes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(tmp_path, 0, 20)
    with monkeypatch.context() as patched:
        patched.setattr(FileReader, "first_checkpoint", _refused)
        with pytest.raises(SourceRefused):
            capture(machine(tmp_path, "a"))
    assert not owing(tmp_path).debts()
    capture(machine(tmp_path, "b"))
    assert_has_every_line(tmp_path)


def test_a_run_that_its_source_ends_owes_nothing_once_all_is_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote(tmp_path, 0, 200)
    receive, taken = FileReader.receive, []

    def ends(reader: FileReader, seconds: float) -> list[Segment]:
        taken.append(receive(reader, seconds))
        if len(taken) > 150:
            raise StreamCorrupt("a bad byte", where="lines")
        return taken[-1]

    with monkeypatch.context() as patched:
        patched.setattr(FileReader, "receive", ends)
        with pytest.raises(StreamCorrupt, match="a bad byte"):
            capture(machine(tmp_path, "a"))
    assert sum(map(len, taken)) > 3
    assert not owing(tmp_path).debts()
    capture(machine(tmp_path, "b"))
    assert_has_every_line(tmp_path)


def test_a_run_whose_lake_fails_at_its_end_owes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(tmp_path, 0, 20)

    def away(*_: object) -> None:
        raise LakeUnavailable("it is away", remedy="wait")

    def ends(_reader: FileReader, _seconds: float) -> list[Segment]:
        patched.setattr(Bronze, "append", away)
        raise StreamCorrupt("a bad byte", where="lines")

    killed(machine(tmp_path, "a"), monkeypatch)
    wrote(tmp_path, 20, 20)
    log = ValueLog(value_log_folder((run := machine(tmp_path, "a")).pipeline, "one", run.state_dir))
    newest = bronze_segments(tmp_path / "lake")[-1]
    ahead = replace(newest, seq=newest.seq + 1, start_pos=newest.end_pos, prev_commit_ts=newest.resolved_ts)
    log.append(ahead)
    log.close()
    with monkeypatch.context() as patched:
        patched.setattr(FileReader, "receive", ends)
        patched.setattr(Bronze, "append", away)
        with pytest.raises(StreamCorrupt, match="a bad byte"):
            capture(machine(tmp_path, "a"))
    assert owing(tmp_path).debts()


def _refused(*_: object) -> object:
    raise SourceRefused("the password is another one", where="one", remedy="give it")


def test_a_log_that_moves_with_capture_is_the_same_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(tmp_path, 0, 20)
    killed(machine(tmp_path, "a"), monkeypatch)
    (tmp_path / "a").rename(tmp_path / "b")
    wrote(tmp_path, 20, 5)
    capture(machine(tmp_path, "b"))
    assert_has_every_line(tmp_path)
    assert not owing(tmp_path).debts()


def test_a_source_that_promises_nothing_goes_on_anywhere(tmp_path: Path) -> None:
    wrote(tmp_path, 0, 20)
    capture(machine(tmp_path, "a", promises=False))
    wrote(tmp_path, 20, 5)
    capture(machine(tmp_path, "b", promises=False))
    assert not (tmp_path / "lake" / "control" / "value_logs").exists()
    assert_has_every_line(tmp_path)


def test_a_log_whose_numbers_bronze_has_passed_is_told_from_one_that_was_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote(tmp_path, 0, 20)
    run = machine(tmp_path, "a")
    killed(run, monkeypatch)
    newest = bronze_segments(tmp_path / "lake")[-1]
    log = ValueLog(value_log_folder(run.pipeline, "one", run.state_dir))
    acknowledged = replace(newest, seq=newest.seq + 1, prev_commit_ts=newest.resolved_ts, payload_crc32c=1)
    log.append(acknowledged)
    log.sync()
    log.close()
    owing(tmp_path).forget(log.id)  # as before anybody remembered it
    wrote(tmp_path, 20, 20)
    capture(machine(tmp_path, "b"))
    assert bronze_segments(tmp_path / "lake")[-1].seq > acknowledged.seq
    for promises in (True, False):  # what was acknowledged stays so when semi_sync is turned off
        with pytest.raises(StrayValueLog, match=rf"the value log's segment {acknowledged.seq} ends at"):
            capture(machine(tmp_path, "a", promises=promises))
    (value_log_folder(run.pipeline, "one", run.state_dir) / "owes").unlink()
    capture(machine(tmp_path, "a", promises=False))
    assert list((tmp_path / "a" / "value_log" / "test").glob("one.left-*")), "nobody counts on it"
    assert_has_every_line(tmp_path)


def test_a_person_sees_which_log_owes_and_accepts_what_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(tmp_path, 0, 20)
    killed(machine(tmp_path, "a"), monkeypatch)
    (debt,) = owing(tmp_path).debts()
    file = tmp_path / "test.yaml"
    file.write_text(
        f"pipeline: test\nlake: {{path: {tmp_path / 'lake'}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*']}\n"
    )

    def said(*arguments: str) -> str:
        found = typer.testing.CliRunner().invoke(app, ["vlog", "owed", str(file), *arguments])
        assert found.exit_code == 0, found.output
        return found.output

    assert debt.log in said()
    assert f"{tmp_path}/a/value_log/test/one" in said()
    other = tmp_path / "copy.yaml"
    other.write_text(file.read_text().replace("pipeline: test", "pipeline: copy"))
    refused = typer.testing.CliRunner().invoke(app, ["vlog", "owed", str(other), "--forget", debt.log])
    assert "this lake belongs to pipeline test" in str(refused.exception)
    assert [known.log for known in owing(tmp_path).debts()] == [debt.log]
    told = said("--forget", debt.log)
    assert "is lost" in told
    rows = control.read(LakeFiles(str(tmp_path / "lake")), ACTIONS).to_pylist()
    assert {(row["action"], row["outcome"]) for row in rows} == {("accept", "begun"), ("accept", "done")}
    assert "no value log owes" in said()
    wrote(tmp_path, 20, 5)
    capture(machine(tmp_path, "b"))
    assert_has_every_line(tmp_path)


def test_nothing_is_accepted_as_lost_while_another_machine_may_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gap would get the numbers of segments that the other log has, and nobody could land them any more."""
    wrote(tmp_path, 0, 20)
    killed(machine(tmp_path, "a"), monkeypatch)
    before = len(bronze_segments(tmp_path / "lake"))
    file = tmp_path / "test.yaml"
    file.write_text(
        f"pipeline: test\nlake: {{path: {tmp_path / 'lake'}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*']}\n"
    )
    monkeypatch.setenv("AIRFLOW_CONN_ONE", "mysql://u:p@127.0.0.1:1/")
    for options in ([], ["--lost"]):
        found = typer.testing.CliRunner().invoke(
            app, ["accept", str(file), "one", *options, "--state-dir", str(tmp_path / "b")]
        )
        assert "has acknowledged commits that bronze may lack" in f"{found.output}{found.exception}"
        assert isinstance(found.exception, StrayValueLog)
    assert len(bronze_segments(tmp_path / "lake")) == before


def test_without_the_lake_only_a_log_that_it_knows_may_acknowledge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ValueLog(tmp_path / "log")
    lake = LakeFiles(str(tmp_path / "lake"))

    def away(_self: Owing) -> list[object]:
        raise LakeUnavailable("it is away", remedy="wait")

    with monkeypatch.context() as patched:
        patched.setattr(Owing, "debts", away)
        with pytest.raises(LakeUnavailable):
            Owing(lake, "one").begin(log)
    Owing(lake, "one").begin(log)
    with monkeypatch.context() as patched:
        patched.setattr(Owing, "debts", away)
        Owing(lake, "one").begin(log)
    with monkeypatch.context() as patched:
        patched.setattr(Owing, "debts", away)
        Owing(lake, "one").settle(log)  # the lake may count on it still
        Owing(lake, "one").begin(log)
    Owing(lake, "one").settle(log)
    assert not Owing(lake, "one").debts()
    log.close()


def test_of_two_logs_that_begin_at_once_one_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One slept, or had no lease, between its look and its word in the lake."""
    logs = [ValueLog(tmp_path / name) for name in "ab"]
    lake = LakeFiles(str(tmp_path / "lake"))
    sleeps = Owing(lake, "one")
    create = sleeps._store.create

    def late(name: str, data: bytes) -> bool:
        Owing(lake, "one").begin(logs[1])
        return create(name, data)

    monkeypatch.setattr(sleeps._store, "create", late)
    with pytest.raises(StrayValueLog, match=logs[1].id):
        sleeps.begin(logs[0])
    assert [debt.log for debt in Owing(lake, "one").debts()] == [logs[1].id]
    for log in logs:
        log.close()
