"""`vlog check` behind an accepted loss, and `check` of a lake that was moved away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.segments import segment
from tidegate.capture.value_log.log import ValueLog
from tidegate.cli.main import app
from tidegate.errors import LakeRefused
from tidegate.lake.bronze.table import Bronze, check_writable
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.unfinished import FOLDER, FolderKind, Paper


def test_an_accepted_loss_is_no_damage_of_the_value_log(tmp_path: Path) -> None:
    """The lost log's segment is in bronze alone: the runbook of a full disk ended with "records are missing"."""
    lake, folder = LakeFiles(str(tmp_path / "lake")), tmp_path / "log"
    file = tmp_path / "p.yaml"
    file.write_text(
        f"pipeline: p\nlake: {{path: {lake.root}}}\nsources: {{one: {{conn_id: a, flavour: mariadb}}}}\n"
        f"tables: {{include: ['a.*']}}\ncapture: {{value_log_path: {folder}}}\n"
    )
    value_log = ValueLog(folder / "one")
    for seq in (1, 3):
        value_log.append(segment(seq))
    value_log.close()
    checked = CliRunner().invoke(app, ["vlog", "check", str(file)])
    assert (checked.exit_code, "segment 3 follows 1; records are missing" in checked.stderr) == (1, True)
    bronze = Bronze(lake, "one", continues=lambda _before, _after: None)
    for seq in (1, 2):
        bronze.append([replace(segment(seq), prev_commit_ts=0, resolved_ts=0)])
    checked = CliRunner().invoke(app, ["vlog", "check", str(file)])
    assert (checked.exit_code, "bronze has those between them" in checked.stderr) == (0, True)


def test_a_lake_that_was_moved_away_is_none_to_write_to(tmp_path: Path) -> None:
    """`check` said that it can be written, and every other command refused."""
    lake = LakeFiles(str(tmp_path))
    check_writable(lake)
    Paper(FolderKind.MOVED, "p", "/elsewhere").write(lake.store(FOLDER))
    with pytest.raises(LakeRefused, match="was moved to /elsewhere"):
        check_writable(LakeFiles(str(tmp_path)))
