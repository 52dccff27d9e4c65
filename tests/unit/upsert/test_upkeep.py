"""Size-tiered compaction keeps files few and rewrites cheap, whatever sizes come in whatever order."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.delta.table.live_file import LiveFile
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.worth_rewriting import (
    DEAD_BYTES_MIN,
    DEAD_SHARE_MAX,
    FIRST_TIER_BYTES,
    FULL_BYTES,
    TIER_FILES,
    choose,
    dead_share,
    live_bytes,
    tier,
)

PLENTY = 1 << 40
ROW = 100  # bytes of a row, so that a file's rows follow from its size


def file(number: int, size: int, dead: int = 0, partition: str | None = None, low: Any = None) -> LiveFile:
    rows = max(1, size // ROW)
    stats: dict[str, Any] = {"numRecords": rows}
    if low is not None:
        stats |= {"minValues": {"id": low}, "maxValues": {"id": low}}
    add: dict[str, Any] = {
        "path": f"{number}.parquet",
        "partitionValues": {} if partition is None else {"p": partition},
        "size": size,
        "stats": json.dumps(stats),
    }
    if dead:
        vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 40, "cardinality": dead}
        add["deletionVector"] = vector
    return LiveFile(add)


def test_tiers_grow_by_a_factor_of_their_files() -> None:
    assert [tier(size) for size in (0, FIRST_TIER_BYTES - 1, FIRST_TIER_BYTES, FIRST_TIER_BYTES * 8)] == [0, 0, 1, 2]


def test_fewer_files_than_a_tier_holds_stay_as_they_are() -> None:
    assert choose([file(n, 1000) for n in range(TIER_FILES - 1)], PLENTY) == []
    (found,) = choose([file(n, 1000) for n in range(TIER_FILES)], PLENTY)
    assert len(found.files) == TIER_FILES


def test_partitions_are_kept_apart() -> None:
    mixed = [file(n, 1000, partition=str(n % 2)) for n in range(2 * TIER_FILES)]
    found = choose(mixed, PLENTY)
    assert len(found) == 2
    assert all(len({f.partition_values["p"] for f in rewrite.files}) == 1 for rewrite in found)


def test_a_file_is_rewritten_once_a_good_part_of_it_is_dead() -> None:
    fine, bad = file(1, 1 << 20, dead=int((1 << 20) / ROW * DEAD_SHARE_MAX)), file(2, 1 << 20, dead=7000)
    assert dead_share(fine) <= DEAD_SHARE_MAX
    assert [rewrite.files for rewrite in choose([fine, bad], PLENTY)] == [(bad,)]
    assert choose([bad], bad.size - 1) == [], "not beyond the budget"


def test_a_few_dead_bytes_are_no_reason_for_a_rewrite() -> None:
    small = file(1, 10_000, dead=90)
    assert dead_share(small) > DEAD_SHARE_MAX
    assert choose([small], PLENTY) == []
    enough = file(2, 2 * DEAD_BYTES_MIN, dead=-(-DEAD_BYTES_MIN // ROW))
    assert [rewrite.files for rewrite in choose([small, enough], PLENTY)] == [(enough,)]
    (found,) = choose([small, *(file(n, 1000) for n in range(3, 3 + TIER_FILES))], PLENTY)
    assert small in found.files, "its tier takes it"


def test_a_full_file_is_left_alone_and_an_unknown_number_of_rows_is_no_reason() -> None:
    assert choose([file(n, FULL_BYTES) for n in range(20)], PLENTY) == []
    unknown = LiveFile({**file(1, 10, dead=3).action, "stats": None})
    assert dead_share(unknown) == 0.0


def narrow(number: int, rows: int, size: int) -> LiveFile:
    return LiveFile({**file(number, size).action, "stats": json.dumps({"numRecords": rows})})


def test_many_narrow_rows_fill_a_file_however_small_they_are_packed() -> None:
    """A rewrite cuts its files by their bytes in memory. If only packed bytes counted, it would make the same again."""
    files = [narrow(n, 7_000_000, 4 << 20) for n in range(20)]
    assert choose(files, PLENTY, row_bytes=24) == []
    assert len(choose(files, PLENTY)) == 1, "the bytes in memory are what counts"


def test_a_budget_bounds_the_rows_that_one_window_moves() -> None:
    files = [narrow(n, 100_000, 50_000) for n in range(40)]
    (found,) = choose(files, 32_000_000, row_bytes=32)
    assert len(found.files) == 10
    assert found.bytes == 32_000_000


def test_a_rows_least_bytes_in_memory_are_those_of_its_fixed_cells_and_of_offsets() -> None:
    kinds = (pa.int64(), pa.int32(), pa.string(), pa.int64(), pa.bool_(), pa.list_(pa.int8()), pa.decimal128(20, 0))
    schema = pa.schema([(f"c{at}", kind) for at, kind in enumerate(kinds)])
    rows = pa.table({name: pa.nulls(8000, schema.field(name).type) for name in schema.names})
    least = FileLayout(schema, (), (), ()).row_bytes_min
    assert least == 8 + 4 + 4 + 8 + 4 + 16
    assert least * 8000 <= rows.nbytes


def test_files_come_in_the_order_of_their_first_key() -> None:
    files = [file(n, 1000, low=low) for n, low in enumerate([5, 3, 9, 1, 7, 2, 8, 4])]
    (found,) = choose(files, PLENTY, ["id"])
    assert [f.bounds("id") for f in found.files] == [(n, n) for n in (1, 2, 3, 4, 5, 7, 8, 9)]
    (found,) = choose([file(n, 1000, low=f"k{9 - n}") for n in range(8)], PLENTY, ["id"])
    assert next(f.bounds("id") for f in found.files) == ("k2", "k2")


@given(st.lists(st.integers(200, 40 << 20), min_size=1, max_size=400), st.sampled_from([1 << 20, 32 << 20, PLENTY]))
def test_a_budget_is_never_exceeded(sizes: list[int], budget: int) -> None:
    files = [file(n, size, dead=size // ROW // 2 if n % 3 == 0 else 0) for n, size in enumerate(sizes)]
    found = choose(files, budget)
    assert sum(rewrite.bytes for rewrite in found) <= budget
    named = [f.path for rewrite in found for f in rewrite.files]
    assert len(named) == len(set(named)), "a file goes once"


class Table:
    """Windows of appended files, each followed by a compaction."""

    def __init__(self) -> None:
        self.files: list[LiveFile] = []
        self.number = 0
        self.written = self.rewritten = self.merges = 0

    def add(self, size: int) -> None:
        self.number += 1
        self.files.append(file(self.number, size))

    def window(self, size: int, budget: int = PLENTY) -> None:
        self.add(size)
        self.written += size
        for rewrite in choose(self.files, budget):
            gone = {f.path for f in rewrite.files}
            self.files = [f for f in self.files if f.path not in gone]
            self.add(sum(map(live_bytes, rewrite.files)))
            self.rewritten += rewrite.bytes
            self.merges += 1


@given(st.lists(st.integers(200, 8 << 20), min_size=1, max_size=600))
def test_files_stay_logarithmic_and_a_byte_is_rewritten_about_once_per_tier(sizes: list[int]) -> None:
    table = Table()
    for size in sizes:
        table.window(size)
    total = sum(sizes)
    tiers = tier(FULL_BYTES - 1) + 1
    full = sum(1 for f in table.files if f.size >= FULL_BYTES)
    assert len(table.files) - full <= tiers * (TIER_FILES - 1)
    assert full <= total / FULL_BYTES
    assert sum(f.size for f in table.files) == total
    # Once per tier that it climbs through; and in the first tier again with every few small files, which is bounded.
    climbs = min(tiers, 1 + math.log(max(total / FIRST_TIER_BYTES, 1), TIER_FILES))
    assert table.rewritten <= table.written * (climbs + 1) + table.merges * FIRST_TIER_BYTES


def test_a_small_budget_still_gets_there() -> None:
    table = Table()
    for _ in range(2000):
        table.window(60_000, budget=4 << 20)
    assert len(table.files) < 60
    assert table.rewritten <= 6 * table.written
