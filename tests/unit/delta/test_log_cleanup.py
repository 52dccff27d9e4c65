"""What is cleaned up of a log is needed by no version that is left, and nothing young goes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.delta_histories import DAY_MS, PROTOCOL
from tests.support.memory_store import MemoryStore
from tests.support.seeds import LONG, many
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.cleaning import log_cleanup
from tidegate.delta.cleaning.log_cleanup import clean_up
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import LAST_CHECKPOINT, checkpoint_name, commit_name, commit_version
from tidegate.errors import DeltaUnsupported, LakeRefused

MIDNIGHT_MS = 20_000 * DAY_MS
METADATA = {
    "id": "m",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": '{"type":"struct","fields":[]}',
    "partitionColumns": [],
    "configuration": {},
}
FIVE_DAYS = {"delta.logRetentionDuration": "interval 5 days"}


def table(ages_days: list[float], checkpoints: list[int]) -> MemoryStore:
    """A commit per age (days before MIDNIGHT_MS), each with a file; checkpoints at these versions."""
    store = MemoryStore()
    for version, age in enumerate(ages_days):
        store.clock_ms = MIDNIGHT_MS - int(age * DAY_MS) - 1
        actions: list[dict[str, Any]] = [] if version else [{"protocol": PROTOCOL}, {"metaData": METADATA}]
        add = {"path": f"f{version}", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
        store.create(commit_name(version), "\n".join(json.dumps(one) for one in [*actions, {"add": add}]).encode())
        store.create(f"{version:020d}.crc", b"{}")
        if version in checkpoints:
            checkpoint_write.write(store, version, now_ms=store.clock_ms)
    return store


def readable(store: MemoryStore, version: int) -> list[str] | None:
    state = DeltaLog("t", store=store).state_at(version)
    return None if state is None else sorted(file.path for file in state.files)


def commits(store: MemoryStore) -> list[int]:
    return [version for name in sorted(store.objects) if (version := commit_version(name)) is not None]


@settings(deadline=None, derandomize=not LONG, max_examples=many(60, 2000))
@given(st.data())
def test_every_version_that_is_young_enough_reads_as_before(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    ages = sorted(data.draw(st.lists(st.integers(0, 12), min_size=count, max_size=count)), reverse=True)
    if data.draw(st.booleans()):  # files that were copied, or a clock that went back
        ages = data.draw(st.permutations(ages))
    store = table([float(age) for age in ages], data.draw(st.lists(st.integers(0, count - 1), max_size=4)))
    before = {version: readable(store, version) for version in range(count)}
    made_ms = [entry.modified_ms for entry in store.names() if commit_version(entry.name) is not None]
    bound = data.draw(st.sampled_from([1, 3, 10_000]))
    with patch.object(log_cleanup, "LOG_CLEANUP_FILES_MAX", bound):
        for now_ms in sorted(MIDNIGHT_MS + data.draw(st.integers(0, 10)) * DAY_MS + 5 for _ in range(3)):
            there = len(store.objects)
            gone = clean_up(store, FIVE_DAYS, (), now_ms=now_ms)
            assert there - gone == len(store.objects)
            assert gone <= bound
            left = commits(store)
            assert left == list(range(left[0], count)), "no gap"
            young = [version for version in range(count) if made_ms[version] > now_ms - 5 * DAY_MS]
            # Also the one before the first young one: it is what the table was five days ago.
            for version in range(max(min(young, default=count) - 1, 0), count):
                assert readable(store, version) == before[version]


def test_all_before_the_checkpoint_of_the_oldest_kept_version_goes() -> None:
    #               0    1    2    3    4    5    6    7  8
    store = table([9.0, 8.5, 8.0, 7.0, 6.0, 5.5, 4.0, 2, 1], [1, 3, 7])
    store.create(f"{2:020d}.{3:020d}.compacted.json", b"")
    store.create(f"{4:020d}.{5:020d}.compacted.json", b"")
    store.create(f"{2:020d}.checkpoint.{1:010d}.{2:010d}.parquet", b"torn")
    store.create("_commits_of_someone", b"")
    clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS)
    assert commits(store) == [3, 4, 5, 6, 7, 8], "version 5 is the last that is old enough; it needs checkpoint 3"
    assert sorted(name for name in store.objects if not name.endswith((".crc", ".json"))) == [
        checkpoint_name(3),
        checkpoint_name(7),
        "_commits_of_someone",
        LAST_CHECKPOINT,
    ]
    assert [name for name in store.objects if "compacted" in name] == [f"{4:020d}.{5:020d}.compacted.json"]
    assert f"{2:020d}.crc" not in store.objects
    assert f"{3:020d}.crc" in store.objects
    assert readable(store, 3) == ["f0", "f1", "f2", "f3"]


def test_the_cut_moves_once_a_day() -> None:
    store = table([9, 8, 7, 5, 1], [3])
    assert not clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS - 1)
    assert clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS) == 6
    assert not clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS + DAY_MS - 1)


@pytest.mark.parametrize(
    ("configuration", "features"),
    [
        ({"delta.enableExpiredLogCleanup": "false"}, ()),
        ({}, ("catalogManaged",)),
        ({}, ("checkpointProtection",)),
        ({"delta.logRetentionDuration": "interval 1000 days"}, ()),
    ],
)
def test_nothing_goes_where_the_table_says_so(configuration: dict[str, str], features: tuple[str, ...]) -> None:
    store = table([99, 98, 97, 2], [2])
    assert not clean_up(store, FIVE_DAYS | configuration, features, now_ms=MIDNIGHT_MS)
    assert clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS)


def test_a_duration_that_is_none_is_an_error() -> None:
    with pytest.raises(DeltaUnsupported):
        clean_up(table([9], []), {"delta.logRetentionDuration": "1 month"}, (), now_ms=MIDNIGHT_MS)


def test_nothing_goes_before_a_checkpoint_that_cannot_be_read() -> None:
    store = table([9, 8, 7, 1], [2])
    store.clock_ms = MIDNIGHT_MS - 7 * DAY_MS
    store.replace(checkpoint_name(2), store.objects[checkpoint_name(2)][:-20])
    with pytest.raises(LakeRefused, match="isn't readable"):
        clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS)
    assert commits(store) == [0, 1, 2, 3]


def test_nothing_goes_when_a_commit_behind_the_checkpoint_is_missing() -> None:
    store = table([9, 8, 7, 6, 1], [2])
    store.delete([commit_name(3)])
    assert not clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS)
    store = table([9, 8, 7, 6, 1], [2])
    store.delete([commit_name(2)])
    assert not clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS), "its own commitInfo"


def test_what_the_hint_names_stays() -> None:
    store = table([9, 8, 7, 6, 1], [1, 3])
    store.replace(LAST_CHECKPOINT, b'{"version":1,"size":1}')
    clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS)
    assert commits(store) == [1, 2, 3, 4]
    store.delete([LAST_CHECKPOINT])
    assert not clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS)


def test_a_bounded_run_ends_at_a_checkpoint_where_one_is_near() -> None:
    store = table([9, 9, 9, 9, 9, 9, 9, 1], [2, 4, 6])
    with patch.object(log_cleanup, "LOG_CLEANUP_FILES_MAX", 10):
        assert clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS) == 9
        assert commits(store)[0] == 4, "eight objects of four versions, and a checkpoint"
        assert readable(store, 4) == ["f0", "f1", "f2", "f3", "f4"]
        assert clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS) == 5
    assert commits(store)[0] == 6


def test_sidecars_that_no_checkpoint_names_go_when_they_are_old() -> None:
    store = table([9, 9, 9, 9, 1], [3])
    sidecars = store.folder("_sidecars")
    data = store.objects[checkpoint_name(3)]
    for name, age in (("named", 9), ("old", 9), ("young", 1)):
        sidecars.clock_ms = MIDNIGHT_MS - age * DAY_MS
        sidecars.create(f"{name}.parquet", data)
    top = [{"protocol": PROTOCOL}, {"metaData": METADATA}, {"checkpointMetadata": {"version": 3}}]
    top.append({"sidecar": {"path": "named.parquet", "sizeInBytes": 1, "modificationTime": 1}})
    store.create(f"{3:020d}.checkpoint.u-u-i-d.json", "\n".join(json.dumps(one) for one in top).encode())
    assert clean_up(store, FIVE_DAYS, ("v2Checkpoint",), now_ms=MIDNIGHT_MS) == 7
    assert sorted(sidecars.objects) == ["named.parquet", "young.parquet"]
    assert readable(store, 3) == ["f0", "f1", "f2", "f3"]


def test_a_reader_that_has_not_seen_a_new_checkpoint_still_finds_its_commits() -> None:
    """A quiet table's late checkpoint: who listed the log before it was there reads the old commits one by one."""

    class Overtaken(MemoryStore):
        """The other process is at it when the reader has read checkpoint 2 and asks for the commit behind it."""

        def get(self, name: str) -> bytes | None:
            if name == commit_name(3) and checkpoint_name(6) not in self.objects:
                self.create(checkpoint_name(6), newer)
                self.replace(LAST_CHECKPOINT, b'{"version":6,"size":9}')
                clean_up(self, FIVE_DAYS, (), now_ms=MIDNIGHT_MS)
            return super().get(name)

    newer = table([40.0] * 7, [6]).objects[checkpoint_name(6)]
    there = table([40.0] * 7, [2])
    store = Overtaken(objects=there.objects, clock_ms=MIDNIGHT_MS, _made=there._made)
    assert DeltaLog("t", store=store).state().version == 6
    clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS + 2 * DAY_MS)
    assert commits(store) == [6], "they go once the cut has stood for a day"


def test_no_version_goes_before_the_one_that_it_follows() -> None:
    """Whoever holds version N and finds no N + 1 believes that N is the newest: a store removes in any order."""

    class AnyOrder(MemoryStore):
        def delete(self, names: Sequence[str]) -> None:
            for name in reversed(names):
                super().delete([name])
                left = commits(self)
                assert left == list(range(left[0], 9)), "a version is gone whose predecessor is there"

    there = table([9.0] * 8 + [1.0], [2, 5, 7])
    store = AnyOrder(objects=there.objects, clock_ms=MIDNIGHT_MS, _made=there._made)
    assert clean_up(store, FIVE_DAYS, (), now_ms=MIDNIGHT_MS)
    assert commits(store) == [7, 8]
