"""`tidegate top`: a screen of a pipeline, however high the terminal is."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidegate import config, tables
from tidegate.cli.main import app
from tidegate.cli.top import bars, screen
from tidegate.commit_ts import compose
from tidegate.lake import control
from tidegate.lake.files import LakeFiles


def written(folder: Path) -> tuple[config.Pipeline, LakeFiles]:
    """A pipeline whose source nobody can reach, and a lake with a cut of thirty tables."""
    text = (
        f"pipeline: shop\nlake: {{path: {folder / 'lake'}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*']}\n"
    )
    (folder / "shop.yaml").write_text(text)
    lake, now = LakeFiles(str(folder / "lake")), time.time()
    cut = compose(int((now - 3) * 1000))
    names = ["", *(f"shop.t{number:02}" for number in range(30))]
    rows = [
        {
            "cut_ts": cut,
            "table": name,
            "delta_version": 1,
            "applied_ts": cut,
            "state": "active",
            "published_at": datetime.fromtimestamp(now - 1, UTC),
        }
        for name in names
    ]
    control.append(lake, tables.CUTS, rows)
    return config.parse(text, where="shop.yaml"), lake


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ONE", "mysql://root:x@127.0.0.1:1/")


def test_a_screen_says_state_lag_sources_and_tables_and_fits(tmp_path: Path) -> None:
    pipeline, lake = written(tmp_path)
    for rows in (12, 24, 500):
        lines = screen(pipeline, lake, rows, 80)
        assert len(lines) <= rows
        assert max(map(len, lines)) <= 80
        assert lines[0].startswith("shop: current, ")
        assert lines[1].startswith("Silver is ")
        assert any(line.startswith("lag ") for line in lines)
        assert any(line.startswith("one ") and "127.0.0.1" in line for line in lines), "why it wasn't asked"
    assert "shop.t29" in lines[-1], "all tables are on a screen that is high enough"
    assert screen(pipeline, lake, 24, 80)[-1].startswith("and "), "else it says how many more"


def test_a_lake_that_cant_be_read_is_said_and_ends_nothing(tmp_path: Path) -> None:
    pipeline, lake = written(tmp_path)
    log = tmp_path / "lake" / tables.CUTS.path / "_delta_log" / f"{0:020}.json"
    log.write_text("{torn")
    assert screen(pipeline, LakeFiles(lake.root), 24, 80)[0].startswith("shop: unreadable, ")


def test_without_a_terminal_it_prints_a_screen(tmp_path: Path) -> None:
    written(tmp_path)
    result = CliRunner().invoke(app, ["top", str(tmp_path / "shop.yaml")])
    assert (result.exit_code, result.output.count("shop.t")) == (0, 30), result.output


def test_a_bar_is_as_high_as_its_share_of_the_highest() -> None:
    assert bars([0, 1, 2, None, 7]) == "▁▂▃ █"
    assert bars([None, 0, 0]) == " ▁▁"
    assert bars([]) == ""
