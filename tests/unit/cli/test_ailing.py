"""A part of Airflow that ended is said once, after a while, and once more when it is back."""

from __future__ import annotations

import itertools
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tidegate.limits import UP_AILING_SECONDS
from tidegate.local.ailing import Ailing
from tidegate.local.airflow import Airflow


def test_a_part_is_named_once_it_has_been_silent_for_long() -> None:
    watched = Ailing("a.log")
    assert not [*watched.look([], 0.0)]
    assert not [*watched.look(["scheduler", "triggerer"], 10.0)]
    assert not [*watched.look(["scheduler"], 9.0 + UP_AILING_SECONDS)]
    assert not [*watched.look(["scheduler", "triggerer"], 9.5 + UP_AILING_SECONDS)], "the triggerer had come back"
    (line,) = watched.look(["scheduler", "triggerer"], 10.0 + UP_AILING_SECONDS)
    assert "scheduler hasn't answered for 120 s" in line
    assert "a.log" in line
    assert not [*watched.look(["scheduler"], 50.0 + UP_AILING_SECONDS)]
    assert [*watched.look([], 60.0 + UP_AILING_SECONDS)] == ["Airflow's scheduler answers again"]
    assert not [*watched.look(["scheduler"], 70.0 + UP_AILING_SECONDS)], "counted anew"


def test_parts_that_fall_silent_together_are_one_line() -> None:
    watched = Ailing("a.log")
    parts = ["scheduler", "metadatabase"]
    assert not [*watched.look(parts, 0.0)]
    (line,) = watched.look(parts, UP_AILING_SECONDS)
    assert "Airflow's metadatabase, scheduler haven't answered for 120 s" in line
    assert [*watched.look([], 1.0 + UP_AILING_SECONDS)] == ["Airflow's metadatabase, scheduler answer again"]


@pytest.mark.parametrize("answer", [b'{"metada', b"<html>starting</html>", b"null"])
def test_an_answer_that_is_broken_is_none_and_ends_nothing(tmp_path: Path, answer: bytes) -> None:
    """`up` asks for weeks: one answer that broke off must not take Airflow down."""

    class Broken(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer) + 10 * answer.startswith(b"{")))
            self.end_headers()
            self.wfile.write(answer)

    with HTTPServer(("127.0.0.1", 0), Broken) as server:
        asked = Thread(target=server.handle_request)
        asked.start()
        airflow = Airflow(tmp_path, tmp_path, tmp_path, {}, server.server_port)
        assert airflow.ailing() == ["metadatabase", "scheduler", "triggerer", "dag_processor"]
        asked.join()


def test_a_slow_start_says_what_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    airflow = Airflow(tmp_path, tmp_path, tmp_path, {}, 1)
    answers = [["scheduler"]] * 3 + [[]]
    clock = itertools.count(0.0, 20.0)
    monkeypatch.setattr(Airflow, "check_running", lambda _: None)
    monkeypatch.setattr(Airflow, "ailing", lambda _: answers.pop(0))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("time.sleep", lambda _: None)
    said = list[str]()
    airflow.wait_healthy(said.append)
    assert said == ["Airflow starts, since 40 s; still without an answer: scheduler"]
