"""`tidegate capture --run-for`: a run that is too short to prove that its server is quiet says so, by name.

A Pump and a changefeed say at the first look that they are quiet.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidegate import pipelines
from tidegate.cli.main import app

FILE = """
pipeline: shop
lake: {path: lake}
sources: {one: SOURCE}
tables: {include: ['shop.*']}
capture: {heartbeat_seconds: 2, run_for_seconds: 60}
"""
SERVER = "{conn_id: shop_db, flavour: mariadb}"
FEED = "{flavour: ticdc, path: feed, protocol: csv, time_zone: UTC}"
PUMP = "{flavour: tidb, conn_id: shop_db, listen: ['unix:pump.sock']}"


class Run:
    """A capture that only says how long it is to run."""

    seconds = -1.0

    def run(self, run_for_seconds: float, *_: object) -> str:
        Run.seconds = run_for_seconds
        return "captured"


def warnings(
    source: str, options: tuple[str, ...], seconds: float, patch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> list[str]:
    """The lines of a run of so many seconds."""
    file = Path("shop.yaml")
    file.write_text(FILE.replace("SOURCE", source))
    patch.setattr(pipelines, "capture_run", lambda *_, **__: Run())
    caplog.set_level(logging.WARNING)
    done = CliRunner().invoke(app, ["capture", str(file), *options])
    assert (done.exit_code, Run.seconds) == (0, seconds), done.output
    return [record.getMessage() for record in caplog.records if record.name == "tidegate.cli.capture"]


@pytest.mark.parametrize(
    ("options", "seconds", "warned"),
    [
        (("--run-for", "7.5"), 7.5, True),
        (("--run-for", "0"), 0, True),
        (("--run-for", "7.5", "--idle", "1"), 7.5, True),
        (("--run-for", "8"), 8, False),
        ((), 60, False),
    ],
)
def test_a_run_that_is_too_short_to_prove_quiet_says_so(
    options: tuple[str, ...],
    seconds: float,
    warned: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = warnings(SERVER, options, seconds, monkeypatch, caplog)
    assert len(lines) == warned
    for line in lines:
        assert line.startswith(f"one: a run of {seconds:g} s never proves that its source is quiet: that takes 4 heart")
        assert line.endswith("raise --run-for, or lower capture.heartbeat_seconds")


@pytest.mark.parametrize("source", [FEED, PUMP])
def test_a_source_that_no_heartbeat_proves_isnt_asked_for_some(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert warnings(source, ("--run-for", "1"), 1, monkeypatch, caplog) == []
