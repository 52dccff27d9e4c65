"""`tidegate up` says that it ends: Airflow takes a while for it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate.cli.up import _optional, up
from tidegate.config import Pipeline
from tidegate.home import HOME_ENV
from tidegate.local.airflow import Airflow

PIPELINE = """
pipeline: p
lake: {path: x}
sources: {s: {conn_id: c, flavour: mysql}}
tables: {include: ['*.*']}
"""


class Slow:
    """In place of Airflow: somebody presses Ctrl-C while it starts."""

    port = 1

    def __init__(self, *_: Any) -> None:
        pass

    def start(self, *, keep: bool) -> None:
        assert not keep

    def wait_healthy(self, _: Any) -> None:
        raise KeyboardInterrupt

    def stop(self) -> None:
        print("stopped")


@pytest.mark.parametrize("closed", [False, True])
def test_ctrl_c_is_answered_before_airflow_has_ended(
    closed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(HOME_ENV, str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_C", "mysql://a:b@127.0.0.1:1/")
    monkeypatch.setattr("tidegate.local.airflow.Airflow", Slow)
    monkeypatch.setattr("tidegate.local.jars.at_hand", lambda _: nullcontext())
    monkeypatch.setattr("signal.signal", lambda *_: None)
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE)
    if closed:
        monkeypatch.setattr("sys.stderr", Closed())
    with pytest.raises(KeyboardInterrupt):
        up(str(file))
    said = capsys.readouterr()
    assert said.out.endswith("stopped\n")
    assert ("Airflow ends" in said.err) != closed


class Closed:
    """A terminal that is gone."""

    def write(self, _: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


@pytest.mark.parametrize(("hours", "runs"), [(0, False), (24, True)])
def test_up_lets_verify_run_by_itself_if_the_file_says_so(hours: int, runs: bool) -> None:
    pipeline = Pipeline.model_validate(yaml.safe_load(PIPELINE) | {"verify": {"each_table_hours": hours}})
    assert ("verify" in _optional(pipeline)) == runs


def test_ups_airflow_sends_lineage_where_the_terminal_says_and_takes_no_other_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", '{"type": "console"}')
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "True")
    monkeypatch.setenv("AIRFLOW__CELERY__BROKER_URL", "redis://elsewhere")
    environment = Airflow(tmp_path / "home", tmp_path, tmp_path, {})._environment
    assert environment["AIRFLOW__OPENLINEAGE__TRANSPORT"] == '{"type": "console"}'
    assert environment["AIRFLOW__CORE__LOAD_EXAMPLES"] == "False"
    assert "AIRFLOW__CELERY__BROKER_URL" not in environment
