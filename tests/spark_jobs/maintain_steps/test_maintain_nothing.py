"""Maintain on a lake without anything says so in one line, and starts no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.maintain import main
from tidegate.home import EXIT_OK

TEXT = """
pipeline: shop
lake: {{path: {lake}}}
sources: {{main: {{conn_id: c, flavour: mysql}}}}
tables: {{include: ["shop.*"]}}
"""


def test_an_empty_lake_has_nothing_to_maintain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, lake = tmp_path / "shop.yaml", tmp_path / "lake"
    file.write_text(TEXT.format(lake=lake))
    assert main(["--pipeline", str(file)]) == EXIT_OK
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"nothing to maintain: {lake} has no bronze and no silver yet")
    assert "shop__capture and shop__apply" in line
