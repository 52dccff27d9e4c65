"""`tidegate snapshot run --follow` while its source is down: it is there when the source is again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer

from tests.support.servers import ROOT
from tidegate.cli import snapshot
from tidegate.config import Pipeline
from tidegate.home import EXIT_INTERRUPTED
from tidegate.lake.files import LakeFiles
from tidegate.pipelines import load
from tidegate.snapshot.progress.requests import request

TEXT = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"


def test_a_reader_that_follows_tries_a_source_that_is_down_again(tmp_path: Path) -> None:
    file, lake = tmp_path / "p.yaml", LakeFiles(str(tmp_path / "lake"))
    text = f"pipeline: p\nlake: {{path: {lake.root}}}\nsources: {{s: {{conn_id: down, flavour: mysql}}}}\n"
    file.write_text(f"{text}tables: {{include: ['d.*']}}\n")
    request(lake, "p", [("s", "d", "t")])
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # it doesn't listen
        port = nobody.getsockname()[1]
        connection = {"conn_type": "mysql", "host": "127.0.0.1", "port": port, "login": "a", "password": "b"}
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "tidegate"), "snapshot", "run", str(file), "--follow"],
            env=os.environ | {"TIDEGATE_HOME": str(ROOT), "AIRFLOW_CONN_DOWN": json.dumps(connection)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        lines = []
        while not lines or "until it passes" not in lines[-1]:
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        assert "connection refused" in lines[-1]
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=120)
    assert (process.returncode, rest) == (EXIT_INTERRUPTED, "")


class Idle:
    """Work of which there is none."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.looks = 0

    def open(self) -> list[object]:
        self.looks += 1
        assert self.looks == 1, "the signal got lost"
        return []

    def ask(self) -> list[object]:
        return []


@pytest.mark.parametrize(
    "changed",
    [TEXT.replace("'d.*'", "'e.*'"), f"{TEXT}snapshot: {{parallel: 1}}\n", f"{TEXT}apply: {{zero_dates: error}}\n"],
)
def test_a_signal_that_comes_while_a_changed_pipeline_file_is_taken_up_counts(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    begun = list[Idle]()

    def work(pipeline: str) -> tuple[Pipeline, Idle]:
        loaded = load(Path(pipeline))
        if begun:
            signal.raise_signal(signal.SIGTERM)
        else:
            file.write_text(changed)
        begun.append(Idle())
        return loaded, begun[-1]

    monkeypatch.setattr(snapshot, "_work", work)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with pytest.raises(typer.Exit) as ended:
            snapshot.run(str(file), follow=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (ended.value.exit_code, len(begun)) == (EXIT_INTERRUPTED, 2)
