"""What a table asks of those who commit to it: no more is refused than must be."""

from __future__ import annotations

import pytest

from tests.support.memory_store import MemoryStore
from tests.unit.delta.test_log import appended, file, made, paths
from tidegate.delta.actions import lines, moved
from tidegate.delta.log import Change
from tidegate.delta.names import commit_name
from tidegate.errors import DeltaUnsupported


def test_rows_that_only_go_need_no_files_in_a_change_data_feed() -> None:
    """Its readers take a removed file's rows for deleted where a version has no files of the feed."""
    log = made(MemoryStore(), delta_enableChangeDataFeed="true")
    state = appended(log, "a")
    assert paths(log.commit(state, Change(moved(state.files, [], data_change=True), "DELETE"))) == []


def test_a_table_with_row_ids_takes_what_adds_no_file() -> None:
    log = made(MemoryStore())
    state = appended(log, "a")
    tracked = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking", "domainMetadata"]}
    log.store.create(commit_name(state.version + 1), lines([{"protocol": tracked}]))
    state = log.state()
    with pytest.raises(DeltaUnsupported, match="rowTracking"):
        log.commit(state, Change(moved([], [file("b")], data_change=True), "WRITE"))
    state = log.commit(state, Change([{"metaData": {**state.metadata, "name": "t"}}], "ALTER"))
    assert paths(log.commit(state, Change(moved(state.files, [], data_change=True), "DELETE"))) == []


@pytest.mark.parametrize("feature", ["checkpointProtection"])
def test_a_feature_that_asks_nothing_of_a_commit_is_no_hindrance(feature: str) -> None:
    log = made(MemoryStore())
    asked = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": [feature]}
    state = log.commit(log.state(), Change([{"protocol": asked}], "DROP FEATURE"))
    assert paths(log.commit(state, Change(moved([], [file("a")], data_change=True), "WRITE"))) == ["a"]
