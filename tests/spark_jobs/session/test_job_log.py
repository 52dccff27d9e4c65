"""A job's log: lines that Airflow's operator and a terminal tell apart, and no other way to write one."""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.session.job import failed
from spark_jobs.session.job_log import JobHandler, begin, tell
from tidegate.errors import LakeUnavailable
from tidegate.home import EXIT_TRANSIENT
from tidegate.log_lines import plain

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _log() -> Iterator[None]:
    begin()
    begin()
    yield
    for name in ("spark_jobs", "tidegate"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.NOTSET)
        logger.handlers[:] = [handler for handler in logger.handlers if not isinstance(handler, JobHandler)]


def test_each_kind_of_line_has_its_stream_and_its_beginning_and_comes_once(capsys: pytest.CaptureFixture[str]) -> None:
    tell("applied 1 window, 100 % of it")
    logging.getLogger("spark_jobs.window.waves.waves").warning("%s: a mark is left out: %s", "main", "no JSON")
    logging.getLogger("tidegate.lake.format.version").info("format %d", 3)
    assert failed(LakeUnavailable("no answer", where="s3://l")) == EXIT_TRANSIENT
    said = capsys.readouterr()
    assert said.out.splitlines() == ["applied 1 window, 100 % of it", "format 3"]
    assert said.err.splitlines() == [
        "tidegate: warning: main: a mark is left out: no JSON",
        "tidegate: LakeUnavailable: s3://l: no answer",
    ]


def test_as_json_each_line_is_whole_on_the_same_stream(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_LOG", "json")
    tell("applied 1 window")
    assert failed(LakeUnavailable("no answer", where="s3://l")) == EXIT_TRANSIENT
    said = capsys.readouterr()
    out, err = json.loads(said.out), json.loads(said.err)
    assert (out["level"], out["logger"], out["message"]) == ("info", "spark_jobs", "applied 1 window")
    assert (err["level"], err["error"], err["where"]) == ("error", "LakeUnavailable", "s3://l")
    assert plain(said.err.strip()) == "tidegate: LakeUnavailable: s3://l: no answer", "what the operator looks for"


@pytest.mark.parametrize("room", ["spark_jobs", "plugins", "dags", "include/tidegate/capture", "include/tidegate/lake"])
def test_what_runs_as_a_task_logs_and_prints_nothing(room: str) -> None:
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            prints = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            assert not prints, f"{path.relative_to(ROOT)}:{node.lineno}"
