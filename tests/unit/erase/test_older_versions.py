"""A table without its older versions: its own files stay, however other writers named them in its log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tidegate.delta.object_names import commit_name
from tidegate.erase.older_versions import OlderVersions
from tidegate.lake.files import LakeFiles

PLACE = "silver/d/t"
ROWS = pa.table({"id": pa.array([7], pa.int32())})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / PLACE
    for mode in ("append", "overwrite"):
        write_deltalake(made, ROWS, mode=mode)  # type: ignore[call-overload]
    return made


def rewritten(folder: Path, version: int, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / "_delta_log" / commit_name(version)
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        change(action)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def forgotten(tmp_path: Path) -> OlderVersions:
    older = OlderVersions(LakeFiles(str(tmp_path)), PLACE)
    older.begin()
    older.forget([])
    return older


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_live_file_that_the_log_names_by_its_whole_place_stays(scheme: str, folder: Path, tmp_path: Path) -> None:
    names = []

    def whole(action: dict[str, Any]) -> None:
        if "add" in action:
            names.append(action["add"]["path"])
            action["add"]["path"] = f"{scheme}{folder}/{names[-1]}"

    rewritten(folder, 1, whole)
    older = forgotten(tmp_path)
    assert [path.name for path in folder.glob("*.parquet")] == names
    assert older.deleted == 1


def test_a_live_file_that_the_log_names_by_another_name_of_its_place_stays(folder: Path, tmp_path: Path) -> None:
    """A mount, a link or a store's other scheme: where it leads isn't known here."""
    (tmp_path / "other").symlink_to(tmp_path)
    names = []

    def linked(action: dict[str, Any]) -> None:
        if "add" in action:
            names.append(action["add"]["path"])
            action["add"]["path"] = f"file:{tmp_path / 'other' / PLACE}/{names[-1]}"

    rewritten(folder, 1, linked)
    older = forgotten(tmp_path)
    assert [path.name for path in folder.glob("*.parquet")] == names
    assert older.deleted == 1


@pytest.mark.parametrize(
    "info", [None, "DELETE WHERE name = 'Anna'", ["Anna"], {"operationParameters": "Anna"}], ids=str
)
def test_a_commits_odd_provenance_is_forgotten_like_any_other(info: Any, folder: Path, tmp_path: Path) -> None:
    def odd(action: dict[str, Any]) -> None:
        if "add" in action:
            action |= {"remove": None, "cdc": None}
        if "commitInfo" in action:
            action["commitInfo"] = info

    rewritten(folder, 0, odd)
    forgotten(tmp_path)
    text = (folder / "_delta_log" / commit_name(0)).read_text()
    assert "Anna" not in text
    assert "minValues" not in text
