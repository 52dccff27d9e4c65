"""Every recorded lake is opened, upgraded and continued: silver and states are what the release that wrote it made."""

from __future__ import annotations

import os
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pyarrow as pa
import pytest
import typer.testing

from tests.lakes.archive import Recorded, applied, files_in, recorded, said_by, silver_of, states_of
from tests.support.forks import exit_code
from tidegate import tables
from tidegate.cli.main import app as command_line
from tidegate.lake import control
from tidegate.lake.figures import status
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.migrations import MIGRATIONS
from tidegate.lake.format.version import format_of

CASES = recorded()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_a_recorded_lake_is_upgraded_and_goes_on_as_its_own_release_did(case: Recorded, tmp_path: Path) -> None:
    file, lake = case.unpack(tmp_path)
    expected = case.expected
    before = files_in(Path(lake.root))
    assert _status(lake) == expected["status"]
    _run("lake", "upgrade", str(file), "--dry-run")
    assert files_in(Path(lake.root)) == before, "a dry run says what it would do, and a reader changes nothing"
    told = _run("lake", "upgrade", str(file))
    assert _status(LakeFiles(lake.root)) == _status(lake) == expected["status"]
    assert format_of(lake).is_ours, told
    assert "nothing to do" in _run("lake", "upgrade", str(file))
    _goes_on(case, file, lake)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_apply_upgrades_a_recorded_lake_by_itself(case: Recorded, tmp_path: Path) -> None:
    file, lake = case.unpack(tmp_path)
    _goes_on(case, file, lake)
    assert format_of(lake).is_ours


@pytest.mark.parametrize("point", ["format_after_begun", "format_before_done"])
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.folder.name.startswith("held_events")], ids=lambda case: case.folder.name
)
def test_apply_that_is_killed_while_it_upgrades_a_lake_goes_on(case: Recorded, point: str, tmp_path: Path) -> None:
    file, lake = case.unpack(tmp_path)
    assert exit_code(_applies, file, lake.root, point) == -SIGKILL
    assert not format_of(lake).is_ours
    assert _status(LakeFiles(lake.root)) == case.expected["status"]
    _goes_on(case, file, LakeFiles(lake.root))
    assert format_of(lake).is_ours


def _applies(file: Path, root: str, point: str) -> None:
    os.environ["TIDEGATE_FAILPOINT"] = point
    applied(file, LakeFiles(root))


def _goes_on(case: Recorded, file: Path, lake: LakeFiles) -> None:
    """What was captured later is applied by this release."""
    for path, rows in case.later(lake).items():
        _append(lake, next(table for table in tables.ALL if table.path == path), rows)
    app = applied(file, lake)
    assert states_of(app) == said_by(case.expected["release"], case.expected["states"])
    made = silver_of(lake)
    assert made.keys() == case.expected["silver"].keys()
    for name, table in case.expected["silver"].items():
        assert made[name] == table, name


def _append(lake: LakeFiles, table: tables.Table, rows: pa.Table) -> None:
    """As this release's capture and people write what those of the recording wrote."""
    for step in MIGRATIONS:
        if step.path == table.path and step.convert is not None and step.old == set(rows.column_names):
            rows = step.convert(rows)
    control.append(lake, table, rows.to_pylist())


def _status(lake: LakeFiles) -> dict[str, Any]:
    return {row.table: str(row.state) for row in status.table_statuses(lake)}


def _run(*arguments: str) -> str:
    done = typer.testing.CliRunner().invoke(command_line, [*arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def test_a_lake_is_upgraded_by_its_own_pipeline_alone(tmp_path: Path) -> None:
    """Apply's lease has the pipeline's name: by another one the apply that is at work wouldn't be seen."""
    file, lake = CASES[0].unpack(tmp_path)
    before = files_in(Path(lake.root))
    file.write_text(file.read_text().replace("pipeline: ", "pipeline: other_", 1))
    done = typer.testing.CliRunner().invoke(command_line, ["lake", "upgrade", str(file)])
    assert "this lake belongs to pipeline" in str(done.exception)
    assert files_in(Path(lake.root)) == before
