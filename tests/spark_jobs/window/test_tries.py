"""Which failures pass by themselves, and how often others may come: real exceptions of Java, Python and delta-rs."""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from spark_jobs.session.background import BackgroundSession
from spark_jobs.session.failures import TablesFailed, first_line, passes
from spark_jobs.window.application import Application
from spark_jobs.window.standing import tries
from spark_jobs.window.standing.standings import line_of
from spark_jobs.window.standing.tries import Tries, release_after_a_pause
from tests.kit.spark import no_spark
from tidegate import config, tables
from tidegate.errors import CommitConflict, LakeUnavailable, SchemaMismatch, Transient, Unexpected
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.limits import WINDOW_ATTEMPTS_MAX
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State


def _met(call: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as found:
        call()
    assert isinstance(found.value, Exception)
    return found.value


@pytest.mark.spark
def test_what_javas_exceptions_say_of_passing_is_read_from_their_classes(spark: SparkSession, tmp_path: Path) -> None:
    jvm: Any = spark._jvm
    works = LakeFiles(str(tmp_path))
    (tmp_path / "file").touch()
    broken = LakeFiles(str(tmp_path / "file"))
    refused = _met(lambda: jvm.java.net.Socket("127.0.0.1", 1))
    assert passes(refused, works), "a store that isn't reached"
    lost = _met(lambda: jvm.java.io.FileInputStream("/nowhere"))
    assert not passes(lost, works), "its file is gone, and the lake can be written"
    assert passes(lost, broken), "nothing can be written at this moment"
    unknown = _met(lambda: spark.sql("SELECT nothing FROM nowhere").collect())
    assert not passes(unknown, broken)
    stopped = _met(lambda: jvm.org.apache.spark.util.Utils.classForName("no.such.Class", True, True))
    assert not passes(stopped, works)


def test_what_pythons_exceptions_say_of_passing(tmp_path: Path) -> None:
    works = LakeFiles(str(tmp_path))
    (tmp_path / "file").touch()
    broken = LakeFiles(str(tmp_path / "file"))
    assert passes(OSError(errno.ENOSPC, "No space left on device"), works)
    assert passes(ConnectionRefusedError(111, "Connection refused"), works), "the JVM is gone"
    assert passes(MemoryError(), works)
    assert passes(CommitConflict("another commit"), works)
    assert not passes(SchemaMismatch("no"), broken)
    too_long = _met((tmp_path / ("x" * 300)).mkdir)
    assert (passes(too_long, works), passes(too_long, broken)) == (False, True)
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("no JSON")
    assert not passes(_met(works.log("t").state), works)
    assert not passes(KeyError("_tg_op"), broken)


def _flip(file: Path) -> None:
    """Of a page in the middle; the footer is whole."""
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(byte ^ 0xFF for byte in data[middle : middle + 64])
    file.write_bytes(data)


def _shorten(file: Path) -> None:
    pq.write_table(pq.read_table(file).slice(0, 3), file)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Application:
    _sleep_by(monkeypatch, lambda _seconds: None)
    text = (
        f"pipeline: shop\nlake: {{path: {tmp_path}}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\n"
        "tables: {include: ['d.*']}\n"
    )
    lake = LakeFiles(str(tmp_path))
    return Application(BackgroundSession(no_spark), config.parse(text, where="shop.yaml"), lake, BronzeIndex(lake))


def _held(app: Application) -> dict[str, int]:
    """How often each was held in a row, of those that are."""
    return {name: state.times for name, state in app.states.items() if state.state == State.HELD}


def test_tables_that_fail_in_each_try_are_held_together_and_tried_again_after_longer_pauses(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"d.t{number}" for number in range(40)]
    tries = Tries(app, 9)
    for _ in range(WINDOW_ATTEMPTS_MAX - 1):
        tries.note(TablesFailed(dict.fromkeys([*names, "d.once"], KeyError("k"))))
        assert not _held(app)
    tries.note(TablesFailed(dict.fromkeys(names, KeyError("k"))))
    assert _held(app) == dict.fromkeys(names, 1), "a table that failed twice may go on"
    release_after_a_pause(app)
    assert len(_held(app)) == 40, "not yet"
    monkeypatch.setattr("tidegate.standing.step.PAUSE_MIN", timedelta())
    release_after_a_pause(app)
    assert {state.state for state in app.states.values()} == {State.RELEASED}
    again = Tries(app, 12)
    for _ in range(WINDOW_ATTEMPTS_MAX):
        again.note(TablesFailed({"d.t3": KeyError("k")}))
    assert _held(app) == {"d.t3": 2}
    line = line_of(app, "d.t3", app.states["d.t3"])
    assert line.count("tidegate release shop d.t3") == 1, "the way out is said, and once"
    app.record_states({"d.t3": Standing(State.RELEASED)})  # by a person: it counts from the beginning
    once_more = Tries(app, 15)
    for _ in range(WINDOW_ATTEMPTS_MAX):
        once_more.note(TablesFailed({"d.t3": KeyError("k")}))
    assert _held(app) == {"d.t3": 1}


def test_what_passes_holds_no_table_however_often_it_comes(app: Application) -> None:
    tries = Tries(app, 9)
    for _ in range(WINDOW_ATTEMPTS_MAX - 1):
        tries.note(TablesFailed({"d.t": ConnectionResetError("reset"), "d.u": KeyError("k")}))
    tries.note(TablesFailed({"d.t": ConnectionResetError("reset"), "d.u": KeyError("k")}))
    assert _held(app) == {"d.u": 1}
    failed = TablesFailed({"d.t": ConnectionResetError("reset")})
    for _ in range(WINDOW_ATTEMPTS_MAX - 1):
        tries.note(failed)
    with pytest.raises(LakeUnavailable, match=r"d\.t: reset"):
        tries.note(failed)
    assert _held(app) == {"d.u": 1}


def test_what_a_tables_own_values_do_is_not_tried_while_others_wait(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = list[float]()
    _sleep_by(monkeypatch, slept.append)
    Tries(app, 9).note(TablesFailed({"d.t": OverflowError("date value out of range")}))
    assert _held(app) == {"d.t": 1}
    assert "unexpected OverflowError: date value out of range" in app.states["d.t"].reason
    assert not slept
    tries = Tries(app, 9)
    tries.note(TablesFailed({"d.u": OverflowError("date value out of range"), "d.v": KeyError("k")}))
    assert _held(app) == {"d.t": 1, "d.u": 1}
    assert slept, "something may pass"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (Path.unlink, "a data file is gone"),
        (lambda file: file.write_bytes(b"damaged"), "a data file can't be read"),
        (_flip, "a data file can't be read"),
        (_shorten, "a data file has 3 rows, the log says 40000"),
        (lambda _: None, ""),
    ],
)
@pytest.mark.parametrize("history", [False, True])
def test_a_damaged_file_is_named_with_its_remedy_whichever_writer_met_it(
    app: Application, tmp_path: Path, spoil: Callable[[Path], object], why: str, history: bool
) -> None:
    if history:
        kept = app.pipeline.tables.model_copy(update={"history": ("d.t",)})
        app.pipeline = app.pipeline.model_copy(update={"tables": kept})
    folder = tmp_path / tables.silver_path("d", "t")
    rows = pa.table({"id": pa.array(range(40_000), pa.int32()), "v": [f"text {n * 7919}" for n in range(40_000)]})
    for _ in range(2):
        write_deltalake(folder, rows, mode="append")
    spoil(sorted(folder.glob("*.parquet"))[1])
    tries = Tries(app, 9)
    for _ in range(WINDOW_ATTEMPTS_MAX):
        tries.note(TablesFailed({"d.t": KeyError("Job aborted due to stage failure")}))
    standing = app.states["d.t"]
    line = line_of(app, "d.t", standing)
    if not why:
        assert (standing.cause, standing.times) == (Cause.WRITE_FAILED, 1)
        return
    assert why in standing.reason
    assert "put that file back" in standing.reason
    assert (standing.state, standing.releasable, standing.lacks_rows) == (State.HELD, True, True)
    assert ("rebuild shop d.t --swap" if history else "snapshot start shop d.t") in line


def test_an_error_of_no_table_ends_the_job_in_one_line_that_says_whether_to_try_again(
    app: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    for error, kind in ((OSError(errno.ENOSPC, "full"), Transient), (KeyError("x"), Unexpected)):
        tries = Tries(app, 9)
        for _ in range(WINDOW_ATTEMPTS_MAX - 1):
            tries.note(error)
        with pytest.raises(kind) as raised:
            tries.note(error)
        assert "\n" not in str(raised.value)
        assert first_line(error) in str(raised.value)
    assert "KeyError" in capsys.readouterr().err, "with its trace, to report"
    with pytest.raises(SchemaMismatch):
        Tries(app, 9).note(SchemaMismatch("said at once"))


def _sleep_by(monkeypatch: pytest.MonkeyPatch, sleep: Callable[[float], None]) -> None:
    """Between tries alone: threads that earlier tests left sleep as ever."""
    monkeypatch.setattr(tries, "time", SimpleNamespace(sleep=sleep))
