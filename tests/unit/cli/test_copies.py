"""`tidegate lake backup` and `move`: a folder that isn't theirs stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.unit.copies.lakes import FakeLake
from tidegate.cli.main import app
from tidegate.errors import LakeRefused, UsageError
from tidegate.lake.control import append
from tidegate.lake.standing.followed import FollowedChange, rows_of
from tidegate.tables import FOLLOWED


@pytest.mark.parametrize("command", ["backup", "move"])
@pytest.mark.parametrize("target", ["lake/copy", "somebodys"])
def test_nothing_is_written_into_a_folder_that_is_refused(tmp_path: Path, command: str, target: str) -> None:
    FakeLake(tmp_path / "lake").fill()
    (tmp_path / "somebodys").mkdir()
    (tmp_path / "somebodys" / "letter.txt").write_text("dear")
    (tmp_path / "shop.yaml").write_text(
        f"pipeline: shop\nlake: {{path: {tmp_path / 'lake'}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*']}\n"
    )
    before = sorted(tmp_path.rglob("*"))
    result = CliRunner().invoke(app, ["lake", command, str(tmp_path / "shop.yaml"), str(tmp_path / target)])
    assert isinstance(result.exception, UsageError), result.output
    assert sorted(tmp_path.rglob("*")) == before


def test_prune_shows_what_would_go_and_then_removes_it(tmp_path: Path) -> None:
    lake = FakeLake(tmp_path / "lake")
    lake.fill()
    pipeline = tmp_path / "shop.yaml"
    pipeline.write_text(
        f"pipeline: shop\nlake: {{path: {lake.files.root}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*']}\n"
    )
    command = ["lake", "backup", str(pipeline), str(tmp_path / "backup")]
    assert CliRunner().invoke(app, command).exit_code == 0
    old = next(iter(lake.versions()["silver/d/a"][1]))
    lake.drop("silver/d/a", old)
    assert CliRunner().invoke(app, command).exit_code == 0
    copy = tmp_path / "backup" / "silver" / "d" / "a" / old
    refused = CliRunner().invoke(app, [*command, "--dry-run"])
    assert isinstance(refused.exception, UsageError)
    shown = CliRunner().invoke(app, [*command, "--prune", "--dry-run"])
    assert "pruned: 1 file, 0.0 MB would be removed" in shown.output
    assert copy.exists()
    done = CliRunner().invoke(app, [*command, "--prune"])
    assert "pruned: 1 file, 0.0 MB removed" in done.output
    assert not copy.exists()


@pytest.mark.parametrize("command", ["backup", "move"])
def test_another_pipelines_lake_is_neither_copied_nor_moved(tmp_path: Path, command: str) -> None:
    """Its jobs hold leases of another name, so it would be moved while they work."""
    lake = FakeLake(tmp_path / "lake")
    lake.fill()
    append(lake.files, FOLLOWED, rows_of(1, "elsewhere", [FollowedChange("one", "followed", 0)], None, 0))
    (tmp_path / "shop.yaml").write_text(
        f"pipeline: shop\nlake: {{path: {lake.files.root}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*']}\n"
    )
    result = CliRunner().invoke(app, ["lake", command, str(tmp_path / "shop.yaml"), str(tmp_path / "copy")])
    assert isinstance(result.exception, LakeRefused), result.output
    assert "this lake belongs to pipeline elsewhere" in str(result.exception)
    assert not (tmp_path / "copy").exists()


def test_a_move_that_is_over_is_said_again(tmp_path: Path) -> None:
    """A kill before its last step leaves that to the next run."""
    lake = FakeLake(tmp_path / "lake")
    lake.fill()
    (tmp_path / "shop.yaml").write_text(
        f"pipeline: shop\nlake: {{path: {lake.files.root}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*']}\n"
    )
    for _ in range(2):
        result = CliRunner().invoke(app, ["lake", "move", str(tmp_path / "shop.yaml"), str(tmp_path / "copy")])
        assert result.exit_code == 0, result.output
        assert f"the lake is in {tmp_path / 'copy'} now" in result.output


@pytest.mark.parametrize("command", ["backup", "move"])
def test_a_lake_that_isnt_there_is_no_good_copy(tmp_path: Path, command: str) -> None:
    """Its disk isn't mounted, and each night's backup has a folder of its own."""
    (tmp_path / "shop.yaml").write_text(
        f"pipeline: shop\nlake: {{path: {tmp_path / 'lake'}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*']}\n"
    )
    result = CliRunner().invoke(app, ["lake", command, str(tmp_path / "shop.yaml"), str(tmp_path / "copy")])
    assert isinstance(result.exception, LakeRefused), result.output
    assert str(result.exception).startswith(f"{tmp_path}/lake: has no table, so nothing can be copied; check lake.path")
    assert [path.name for path in tmp_path.iterdir()] == ["shop.yaml"]
