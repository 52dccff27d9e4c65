"""The last change per key, against a dictionary; and the table of keys, saved and mapped."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import limits
from tidegate.errors import LakeRefused, UnsupportedValue
from tidegate.lake.files import LakeFiles
from tidegate.upsert.cost import KEY_RECORD_BYTES
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.keys.file import DELETED, KeyFile, read_keys, write_keys
from tidegate.upsert.keys.hash import SEED, Cells, Seed, key_hashes, leads
from tidegate.upsert.keys.probe_table import KeyTable
from tidegate.upsert.keys.resolve import resolve

KEY = pa.schema([("region", pa.string()), ("id", pa.int64())])
# Each: region, id, commit_ts, seq, ordinal, whether it deletes.
Change = tuple[str | None, int, int, int, int, bool]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["", "n", "s" * 9]),
        st.integers(0, 6),
        st.integers(0, 3),
        st.integers(0, 2),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=30,
)


def key_file(changes: list[Change], source: str = "s", seed: Seed = SEED) -> KeyFile:
    """Rows of upserts lie in two data files, alternately."""
    columns = [pa.array([c[0] for c in changes], pa.string()), pa.array([c[1] for c in changes], pa.int64())]
    numbers = [np.array([c[i] for c in changes], np.int64) for i in (2, 3, 4)]
    file = np.arange(len(changes), dtype=np.int32) % 2
    row = np.arange(len(changes), dtype=np.int64) // 2
    row[np.array([c[5] for c in changes], np.bool_)] = DELETED
    return KeyFile(
        source=source,
        key_schema=KEY,
        seed=seed,
        hashes=key_hashes(columns, seed),
        commit_ts=numbers[0],
        seq=numbers[1],
        ordinal=numbers[2],
        file=file,
        row=row,
        leads=np.array([leads(column) for column in columns]).reshape(2, -1),
        adds=({"path": f"{source}-0"}, {"path": f"{source}-1"}),
    )


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), CHANGES), min_size=1, max_size=3))
def test_the_last_change_of_each_key_wins_and_all_other_rows_lose(files: list[tuple[str, list[Change]]]) -> None:
    found = resolve([key_file(changes, source) for source, changes in files])
    last: dict[tuple[str | None, int], tuple[tuple[int, str, int, int, int], tuple[int, int]]] = {}
    live: set[tuple[int, int]] = set()
    listed = 0
    for number, (source, changes) in enumerate(files):
        for i, (region, key, commit_ts, seq, ordinal, _) in enumerate(changes):
            order = (commit_ts, source, seq, ordinal, listed)
            listed += 1
            if (region, key) not in last or last[region, key][0] < order:
                last[region, key] = (order, (number, i))
    live = {place for _, place in last.values()}
    for number, (_, changes) in enumerate(files):
        for half in (0, 1):
            lost = [i // 2 for i, c in enumerate(changes) if i % 2 == half and not c[5] and (number, i) not in live]
            assert found.files[2 * number + half].losers.tolist() == lost
    assert found.table.keys == len(last)
    everything = [(region, key) for region in ("", "n", "s" * 9, "other") for key in range(9)]
    regions, keys = zip(*everything, strict=True)
    hits = found.table.probe(Cells([pa.array(regions), pa.array(keys)])).tolist()
    assert [everything[i] for i in hits] == [pair for pair in everything if pair in last]


@settings(deadline=None)
@given(CHANGES.filter(bool), st.integers(-1, 7), st.integers(0, 3))
def test_a_box_without_a_key_and_no_other_is_ruled_out(changes: list[Change], low: int, width: int) -> None:
    table = resolve([key_file(changes)]).table
    boxes, inside = [], []
    for region in ("", "n", "s" * 9):
        lead = int(leads(pa.array([region]))[0])
        boxes.append(np.array([[lead, lead], [low, low + width]], np.int64))
        inside.append(any(c[0] == region and low <= c[1] <= low + width for c in changes))
        assert table.may_lie_in(boxes[-1]) == inside[-1]
    assert table.may_lie_in_each(np.array(boxes)).tolist() == inside
    assert not resolve([key_file([])]).table.may_lie_in_each(np.array(boxes)).any()


def test_key_files_and_tables_come_back_from_the_lake(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    changes: list[Change] = [("n", i % 50, i, 0, 0, i % 3 == 0) for i in range(1000)]
    for some in (changes, []):
        write_keys(lake, "k", key_file(some, seed=(1 << 63, 5)))
        back, was = read_keys(lake, "k"), key_file(some, seed=(1 << 63, 5))
        for name in ("hashes", "commit_ts", "seq", "ordinal", "file", "row", "leads"):
            assert (getattr(back, name) == getattr(was, name)).all(), name
            assert getattr(back, name).shape == getattr(was, name).shape, name
        assert (back.source, back.seed, back.adds, back.key_schema) == (was.source, was.seed, was.adds, KEY)
        table = resolve([back]).table
        table.save(lake, "t")
        cells = Cells([pa.array(["n"] * 99), pa.array(range(99))])
        expected = list(range(50)) if some else []
        for copy in (table, KeyTable.open(lake, "t"), pickle.loads(pickle.dumps(table))):
            assert copy.probe(cells).tolist() == expected
            assert copy.key_schema == KEY


def test_keys_are_kept_as_long_as_there_is_room_and_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UPSERT_KEYS_BYTES_MAX", 10 * KEY_RECORD_BYTES)
    kept, few = KeyFilesAtHand(), key_file([("n", i, 1, 0, 0, False) for i in range(4)])
    assert [kept.keep(path, few) for path in "abc"] == [True, True, False]
    assert kept.bytes == 8 * KEY_RECORD_BYTES
    assert [kept.take(path) for path in ("a", "a", "c")] == [few, None, None]
    assert not kept.keep("d", few), "the window's changes count, wherever they are now"


def test_what_is_no_key_file_or_table_is_refused(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    write_keys(lake, "k", key_file([("n", 1, 1, 1, 1, False)] * 100))
    resolve([read_keys(lake, "k")]).table.save(lake, "t")
    for name, read in (("k", read_keys), ("t", KeyTable.open)):
        whole = (tmp_path / name).read_bytes()
        for damaged in (b"x" * 99, whole[: len(whole) // 2]):
            (tmp_path / name).write_bytes(damaged)
            with pytest.raises(LakeRefused, match=r"key file|table of keys"):
                read(lake, name)


def test_a_key_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(LakeRefused, match="gone"):
        read_keys(LakeFiles(str(tmp_path)), "k")


def test_key_files_of_other_keys_or_seeds_do_not_mix() -> None:
    with pytest.raises(LakeRefused, match="different keys"):
        resolve([key_file([("n", 1, 1, 1, 1, False)]), key_file([], seed=(1, 2))])


def test_a_key_that_holds_null_is_refused() -> None:
    with pytest.raises(UnsupportedValue, match="NULL"):
        resolve([key_file([(None, 1, 1, 1, 1, False)])])
