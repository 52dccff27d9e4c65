"""A snapshot that a person pauses or cancels is no fault of the run that began by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import Terminal
from tidegate.snapshot import work
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.progress.events import SnapshotState, TableProgress

pytestmark = pytest.mark.airflow


def progress(state: SnapshotState, *, by_hand: bool = False) -> TableProgress:
    return TableProgress("1", "main", "shop", "t", state, (WHOLE,), by_hand=by_hand)


class Read:
    """In place of SnapshotWork: its tables ended so."""

    left: tuple[TableProgress, ...] = ()
    unasked = ()

    def __init__(self, *_: object) -> None:
        """As SnapshotWork."""

    def ask(self) -> list[object]:
        return []

    def request(self, *_: object, **__: object) -> list[object]:
        return []

    def read(self, **_: object) -> tuple[TableProgress, ...]:
        return Read.left


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from tidegate_airflow.snapshot_operator import SnapshotOperator

    file = tmp_path / "snap.yaml"
    file.write_text(
        f"pipeline: snap\nlake: {{path: {tmp_path / 'lake'}}}\n"
        "sources: {main: {conn_id: snap_db, flavour: mariadb}}\ntables: {include: ['shop.*']}\n"
    )
    monkeypatch.setattr(work, "SnapshotWork", Read)
    return SnapshotOperator(task_id="snapshot", pipeline_file=str(file))


BY_ITSELF = {"waiting": ["an event"]}
PAUSED = progress(SnapshotState.PAUSED)
CANCELLED = progress(SnapshotState.CANCELLED, by_hand=True)


@pytest.mark.parametrize("left", [PAUSED, CANCELLED])
def test_a_run_that_began_by_itself_leaves_it_to_the_person(
    task: Any, left: TableProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Read, "left", (left,))
    context = {"params": {}, "run_id": "r"}
    task.execute(context | {"triggering_asset_events": BY_ITSELF})
    with pytest.raises(Terminal, match=f"shop.t is {left.state}"):
        task.execute(context)


def test_what_no_person_did_fails_the_run(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = progress(SnapshotState.FAILED)
    monkeypatch.setattr(Read, "left", (CANCELLED, failed))
    with pytest.raises(Terminal, match=r"not read: shop\.t is failed;"):
        task.execute({"params": {}, "run_id": "r", "triggering_asset_events": BY_ITSELF})
