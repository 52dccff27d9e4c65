"""Rows of many small segments are brought into silver's form together, and stay in the log's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.positional import changes_stage
from spark_jobs.positional.changes_stage import ChangesStage
from spark_jobs.window.shape.decode_plan import DecodePlan
from spark_jobs.window.window import StagedFile
from tests.kit.decoding import version
from tidegate import tables
from tidegate.computed.row_expressions import ComputedColumn
from tidegate.config import MaskKind, MaskRule
from tidegate.lake.files import LakeFiles
from tidegate.limits import STAGED_PIECE_BYTES
from tidegate.masks.masking import Mask
from tidegate.schema.model.columns import Column
from tidegate.segments.result import TableChanges
from tidegate.upsert.target import NotStaged

NAME = ("d", "t")
TWICE = (ComputedColumn("twice", "bigint", expression="n * 2"),)


def changes(number: int, rows: Sequence[tuple[int, int]], at: int) -> TableChanges:
    """Upserts of (id, n), with commit_ts from `at` on."""
    count = len(rows)
    batch = pa.record_batch(
        {
            tables.OP: pa.array([tables.OP_UPSERT] * count, pa.int8()),
            tables.COMMIT_TS: pa.array(range(at, at + count), pa.int64()),
            tables.SEQ: pa.array([at] * count, pa.int64()),
            tables.ORDINAL: pa.array(range(count), pa.int64()),
            "id": pa.array([key for key, _ in rows], pa.int32()),
            "n": pa.array([n for _, n in rows], pa.int32()),
        }
    )
    return TableChanges(*NAME, number, batch)


def staged(folder: Path, given: Sequence[TableChanges]) -> list[tuple[int, list[dict[str, object]]]]:
    """Version -> rows of each file that was staged."""
    columns = [Column(1, "id", "int"), Column(2, "n", "int")]
    known = [version(*NAME, columns, ["id"], number=number) for number in (1, 2)]
    computed = {("s", NAME, number): TWICE for number in (1, 2)}
    plan = DecodePlan(LakeFiles(str(folder)), {"s": {NAME: known}}, {}, {}, "staging", computed=computed)
    stage = ChangesStage(plan, None, 1 << 30)
    made = [file for each in given for file in stage.add("s", each)] + list(stage.flush())
    files = [file for file in made if isinstance(file, StagedFile)]
    assert len(files) == len(made)
    return [(file.version, pq.read_table(folder / file.path).to_pylist()) for file in files]


def test_many_small_pieces_are_computed_once_and_the_last_change_of_a_key_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[int]()
    real = changes_stage.computed

    def counted(columns: Sequence[ComputedColumn], rows: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(rows.num_rows)
        return real(columns, rows)

    monkeypatch.setattr(changes_stage, "computed", counted)
    ((number, rows),) = staged(tmp_path, [changes(1, [(1, at), (at, at)], at * 10) for at in range(2, 300)])
    assert calls == [2 * 298]
    assert number == 1
    assert {row["id"]: row["twice"] for row in rows} == {1: 598} | {key: key * 2 for key in range(2, 300)}


def test_a_version_ends_the_pieces_of_the_one_before_and_large_ones_wait_for_no_more(tmp_path: Path) -> None:
    large = [(key, key) for key in range(STAGED_PIECE_BYTES // 20)]
    given = [changes(1, [(1, 1)], 1), changes(2, [(1, 2)], 2), changes(1, [(1, 3)], 3), changes(2, large, 10)]
    rows = {number: {row["id"]: row["n"] for row in made} for number, made in staged(tmp_path, given)}
    assert rows == {1: {1: 3}, 2: dict(large)}


def test_a_table_whose_rows_cant_be_shaped_is_named_by_itself_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of two tables wait together. The segment that makes them go on names one of them alone."""
    columns = [Column(1, "id", "int"), Column(2, "n", "int")]
    known = {name: [version(*name, columns, ["id"])] for name in (NAME, ("d", "u"))}
    hidden = {("s", ("d", "u"), 1): {"n": Mask(MaskRule(match="d.u", columns=("n",), how=MaskKind.NULL))}}
    plan = DecodePlan(
        LakeFiles(str(tmp_path)), {"s": known}, {}, {}, "staging", masks=hidden, names={"s": {("d", "u"): "d.all_u"}}
    )
    (tmp_path / "staging").mkdir()

    def broken(masks: Mapping[str, Mask], rows: pa.RecordBatch) -> pa.RecordBatch:
        raise pa.ArrowInvalid(f"{len(masks)} masks of {rows.num_rows} rows")

    monkeypatch.setattr(changes_stage, "masked", broken)
    stage = ChangesStage(plan, None, 90)
    other = replace(changes(1, [(1, 1)], 1), table="u")
    made = [*stage.add("s", other), *stage.add("s", changes(1, [(1, 5), (2, 6)], 2)), *stage.flush()]
    refused = [each for each in made if isinstance(each, NotStaged)]
    assert [each.name for each in refused] == ["d.all_u"]
    files = [each for each in made if isinstance(each, StagedFile)]
    assert [(file.table, file.rows) for file in files] == [("t", 2)]
