"""Settings on a job's command line, on top of the pipeline file's."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.session.job import configured
from tidegate.errors import ConfigError

TEXT = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(TEXT + "apply: {poll_seconds: 3, parallel_tables: 7}\n")
    return tmp_path / "p.yaml"


def test_what_is_given_wins_over_a_setting_and_a_setting_over_the_file(file: Path) -> None:
    found = configured(file, "apply", ["poll_seconds=0.5", "run_for_seconds=60"], {"run_for_seconds": 70}).apply
    assert (found.poll_seconds, found.run_for_seconds, found.parallel_tables) == (0.5, 70, 7)
    assert configured(file, "maintain", ["purge_share=0.5"]).maintain.purge_share == 0.5


@pytest.mark.parametrize("setting", ["poll_seconds", "poll_seconds=soon", "pol_seconds=1"])
def test_a_setting_that_does_not_fit_is_refused(file: Path, setting: str) -> None:
    with pytest.raises(ConfigError, match="command line"):
        configured(file, "apply", [setting])
