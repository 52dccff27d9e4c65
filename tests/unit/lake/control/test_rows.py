"""Control tables: what is appended is read, by us and by others; what we would misread is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.support.readers import READERS
from tests.support.seeds import share
from tidegate import tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import add, remove
from tidegate.delta.table.state import TableState
from tidegate.errors import LakeRefused, Overtaken
from tidegate.lake import control
from tidegate.lake.control import ControlTables, reading
from tidegate.lake.control import rows as rows_module
from tidegate.lake.files import LakeFiles

ROW = {"source": "s", "seq": 1, "cut_ts": 9, "payload_bytes": 3, "decoded_bytes": 3, "ignored_bytes": 0}
ROW |= {"quarantined_bytes": 0, "ignored_by_rule": "{}", "rows": 1}
LATENCY = {"visible_us": 1, "seconds": 1.0, "cut_ts": 1}


def test_a_table_with_other_columns_is_refused(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    lacks = pa.schema([field for field in tables.LEDGER.schema if field.name != "rows"])
    control.append(lake, dataclasses.replace(tables.LEDGER, schema=lacks), [ROW])
    for use in (lambda: control.read(lake, tables.LEDGER), lambda: control.append(lake, tables.LEDGER, [ROW])):
        with pytest.raises(LakeRefused, match="it lacks rows"):
            use()
    other = dataclasses.replace(tables.CUTS, schema=pa.schema([*tables.CUTS.schema, pa.field("new", pa.int64())]))
    control.append(lake, other, [_cut(1, "", -1)])
    with pytest.raises(LakeRefused, match=r"it has new, too; a newer tidegate or another writer has added it; install"):
        control.read(lake, tables.CUTS)
    as_text = tables.LATENCY.schema.set(0, pa.field("written_us", pa.string()))
    control.append(lake, dataclasses.replace(tables.LATENCY, schema=as_text), [{"written_us": "1"} | LATENCY])
    with pytest.raises(LakeRefused, match="written_us is another type"):
        control.append(lake, tables.LATENCY, [{"written_us": 1} | LATENCY])


def test_rows_that_somebody_deleted_by_a_vector_are_not_read_as_if_they_were_there(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, tables.CUTS, [_cut(1, "", -1), _cut(2, "", -1)])
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 34, "cardinality": 1}
    features = {"minReaderVersion": 3, "minWriterVersion": 7}
    features |= {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}

    def delete(state: TableState) -> Change:
        gone = state.files[0]
        body = {**gone.action, "deletionVector": vector}
        actions = [{"protocol": features}, remove(gone, data_change=True), add(body, data_change=True)]
        return Change(actions, "DELETE")

    lake.log(tables.CUTS.path).update(delete)
    for use in (lambda: control.read(lake, tables.CUTS), lambda: control.append(lake, tables.CUTS, [_cut(3, "", -1)])):
        with pytest.raises(LakeRefused, match="REORG TABLE"):
            use()


@pytest.mark.parametrize("table", share([one for one in tables.ALL if not one.partition_by]), ids=lambda one: one.path)
def test_each_table_is_read_by_others_as_by_us(tmp_path: Path, table: tables.Table) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, table, [_filled(table, 1, nulls=True), _filled(table, 2, nulls=False)])
    control.append(lake, table, [_filled(table, number, nulls=number % 2 == 0) for number in range(3, 90)])
    key = table.schema.names[0]
    ours = control.read(lake, table).to_pylist()
    assert len(ours) == 89
    for name, read in READERS.items():
        theirs = read(lake.uri(table.path)).to_pylist()
        assert sorted(theirs, key=str) == sorted(ours, key=str), name
    assert DeltaTable(lake.uri(table.path)).metadata().description == table.doc
    assert key in DeltaTable(lake.uri(table.path)).schema().to_json()


def test_where_there_must_be_a_value_nothing_is_written_without_one(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    with pytest.raises(ValueError, match="null"):
        control.append(lake, tables.LEDGER, [ROW | {"seq": None}])
    assert not control.exists(lake, tables.LEDGER)


def test_where_nothing_changes_there_is_no_commit(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    assert control.append(lake, tables.LEDGER, []) == -1
    assert control.append(lake, tables.LEDGER, [ROW], ("app", 5)) == 0
    assert control.append(lake, tables.LEDGER, [ROW], ("app", 4)) == 0
    assert control.append(lake, tables.LEDGER, []) == 0
    assert control.append(lake, tables.LEDGER, [], ("app", 6)) == 1  # a version to be recorded is a change
    assert control.read(lake, tables.LEDGER).num_rows == 1
    assert control.application_version(lake, tables.LEDGER, "app") == 6


def test_who_was_overtaken_appends_nothing(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    first, second = ControlTables(lake), ControlTables(LakeFiles(str(tmp_path)))
    number = first.claim(tables.CUTS, "claims")
    first.append(tables.CUTS, [_cut(1, "", -1)])
    assert second.claim(tables.CUTS, "claims") == number + 1
    for use in (
        lambda: first.check(tables.CUTS),
        lambda: first.append(tables.CUTS, [_cut(2, "", -1)], ("app", 2)),
    ):
        with pytest.raises(Overtaken):
            use()
    assert control.read(lake, tables.CUTS)["cut_ts"].to_pylist() == [1]


def test_tables_kept_open_take_in_what_others_wrote_and_stay_few_files(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    mine = ControlTables(lake)
    assert mine.version(tables.LEDGER) == -1
    for seq in range(130):
        mine.append(tables.LEDGER, [ROW | {"seq": seq, "null_dates": 0}], ("app", seq))
        if seq == 60:
            control.append(lake, tables.LEDGER, [ROW | {"seq": 1000, "null_dates": 0}])
    assert mine.version(tables.LEDGER) == control.version(lake, tables.LEDGER)
    mine.tidy()
    opened = DeltaTable(lake.uri(tables.LEDGER.path))
    assert len(opened.file_uris()) == 1
    mine.append(tables.LEDGER, [ROW | {"seq": 130, "null_dates": 0}], ("app", 130))
    rows = control.read(lake, tables.LEDGER, columns=["seq"])["seq"].to_pylist()
    assert sorted(rows) == [*range(131), 1000]
    assert control.application_version(lake, tables.LEDGER, "app") == 130


def test_an_append_that_another_process_made_first_is_not_made_again(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    mine = ControlTables(lake)
    mine.append(tables.LEDGER, [ROW | {"seq": 1, "null_dates": 0}], ("app", 1))
    ControlTables(lake).append(tables.LEDGER, [ROW | {"seq": 2, "null_dates": 0}], ("app", 2))
    mine.append(tables.LEDGER, [ROW | {"seq": 2, "null_dates": 0}], ("app", 2))
    assert sorted(control.read(lake, tables.LEDGER)["seq"].to_pylist()) == [1, 2]


def test_the_last_row_of_each_table_is_found_with_few_rows_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long history of few tables, in many small files and in one large one."""
    lake = LakeFiles(str(tmp_path))
    rows = [_cut(cut_ts, f"d.t{cut_ts % 7}", version=cut_ts) for cut_ts in range(1, 3_001)]
    for begin in range(0, 300, 3):
        control.append(lake, tables.CUTS, rows[begin : begin + 3])
    control.append(lake, tables.CUTS, rows[300:])
    control.append(lake, tables.CUTS, [_cut(3_000, "d.t1", version=9)])  # published later, of the newest cut
    most = []

    def counted(parts: pa.Table, by: Sequence[str], order: Sequence[str]) -> pa.Table:
        most.append(parts.num_rows)
        return real(parts, by, order)

    real = control.last_of
    monkeypatch.setattr(rows_module, "last_of", counted)
    monkeypatch.setattr(reading, "_PART_ROWS", 100)
    monkeypatch.setattr(rows_module, "_FOLDED_ROWS", 100)
    found = control.newest(lake, tables.CUTS, by=["table"], order=["cut_ts", "published_at"], columns=["delta_version"])
    assert sorted(found["delta_version"].to_pylist()) == sorted({9, *range(2_994, 3_001)} - {2_997})
    assert max(most) <= 2 * 100 + 7
    assert len(most) <= 33, "files of a few rows are looked at together"


def test_statistics_rule_out_files_from_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = LakeFiles(str(tmp_path))
    for cut_ts in range(1, 6):
        control.append(lake, tables.CUTS, [_cut(cut_ts, f"d.t{cut_ts}", version=-1)])
    opened = []

    def noted(self: LakeFiles, path: str) -> Any:
        opened.append(path)
        return real(self, path)

    real = LakeFiles.open
    monkeypatch.setattr(LakeFiles, "open", noted)
    for filters, wanted in (
        ([("cut_ts", ">=", 4)], [4, 5]),
        ([("cut_ts", "<=", 2), ("table", "in", ["", "d.t1", "d.t2"])], [1, 2]),
        ([("cut_ts", "=", 3)], [3]),
        ([("cut_ts", "<", 3), ("cut_ts", ">", 1)], [2]),
        ([("cut_ts", "in", [1, 5])], [1, 5]),
        ([("table", "=", "d.t4")], [4]),
    ):
        opened.clear()
        found = control.read(lake, tables.CUTS, columns=["cut_ts"], filters=filters)["cut_ts"]
        assert sorted(found.to_pylist()) == wanted
        assert len(opened) == len(wanted)


def test_a_text_too_long_for_the_log_rules_nothing_out(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    long = "d." + 60 * "x"
    control.append(lake, tables.CUTS, [_cut(1, long, 1), _cut(2, "d.a", 1)])
    for name, cut_ts in ((long, 1), ("d.a", 2)):
        found = control.read(lake, tables.CUTS, filters=[("table", "=", name)])["cut_ts"]
        assert found.to_pylist() == [cut_ts]
    assert DeltaTable(lake.uri(tables.CUTS.path)).get_add_actions(flatten=True)["null_count.table"].to_pylist() == [0]


def _filled(table: tables.Table, number: int, *, nulls: bool) -> dict[str, Any]:
    """A row of a table; without what may be null, if so wished."""
    values = {
        pa.int64(): number,
        pa.float64(): number / 8,
        pa.bool_(): number % 2 == 0,
        pa.string(): f"{number} \u00e4\U0001f409",
        pa.timestamp("us", tz="UTC"): datetime(2026, 1, 2, 3, 4, 5, number, UTC),
        pa.list_(pa.string()): [f"d.{number}", ""],
    }
    return {field.name: None if nulls and field.nullable else values[field.type] for field in table.schema}


def _cut(cut_ts: int, table: str, version: int) -> dict[str, Any]:
    row = {"cut_ts": cut_ts, "table": table, "delta_version": version, "applied_ts": cut_ts, "state": "active"}
    return row | {"published_at": datetime.now(UTC)}


def test_a_long_table_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_PART_ROWS", 100)
    lake = LakeFiles(str(tmp_path))
    assert list(control.pieces(lake, tables.CUTS)) == []
    control.append(lake, tables.CUTS, [_cut(cut_ts, f"d.t{cut_ts % 2}", version=1) for cut_ts in range(1_000)])
    found = list(control.pieces(lake, tables.CUTS, filters=[("table", "in", ["d.t1"])]))
    assert [piece.num_rows for piece in found] == [50] * 10
