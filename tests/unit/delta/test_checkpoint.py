"""A checkpoint and the commits behind it say what all commits say; and which checkpoint is the newest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.delta_histories import DAY_MS, NOW_MS, PROTOCOL, State, histories, ordered, stored
from tests.support.memory_store import MemoryStore
from tests.support.seeds import LONG, many
from tidegate.delta.checkpoints import checkpoint
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.object_names import LAST_CHECKPOINT, Hint, checkpoint_name, checksum, commit_name
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.table.log_retention import tombstones_ms
from tidegate.errors import DeltaUnsupported, LakeRefused, LakeUnavailable

Commits = list[list[dict[str, Any]]]
GOLDEN = Path(__file__).parents[2] / "golden" / "checkpoints"
METADATA = {
    "id": "m",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": "{}",
    "partitionColumns": [],
    "configuration": {},
}


def rows(store: MemoryStore, version: int) -> list[dict[str, Any]]:
    """A checkpoint's actions by pyarrow's own conversion, row by row."""
    found = []
    for row in pq.read_table(pa.BufferReader(store.objects[checkpoint_name(version)])).to_pylist(
        maps_as_pydicts="strict"
    ):
        ((kind, body),) = ((kind, body) for kind, body in row.items() if body is not None)
        found.append({kind: bare(body)})
    return ordered(found)


def bare(body: Any) -> Any:
    """Without nulls, but for those in maps."""
    if not isinstance(body, dict):
        return body
    maps = ("partitionValues", "tags", "configuration", "options")
    return {name: value if name in maps else bare(value) for name, value in body.items() if value is not None}


def state_of(commits: Commits) -> State:
    state = State()
    for actions in commits:
        state.take(actions)
    return state


def appends(count: int) -> Commits:
    """A table's creation, then one file per commit."""
    adds = [
        {"path": f"f{n}", "partitionValues": {}, "size": n, "modificationTime": 1, "dataChange": True}
        for n in range(count)
    ]
    return [[{"protocol": PROTOCOL}, {"metaData": METADATA}], *([{"add": add}] for add in adds)]


def newest_version(store: MemoryStore, upto: int | None = None) -> int:
    found = checkpoint.newest(store, upto)
    return -1 if found is None else found[0]


# --- what it says -------------------------------------------------------------------------------------


@settings(deadline=None, derandomize=not LONG, max_examples=many(60, 2000))
@given(histories(), st.data())
def test_checkpoint_and_the_commits_behind_it_are_all_commits_at_any_split(
    commits: Commits, data: st.DataObject
) -> None:
    versions = st.sets(st.integers(0, len(commits) - 1), min_size=1, max_size=3)
    store = stored(commits)
    for version in sorted(data.draw(versions)):
        state = state_of(commits[: version + 1])
        assert state.metadata is not None
        oldest_ms = NOW_MS - tombstones_ms(state.metadata["configuration"])
        in_one_step = stored(commits)
        checkpoint_write.write(in_one_step, version, now_ms=NOW_MS)
        assert rows(in_one_step, version) == state.rows(tombstones_after_ms=oldest_ms)
        checkpoint_write.write(store, version, now_ms=NOW_MS)
        # Of its tombstones an earlier one may have dropped some, under a shorter duration that held then.
        assert without_removes(rows(store, version)) == without_removes(rows(in_one_step, version))
        store.delete([commit_name(number) for number in range(version)])
        read = checkpoint.newest(store)
        assert read is not None
        assert read[0] == version
        there = State().take([dict(action) for action in read[1]])
        for actions in commits[version + 1 :]:
            there.take(actions)
        assert there.rows(tombstones_after_ms=None) == state_of(commits).rows(tombstones_after_ms=None)


def without_removes(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in actions if "remove" not in one]


def test_tombstones_stay_as_long_as_vacuum_asks_for_them() -> None:
    gone = [
        {"remove": {"path": f"f{days}", "deletionTimestamp": NOW_MS - days * DAY_MS, "dataChange": True}}
        for days in (6, 7, 8)
    ]
    store = stored([*appends(9), gone])
    checkpoint_write.write(store, 9, now_ms=NOW_MS - DAY_MS)
    checkpoint_write.write(store, 10, now_ms=NOW_MS)
    assert [one["remove"]["path"] for one in rows(store, 10) if "remove" in one] == ["f6"]
    one_more: Commits = [[{"txn": {"appId": "a", "version": 1}}]]
    store.create(commit_name(11), json.dumps(one_more[0][0]).encode())
    checkpoint_write.write(store, 11, now_ms=NOW_MS + DAY_MS)
    assert not [one for one in rows(store, 11) if "remove" in one], "one that was carried over grows old, too"


def test_transactions_are_forgotten_only_where_the_table_says_so() -> None:
    old, young = NOW_MS - 3 * DAY_MS, NOW_MS - DAY_MS
    txns = [
        {"txn": {"appId": name, "version": 1} | more}
        for name, more in (("old", {"lastUpdated": old}), ("young", {"lastUpdated": young}), ("timeless", {}))
    ]
    for duration, kept in ((None, {"old", "young", "timeless"}), ("interval 2 days", {"young", "timeless"})):
        configuration = {} if duration is None else {"delta.setTransactionRetentionDuration": duration}
        store = stored([[{"protocol": PROTOCOL}, {"metaData": METADATA | {"configuration": configuration}}, *txns]])
        checkpoint_write.write(store, 0, now_ms=NOW_MS)
        assert {one["txn"]["appId"] for one in rows(store, 0) if "txn" in one} == kept


@pytest.mark.parametrize("case", sorted(path.name for path in GOLDEN.iterdir()))
def test_checkpoints_of_spark_say_what_the_commits_say(case: str) -> None:
    """tests/golden/checkpoints: logs of Spark 4.2 with Delta 4.4 (tests/integration/lake/test_checkpoints.py)."""
    store = log_store(str(GOLDEN / case), {})
    found = checkpoint.newest(store)
    assert found is not None
    version, actions = found
    commits = [
        [json.loads(line) for line in (store.get(commit_name(number)) or b"").splitlines()]
        for number in range(version + 1)
    ]
    read = State().take([dict(action) for action in actions])
    said = state_of(commits).rows(tombstones_after_ms=None)
    if case == "as_columns":  # without what such a checkpoint has no place for, numbers in another spelling
        assert [with_statistics(one) for one in read.rows(tombstones_after_ms=None)] == [
            with_statistics(one) for one in said
        ]
    else:
        assert read.rows(tombstones_after_ms=None) == said
    assert read.files


def with_statistics(action: dict[str, Any]) -> dict[str, Any]:
    """With its statistics parsed."""
    if "add" not in action:
        return action
    return {"add": action["add"] | {"stats": json.loads(action["add"]["stats"])}}


# --- which one ----------------------------------------------------------------------------------------


def checkpointed(*versions: int, commits: int = 9) -> MemoryStore:
    store = stored(appends(commits))
    for version in versions:
        checkpoint_write.write(store, version, now_ms=NOW_MS)
    return store


def test_a_log_without_checkpoints_has_none() -> None:
    assert checkpoint.newest(MemoryStore()) is None
    assert checkpoint.newest(stored(appends(3))) is None


@pytest.mark.parametrize(
    "hint", [b"", b'{"vers', b"[]", b'{"version":null}', b'{"version":2}', b'{"version":5}', b'{"version":700}', None]
)
def test_the_newest_is_found_whatever_the_hint_says(hint: bytes | None) -> None:
    store = checkpointed(2, 5, 8)
    store.delete([LAST_CHECKPOINT])
    if hint is not None:
        store.replace(LAST_CHECKPOINT, hint)
    assert newest_version(store) == 8
    assert newest_version(store, 7) == 5
    assert newest_version(store, 5) == 5
    assert newest_version(store, 1) == -1


def test_empty_files_and_parts_without_the_others_are_no_checkpoints() -> None:
    store = checkpointed(5)
    data = store.objects[checkpoint_name(5)]
    store.create(checkpoint_name(6), b"")
    store.create(f"{7:020d}.checkpoint.{1:010d}.{2:010d}.parquet", data)
    store.create(f"{7:020d}.checkpoint.{2:010d}.{3:010d}.parquet", data)
    assert newest_version(store) == 5


def test_one_that_is_cleaned_up_before_it_is_read_gives_way_to_a_newer_one() -> None:
    class Cleaned(MemoryStore):
        def get(self, name: str) -> bytes | None:
            if name == checkpoint_name(5):
                self.objects.pop(name, None)
                self.create(checkpoint_name(8), later)
            return super().get(name)

    later = checkpointed(8).objects[checkpoint_name(8)]
    store = Cleaned(objects=checkpointed(5).objects, _made=dict.fromkeys(checkpointed(5).objects, 1))
    assert newest_version(store) == 8


def test_one_that_cannot_be_read_is_an_error_and_no_older_one_hides_it() -> None:
    store = checkpointed(5, 8)
    store.replace(checkpoint_name(8), store.objects[checkpoint_name(8)][:-9])
    with pytest.raises(LakeRefused, match=r"checkpoint\.parquet isn't readable"):
        checkpoint.newest(store)
    assert newest_version(store, 7) == 5


def test_one_without_metadata_is_an_error() -> None:
    store = stored([[{"protocol": PROTOCOL}]])
    table = pa.table({"protocol": [PROTOCOL]})
    pq.write_table(table, sink := pa.BufferOutputStream())
    store.create(checkpoint_name(0), bytes(sink.getvalue()))
    with pytest.raises(LakeRefused, match="holds 0 metaData actions"):
        checkpoint.newest(store)


def test_a_checkpoint_is_due_after_so_many_commits() -> None:
    assert not checkpoint.due(48, -1)
    assert checkpoint.due(49, -1)
    assert not checkpoint.due(149, 100)
    assert checkpoint.due(150, 100)
    assert checkpoint.due(3, 100), "the table was made again"


# --- writing it ---------------------------------------------------------------------------------------


def test_the_hint_names_it_and_never_goes_back() -> None:
    store = checkpointed(5)
    first = json.loads(store.objects[LAST_CHECKPOINT])
    assert first["version"] == 5
    assert first["size"] == 7
    assert first["numOfAddFiles"] == 5
    assert first["sizeInBytes"] == len(store.objects[checkpoint_name(5)])
    assert first["checksum"] == checksum(first)
    checkpoint_write.write(store, 3, now_ms=NOW_MS)
    assert json.loads(store.objects[LAST_CHECKPOINT]) == first
    store.delete([checkpoint_name(5)])
    checkpoint_write.write(store, 4, now_ms=NOW_MS)
    assert json.loads(store.objects[LAST_CHECKPOINT])["version"] == 4, "what it named is gone"


def test_checksum_is_the_protocols() -> None:
    """PROTOCOL.md, "JSON checksum"."""
    document = (
        '{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], '
        '{"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}'
    )
    assert checksum(json.loads(document)) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_another_writers_checkpoint_of_the_version_stays() -> None:
    store = checkpointed(5)
    there = store.objects[checkpoint_name(5)]
    store.delete([LAST_CHECKPOINT])
    assert checkpoint_write.write(store, 5, now_ms=NOW_MS) == Hint(5, 7, len(there))
    assert store.objects[checkpoint_name(5)] == there
    assert json.loads(store.objects[LAST_CHECKPOINT])["version"] == 5, "its writer was killed before the hint"


@pytest.mark.parametrize("theirs", [b"", None])
def test_two_writers_of_a_version_leave_one_whole_checkpoint(theirs: bytes | None) -> None:
    class Raced(MemoryStore):
        def create(self, name: str, data: bytes) -> bool:
            if name == checkpoint_name(5):
                super().create(name, other if theirs is None else theirs)
            return super().create(name, data)

    other = checkpointed(5).objects[checkpoint_name(5)]
    store = Raced()
    stored(appends(9), store)
    assert checkpoint_write.write(store, 5, now_ms=NOW_MS).actions == 7
    assert newest_version(store) == 5


def test_no_checkpoint_is_made_over_a_gap() -> None:
    store = checkpointed(2)
    store.delete([commit_name(4)])
    with pytest.raises(LakeUnavailable, match="version 4 isn't there"):
        checkpoint_write.write(store, 5, now_ms=NOW_MS)
    with pytest.raises(LakeUnavailable, match="version 10 isn't there"):
        checkpoint_write.write(checkpointed(2), 10, now_ms=NOW_MS)


def test_no_checkpoint_of_another_number_of_files_is_written() -> None:
    store = stored(appends(9))
    with pytest.raises(LakeRefused, match="would have 9 files, the table has 8"):
        checkpoint_write.write(store, 9, now_ms=NOW_MS, files=8)
    assert checkpoint_write.write(store, 9, now_ms=NOW_MS, files=9).adds == 9


@pytest.mark.parametrize(
    ("protocol", "what"),
    [
        (PROTOCOL | {"readerFeatures": ["catalogManaged"]}, "catalogManaged"),
        (PROTOCOL | {"writerFeatures": ["adaptiveMetadata-preview"]}, "adaptiveMetadata-preview"),
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "protocol 4, 7"),
        (PROTOCOL | {"writerFeatures": ["checkpointProtection"]}, "requireCheckpointProtectionBeforeVersion"),
    ],
)
def test_tables_whose_checkpoints_are_more_than_that_are_refused(protocol: dict[str, Any], what: str) -> None:
    protected = {"configuration": {"delta.requireCheckpointProtectionBeforeVersion": "1"}}
    store = stored([[{"protocol": protocol}, {"metaData": METADATA | protected}]])
    with pytest.raises(DeltaUnsupported, match=what):
        checkpoint_write.write(store, 0, now_ms=NOW_MS)
    assert checkpoint.newest(store) is None


def test_a_log_without_metadata_or_of_another_form_is_refused() -> None:
    with pytest.raises(LakeRefused, match="no protocol or no metaData"):
        checkpoint_write.write(stored([[{"protocol": PROTOCOL}]]), 0, now_ms=NOW_MS)
    odd = {"path": "f", "partitionValues": {}, "size": "many", "modificationTime": 1, "dataChange": True}
    with pytest.raises(LakeRefused, match="doesn't follow the protocol"):
        checkpoint_write.write(stored([*appends(0), [{"add": odd}]]), 1, now_ms=NOW_MS)
