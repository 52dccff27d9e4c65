"""An erasure names a new version of silver as published, and not together with what another writer did to the rows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidegate import config, tables
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.table.actions import add, commit_info, lines, remove
from tidegate.erase.in_silver import SubjectInSilver
from tidegate.erase.older_versions import OlderVersions
from tidegate.erase.silver_past import SilverPast
from tidegate.erase.subject import Subject
from tidegate.errors import SilverUnlike
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import own_ts
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape

PATH, NAME, APP = "silver/d/t", "d.t", "tidegate/p/d.t"
TEXT = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"


def _file(path: str, rows: int) -> dict[str, Any]:
    return {
        "path": path,
        "partitionValues": {},
        "size": 10,
        "modificationTime": 1,
        "stats": f'{{"numRecords":{rows}}}',
    }


def _begun(folder: Path) -> tuple[SilverPast, LakeFiles]:
    """Silver of one file, as published."""
    lake = LakeFiles(str(folder))
    log = lake.log(PATH)
    create_silver(log, SilverShape((SilverColumn("id", "int"),), ("id",)))
    state = log.commit(log.state(), Change([add(_file("a", 10), data_change=True)], "UPSERT", {APP: 100}))
    row = {"cut_ts": 100, "applied_ts": 100, "state": "active", "published_at": datetime.now(UTC)}
    own = {"table": NAME, "delta_version": state.version, "silver_id": state.table_id, "silver_ts": own_ts(state, APP)}
    control.append(lake, tables.CUTS, [row | {"table": "", "delta_version": -1}, row | own])
    subject = cast("Subject", SimpleNamespace(keys=()))
    rows = SubjectInSilver(lake, PATH, NAME, subject, frozenset())
    return SilverPast(lake, config.parse(TEXT, where="p.yaml"), NAME, rows, OlderVersions(lake, PATH)), lake


def _by_another(log: DeltaLog, operation: str, *, is_change: bool) -> None:
    """A commit that takes a row away."""
    state, info = log.state(), commit_info(operation, "")
    info["commitInfo"]["engineInfo"] = "another one"
    changed = [remove(state.files[0], data_change=is_change), add(_file("b", 9), data_change=is_change)]
    assert log.store.create(commit_name(state.version + 1), lines([info, *changed]))


def _named(lake: LakeFiles) -> int:
    """The version that control says."""
    (named,) = control.read(lake, tables.CUTS, filters=[("table", "=", NAME)]).to_pylist()
    version: int = named["delta_version"]
    return version


_TAKEN = pytest.mark.parametrize(
    ("operation", "is_change", "reason"),
    [("RESTORE", True, "took its silver back"), ("OPTIMIZE", False, "files with 9 rows in the place of files with 10")],
)


@_TAKEN
def test_nothing_is_erased_from_silver_that_another_writer_took_rows_from(
    tmp_path: Path, operation: str, is_change: bool, reason: str
) -> None:
    past, lake = _begun(tmp_path)
    before = lake.log(PATH).state().version
    _by_another(lake.log(PATH), operation, is_change=is_change)
    for step in (past.check_published, lambda: past.forget([])):
        with pytest.raises(SilverUnlike, match=reason):
            step()
    assert lake.log(PATH).state().version == before + 1
    assert _named(lake) == before


@_TAKEN
def test_what_another_writer_takes_meanwhile_isnt_named_as_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, is_change: bool, reason: str
) -> None:
    """Files are written anew one by one, for as long as it takes."""
    past, lake = _begun(tmp_path)
    before = lake.log(PATH).state().version
    monkeypatch.setattr(SilverPast, "_purge", lambda _, log: _by_another(log, operation, is_change=is_change))
    with pytest.raises(SilverUnlike, match=reason):
        past.forget([])
    assert _named(lake) == before
