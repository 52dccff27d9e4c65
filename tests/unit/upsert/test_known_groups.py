"""Bounds of row groups that are kept: what is found with them is what is found without, and fewer files are opened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.upsert.test_probe_file import TABLE, keys, stored
from tidegate.lake.files import LakeFiles
from tidegate.upsert.keys.bounds import Groups, KnownGroups, file_name
from tidegate.upsert.keys.hash import SEED
from tidegate.upsert.keys.key_indexes import KeyIndexes
from tidegate.upsert.keys.probe_file import Earlier, probe_file


def made(folder: Path) -> LakeFiles:
    (folder / TABLE).mkdir(parents=True)
    return LakeFiles(str(folder))


def earlier_windows(lake: LakeFiles) -> Earlier:
    return Earlier(KnownGroups(1 << 20), KeyIndexes(lake, SEED, 0))


@settings(max_examples=60, deadline=None)
@given(
    ids=st.lists(st.integers(-50, 400), min_size=1, max_size=300),
    group=st.integers(1, 60),
    windows=st.lists(st.lists(st.integers(-60, 410), min_size=1, max_size=8), min_size=1, max_size=5),
)
def test_windows_find_the_same_rows_with_what_earlier_windows_saw(
    tmp_path_factory: pytest.TempPathFactory, ids: list[int], group: int, windows: list[list[int]]
) -> None:
    lake = made(tmp_path_factory.mktemp("lake"))
    earlier = earlier_windows(lake)
    file = stored(lake, pa.table({"id": pa.array(ids, pa.int64())}), row_group_size=group)
    for wanted in windows:
        table = keys(id=pa.array(sorted(set(wanted))))
        expected = np.flatnonzero(np.isin(ids, wanted)).tolist()
        for _ in range(2):
            assert probe_file(lake, TABLE, file, table, earlier).fresh.tolist() == expected


def test_a_file_whose_groups_hold_no_key_is_opened_once(tmp_path: Path) -> None:
    lake = made(tmp_path)
    earlier = earlier_windows(lake)
    file = stored(lake, pa.table({"id": pa.array([1, 2, 900])}), row_group_size=2)
    between = keys(id=pa.array([500]))
    assert probe_file(lake, TABLE, file, between, earlier).rows == 3
    Path(lake.root, TABLE, file.local_path).unlink()
    assert not len(probe_file(lake, TABLE, file, between, earlier).fresh)
    with pytest.raises(Exception, match="a data file is gone"):
        probe_file(lake, TABLE, file, keys(id=pa.array([2])), earlier)


def test_bounds_of_other_columns_are_other_bounds(tmp_path: Path) -> None:
    """A key that was replaced: its bounds aren't those that are known."""
    lake = made(tmp_path)
    earlier = earlier_windows(lake)
    file = stored(lake, pa.table({"id": pa.array([1, 2]), "code": pa.array([70, 80])}))
    assert not len(probe_file(lake, TABLE, file, keys(id=pa.array([70])), earlier).fresh)
    assert probe_file(lake, TABLE, file, keys(code=pa.array([70])), earlier).fresh.tolist() == [0]
    assert len(earlier.groups) == 2


def test_what_was_not_asked_for_longest_goes_first(tmp_path: Path) -> None:
    lake = made(tmp_path)
    file, table = stored(lake, pa.table({"id": [1]})), keys(id=pa.array([1]))
    groups = Groups(np.array([1]), np.zeros((1, 1, 2), np.int64))
    known = KnownGroups(3 * (600 + 24))
    names = [(f"t{number}", *file_name(TABLE, file, table)[1:]) for number in range(4)]
    for name in names[:3]:
        known.keep(name, groups)
    assert known.of(names[0]) is groups
    known.keep(names[3], groups)
    assert [known.of(name) is groups for name in names] == [True, False, True, True]
    known.keep(names[3], groups)
    assert len(known) == 3, "what is kept again takes its own room"
