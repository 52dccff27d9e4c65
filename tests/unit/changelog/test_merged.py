"""Files of a changelog that overlap are read in order with a piece of each in memory, and packed without losing it."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.seeds import seed
from tidegate.changelog import changelog_table as table
from tidegate.changelog import merged as merging
from tidegate.changelog import packing
from tidegate.changelog.changelog_table import PLACE, Appending, as_rows, changelog, told
from tidegate.changelog.merged import CommitRange, merged, placed
from tidegate.changelog.packing import pack_in_order
from tidegate.changelog.reading import ChangePlace, changes_after
from tidegate.delta.exchange import exchange
from tidegate.delta.table.live_file import LiveFile
from tidegate.lake import control
from tidegate.lake.control.files import write_file
from tidegate.lake.files import LakeFiles

TABLE = changelog("shop", "orders")
NEVER = 1 << 61


def row(commit_ts: int, source: str, seq: int, ordinal: int) -> dict[str, object]:
    return told("insert", (source, "shop", "orders"), commit_ts, seq=seq, after="{}" * 20) | {"ordinal": ordinal}


def in_files(lake: LakeFiles, files: list[list[dict[str, object]]]) -> None:
    """Each list a file, all in one window."""
    appending = Appending(lake, TABLE, "a")
    for rows in files:
        appending.add(pa.Table.from_pylist(rows, schema=table.SCHEMA))
        appending.write()
    appending.commit(NEVER)


def places(pieces: list[pa.Table]) -> list[tuple[object, ...]]:
    return [tuple(one[name] for name in PLACE) for piece in pieces for one in piece.to_pylist()]


@pytest.mark.parametrize("groups_of", [4000, 1 << 20], ids=["small row groups", "one row group"])
def test_whatever_overlaps_comes_in_order_and_is_packed_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups_of: int
) -> None:
    monkeypatch.setattr(table, "CHANGELOG_GROUP_BYTES", groups_of)
    monkeypatch.setattr(packing, "CHANGELOG_GROUP_BYTES", groups_of)
    lake, chance = LakeFiles(str(tmp_path)), random.Random(seed())
    rows = [row(chance.randrange(60), chance.choice("abc"), chance.randrange(4), ordinal) for ordinal in range(400)] + [
        row(30, "b", 5 + ordinal // 50, ordinal) for ordinal in range(1000, 1300)
    ]  # a transaction of many files
    files: list[list[dict[str, object]]] = [[] for _ in range(24)]
    for one in rows:
        files[chance.randrange(24)].append(one)
    in_files(lake, files)
    wanted = sorted(tuple(one[name] for name in PLACE) for one in rows)
    assert places(list(changes_after(lake, TABLE, ChangePlace(), NEVER))) == wanted
    at = chance.randrange(len(wanted))
    assert places(list(changes_after(lake, TABLE, ChangePlace(*wanted[at]), 45))) == [
        one for one in wanted[at + 1 :] if one[0] <= 45
    ]

    half = chance.randrange(12, 24)
    monkeypatch.setattr(packing, "CHANGELOG_PACKED_BYTES", half * max(file.size for file in state_of(lake)))
    found = control.load(lake, TABLE)
    assert found is not None
    pack_in_order(lake, TABLE, found)
    assert len(state_of(lake)) < 24
    assert places(list(changes_after(lake, TABLE, ChangePlace(), NEVER))) == wanted
    assert sum(file.rows or 0 for file in state_of(lake)) == len(rows)
    for file in state_of(lake):
        assert file.bounds("commit_ts") is not None


def test_row_groups_of_one_commit_that_another_writer_has_put_in_any_order_come_in_order(tmp_path: Path) -> None:
    """Their stamps are the same, so they don't tell: a reader's place would pass over what comes too late."""
    lake = LakeFiles(str(tmp_path))
    in_files(lake, [[row(7, "a", 1, 0)]])
    rows = [row(7, "a", 1, ordinal) for ordinal in (*range(200, 300), *range(100, 200))]
    packed = write_file(lake, TABLE, pa.Table.from_pylist(rows, schema=table.SCHEMA), group_rows=50)
    exchange(lake.log(TABLE.path), [], [packed], operation="OPTIMIZE")
    assert places(list(changes_after(lake, TABLE, ChangePlace(7), NEVER))) == [
        (7, "a", 1, ordinal) for ordinal in (0, *range(100, 300))
    ]


def state_of(lake: LakeFiles) -> tuple[LiveFile, ...]:
    return lake.log(TABLE.path).state().files


def test_a_transaction_of_many_files_is_never_in_memory_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeFiles(str(tmp_path))
    in_files(lake, [[row(7, "a", file, number) for number in range(50)] for file in range(30)])
    opened = list[str]()
    groups = merging._groups

    def counted(*given: object) -> object:
        opened.append("")
        return groups(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(merging, "_groups", counted)
    pieces = merged(lake, TABLE, state_of(lake), CommitRange())
    for number, piece in enumerate(pieces):
        assert piece.num_rows <= 100
        assert len(opened) <= number + 3, "files are open that are needed later"
        last = placed(piece, piece.num_rows - 1)
    assert last == (7, "a", 29, 49)


def test_a_slow_reader_goes_on_in_what_its_files_were_packed_into(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    for window in range(10):
        appending = Appending(lake, TABLE, "a")
        appending.add(as_rows([told("insert", ("a", "shop", "orders"), window)]))
        appending.commit(window)
    reader = changes_after(lake, TABLE, ChangePlace(), NEVER)
    seen = places([next(reader)])
    found = control.load(lake, TABLE)
    assert found is not None
    pack_in_order(lake, TABLE, found)
    for file in found.files:
        Path(lake.uri(TABLE.path), file.local_path).unlink()
    seen += places(list(reader))
    assert [one[0] for one in seen] == list(range(10))
