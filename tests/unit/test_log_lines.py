"""Log lines as JSON: what each has, who else reads a job's lines, and a real JVM's."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from tidegate import log_lines
from tidegate.cli import main
from tidegate.errors import LakeUnavailable
from tidegate.home import EXIT_USAGE, LOG_ENV


@pytest.fixture
def _json(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(LOG_ENV, "json")
    yield
    for name in ("spark_jobs", "tidegate"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.NOTSET)
        logger.handlers[:] = [each for each in logger.handlers if not isinstance(each, log_lines.JsonHandler)]


def _record(message: str, *values: object, level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    return logging.getLogger("tidegate.t").makeRecord("tidegate.t", level, "f", 1, message, values, None, extra=extra)


def test_a_line_has_its_time_level_logger_and_the_place_of_the_work_at_hand() -> None:
    place = {"pipeline": "shop", "source": "main", "file": "binlog.000007", "position": 4711, "table": ""}
    with log_lines.known(lambda: place):
        cells = json.loads(log_lines.of_record(_record("%s \n ends", "it", level=logging.WARNING, table="shop.orders")))
    assert cells.pop("time")[-1] == "Z"
    assert cells == {
        "level": "warning",
        "logger": "tidegate.t",
        "message": "it \n ends",
        "pipeline": "shop",
        "source": "main",
        "file": "binlog.000007",
        "position": 4711,
        "table": "shop.orders",
    }
    assert json.loads(log_lines.of_record(_record("after"))).keys() == {"time", "level", "logger", "message"}


def test_the_time_is_utc_with_milliseconds() -> None:
    assert json.loads(log_lines.line("info", "l", "m", {}, 1_795_982_425.119))["time"] == "2026-11-29T20:00:25.119Z"


def test_a_stack_is_a_field_of_the_same_line() -> None:
    record = _record("it fails")
    try:
        int("why")
    except ValueError:
        record.exc_info = sys.exc_info()
    line = log_lines.of_record(record)
    assert "\n" not in line
    assert "ValueError: invalid literal" in json.loads(line)["stack"]


def test_an_error_says_its_class_its_place_and_what_a_person_does() -> None:
    error = LakeUnavailable("no answer", where="s3://l", remedy="check it")
    assert log_lines.of_error(error) == {"error": "LakeUnavailable", "where": "s3://l", "remedy": "check it"}


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("info", "applied 1 window"),
        ("warning", "tidegate: warning: applied 1 window"),
        ("error", "tidegate: applied 1 window"),
    ],
)
def test_who_reads_a_job_s_lines_reads_them_in_both_forms(level: str, shown: str) -> None:
    assert log_lines.plain(log_lines.line(level, "spark_jobs", "applied 1 window", {})) == shown
    for other in ("26/11/29 WARN x: y", '{"time": broken', '{"time": 1}', "", '{"a": 1}'):
        assert log_lines.plain(other) == other


@pytest.mark.usefixtures("_json")
def test_a_command_ends_with_one_json_line_and_the_same_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.run(["status", "no-such-pipeline"])
    (line,) = capsys.readouterr().err.splitlines()
    cells = json.loads(line)
    assert ended.value.code == EXIT_USAGE
    assert (cells["level"], cells["error"]) == ("error", "UsageError")
    assert "no-such-pipeline" in cells["message"]


def test_another_form_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(LOG_ENV, "jsn")
    with pytest.raises(SystemExit) as ended:
        main.run(["--help"])
    assert ended.value.code == EXIT_USAGE
    said = "tidegate: TIDEGATE_LOG: 'jsn' is no form of log lines; set it to json, or unset it\n"
    assert capsys.readouterr().err == said
