"""`tidegate lake upgrade`, and what `tidegate status` says of a lake's format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer.testing

from tests.lakes.archive import Recorded, files_in, recorded
from tidegate.cli.main import app as command_line
from tidegate.errors import LeaseHeld
from tidegate.lake.format.version import format_of
from tidegate.lake.jobs.leases import take_lease

SHOP = next(case for case in recorded() if case.folder.name.startswith("held_events"))


def _run(*arguments: str) -> typer.testing.Result:
    return typer.testing.CliRunner().invoke(command_line, [*arguments])


@pytest.fixture
def case() -> Recorded:
    return SHOP


def test_it_is_refused_while_apply_is_at_work_and_says_who_that_is(case: Recorded, tmp_path: Path) -> None:
    file, lake = case.unpack(tmp_path)
    with take_lease(lake, "road", "apply", report=print):
        before = files_in(Path(lake.root))
        done = _run("lake", "upgrade", str(file))
        assert isinstance(done.exception, LeaseHeld), done.output
        assert "apply of road" in str(done.exception)
        assert files_in(Path(lake.root)) == before
        assert _run("lake", "upgrade", str(file), "--dry-run").exit_code == 0, "to ask needs no lease"
    assert _run("lake", "upgrade", str(file)).exit_code == 0
    assert format_of(lake).is_ours


def test_status_says_what_format_a_lake_has(case: Recorded, tmp_path: Path) -> None:
    file, _ = case.unpack(tmp_path)
    assert "tidegate lake upgrade" in " ".join(_run("status", str(file)).output.split())
    assert json.loads(_run("status", str(file), "--json").stdout)["format"] == {
        "version": 0,
        "upgraded": False,
        "release": "",
    }
    _run("lake", "upgrade", str(file))
    assert "lake upgrade" not in _run("status", str(file)).output
    assert json.loads(_run("status", str(file), "--json").stdout)["format"]["upgraded"] is True


def test_a_lake_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(
        f"pipeline: shop\nlake: {{path: {tmp_path / 'lake'}}}\nsources: {{one: {{conn_id: c, flavour: mariadb}}}}\n"
        "tables: {include: ['shop.*']}\n"
    )
    assert "no control tables yet" in _run("lake", "upgrade", str(file)).output
    assert not (tmp_path / "lake").exists()
