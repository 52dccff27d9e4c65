"""What a table asks of those who commit to it: no more is refused than must be."""

from __future__ import annotations

import pytest

from tests.support.memory_store import MemoryStore
from tests.unit.delta.test_log import SCHEMA, appended, file, made, paths
from tidegate.delta.log import Change
from tidegate.delta.object_names import commit_name
from tidegate.delta.table.actions import lines, metadata, moved, protocol
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


@pytest.mark.parametrize("versions", [(4, 7), (3, 8)])
def test_a_protocol_version_that_is_newer_than_features_is_refused(versions: tuple[int, int]) -> None:
    """Such a table may name none of the features that we would have to know."""
    store = MemoryStore()
    log = made(store)
    newer = {"minReaderVersion": versions[0], "minWriterVersion": versions[1]}
    store.create(commit_name(1), lines([{"protocol": newer}]))
    with pytest.raises(DeltaUnsupported, match="protocol"):
        log.state()


def test_a_mapped_table_gets_no_column_that_isnt_mapped() -> None:
    """Readers find its columns by the names in their metadata, and refuse the table for one without."""
    log = made(MemoryStore())
    mapped = metadata(SCHEMA, {"delta.columnMapping.mode": "name"}, table_id=log.state().table_id)
    with pytest.raises(DeltaUnsupported, match="column mapping"):
        log.commit(log.state(), Change([mapped], "ADD COLUMNS"))


@pytest.mark.parametrize("feature", ["variantType", "variantType-preview", "typeWidening-preview", "columnMapping"])
def test_a_feature_that_readers_must_know_is_told_to_them(feature: str) -> None:
    assert protocol({feature, "clustering"})["protocol"]["readerFeatures"] == [feature]
