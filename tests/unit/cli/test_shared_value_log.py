"""`tidegate check` names a pipeline whose value logs lie where another one has its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate import pipelines
from tidegate.cli.check import shared_log_lines
from tidegate.home import PIPELINES_ENV
from tidegate.mysql.checking.examination import SourceVerdict

FILE = """
pipeline: NAME
lake: {path: lakes/NAME}
sources: {SOURCE: {conn_id: NAME_db, flavour: mariadb}}
tables: {include: ['shop.*']}
capture: {value_log_path: PATH}
"""


@pytest.mark.parametrize(
    ("source", "path", "said"),
    [("main", "/value_log", True), ("second", "/value_log", False), ("main", "/value_log/shop", False)],
)
def test_a_value_log_in_the_place_of_another_pipelines_is_named(
    source: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, said: bool
) -> None:
    monkeypatch.setenv(PIPELINES_ENV, str(tmp_path))
    for name, of, folder in (("shop", source, path), ("crm", "main", "/value_log")):
        text = FILE.replace("NAME", name).replace("SOURCE", of).replace("PATH", folder)
        (tmp_path / f"{name}.yaml").write_text(text)
    lines = shared_log_lines(pipelines.load(tmp_path / "shop.yaml"))
    assert [(line.of, line.verdict) for line in lines] == [("main", SourceVerdict.CAUTION)] * said
    assert all("capture.value_log_path is pipeline crm's, which has a source main, too" in line.text for line in lines)
