"""From when on a history is known: by the log alone, whoever else wrote to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.state import TableState
from tidegate.lake.silver.as_published import RESTORE
from tidegate.lake.silver.known_history import (
    KnownHistory,
    forget_history,
    history_name,
    keeping,
    known_history,
    recorded,
    renew_history,
)
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape

NAME = history_name("shop", "d.t")
SHAPE = SilverShape((SilverColumn("id", "int"),), ("id",))


def _log(folder: Path) -> DeltaLog:
    log = DeltaLog(str(folder / "t"))
    create_silver(log, SHAPE)
    return log


def _add(name: str, *, changes: bool = True, stats: str = "") -> dict[str, Any]:
    body = {"path": name, "size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": changes}
    return {"add": {**body, "stats": stats} if stats else body}


def _write(log: DeltaLog, *actions: dict[str, Any], operation: str = "WRITE", since_ts: int | None = None) -> None:
    read = log.state()
    log.commit(read, Change(list(actions), operation, {} if since_ts is None else recorded(read, NAME, since_ts)))


def _known(log: DeltaLog) -> int | None:
    known = known_history(log, log.state(), NAME)
    return None if known is None else known.since_ts


def _columns(log: DeltaLog, *names: str) -> dict[str, Any]:
    made = DeltaLog(f"{log.place}-{'-'.join(names)}")
    shape = SilverShape(tuple(SilverColumn(name, "int") for name in names), ("id",))
    return {"metaData": {**create_silver(made, shape).metadata, "id": log.state().table_id}}


def test_a_record_holds_until_another_commit_changes_rows(tmp_path: Path) -> None:
    log = _log(tmp_path)
    assert _known(log) is None
    _write(log, _add("a"), since_ts=50)
    assert known_history(log, log.state(), NAME) == KnownHistory(50, 1)
    _write(log, _add("b", changes=False), operation="OPTIMIZE")
    _write(log, {"metaData": {**log.state().metadata, "configuration": {"mine": "1"}}})
    _write(log, operation="VACUUM END")
    assert _known(log) == 50
    _write(log, _add("c"))
    assert _known(log) is None
    _write(log, _add("d"), since_ts=0)
    assert _known(log) == 0, "what comes from here on is looked at"


@pytest.mark.parametrize("what", ["add", "remove", "restore", "columns", "unsaid", "lost"])
def test_what_may_have_changed_rows_ends_it(tmp_path: Path, what: str) -> None:
    log = _log(tmp_path)
    _write(log, _add("a"), since_ts=50)
    unsaid = _add("c")
    del unsaid["add"]["dataChange"]
    changes: dict[str, tuple[dict[str, Any], ...]] = {
        "add": (_add("c"),),
        "remove": ({"remove": {"path": "a", "deletionTimestamp": 1, "dataChange": True}},),
        "columns": (_columns(log, "id", "more"),),
        "unsaid": (unsaid,),
    }
    _write(log, *changes.get(what, ()), operation=RESTORE if what == "restore" else "WRITE")
    if what == "columns":
        _write(log, _columns(log, "id"))  # and back again: what was in it is gone
    if what == "lost":
        (tmp_path / "t" / "_delta_log" / f"{2:020}.json").unlink()
        assert known_history(log, TableState(**{**_fields(log.known), "version": 3}), NAME) is None
        return
    assert _known(log) is None


def test_another_column_in_the_place_of_one_ends_it(tmp_path: Path) -> None:
    """In one commit, as a replacement of mapped columns is; a column that comes beside them is harmless."""
    log = _log(tmp_path)
    _write(log, _add("a"), since_ts=50)
    _write(log, _columns(log, "id", "more"))
    assert _known(log) == 50
    _write(log, since_ts=50)
    _write(log, _columns(log, "id", "other"))
    assert _known(log) is None
    _write(log, since_ts=50)
    _write(log, _columns(log, "id"))
    assert _known(log) is None


def _fields(state: TableState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in TableState.__dataclass_fields__}


def test_a_clone_and_another_tables_record_say_nothing(tmp_path: Path) -> None:
    log = _log(tmp_path)
    _write(log, _add("a"), since_ts=50)
    other = DeltaLog(str(tmp_path / "other"))
    create_silver(other, SHAPE)
    other.commit(other.state(), Change([_add("a")], "CLONE", recorded(log.state(), NAME, 50)))
    assert _known(other) is None
    assert known_history(log, log.state(), history_name("shop", "d.other")) is None


def test_it_is_forgotten_and_renewed_by_commits_of_their_own(tmp_path: Path) -> None:
    log = _log(tmp_path)
    forget_history(log, NAME)
    renew_history(log, NAME)
    assert log.state().version == 0, "there was nothing to forget"
    _write(log, _add("a"), since_ts=50)
    renew_history(log, NAME)
    assert log.state().version == 1, "it is the newest commit's"
    _write(log, operation="OPTIMIZE")
    renew_history(log, NAME)
    assert known_history(log, log.state(), NAME) == KnownHistory(50, 3)
    forget_history(log, NAME)
    assert known_history(log, log.state(), NAME) == KnownHistory(0, 4)
    forget_history(log, NAME)
    assert log.state().version == 4
    _write(log, _add("b"))
    renew_history(log, NAME)
    assert log.state().version == 5, "what is lost isn't renewed"


def test_each_commit_of_a_log_records_it(tmp_path: Path) -> None:
    log = _log(tmp_path)
    met = list[KnownHistory | None]()

    def since(_: TableState, known: KnownHistory | None) -> int:
        met.append(known)
        return 70

    log.beside = keeping(log, since, NAME)
    log.update(lambda read: Change([_add("a")], "WRITE", {"mine": 3}))
    log.beside = None
    assert log.state().transaction("mine") == 3
    assert known_history(log, log.state(), NAME) == KnownHistory(70, 1)
    log.update(lambda read: Change([_add("b")], "WRITE"))
    assert _known(log) is None
    assert met == [None]
