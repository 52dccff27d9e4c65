"""A date in a key that no calendar has holds its table: NULL would stand for all such rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.tidb import encode
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.result import CommitSpan, Known
from tidegate.tidb.cells import Moment, packed
from tidegate.tidb.decode import decode_in_pieces
from tidegate.tidb.definitions import Stands, versions_of
from tidegate.tidb.enclosed import joined
from tidegate.tidb.jobs import PUBLIC, TableInfo, Tp
from tidegate.tidb.live_tables import Change, TableChange
from tidegate.tidb.payload import BinlogType, Mutation
from tidegate.tidb.protobuf import written_varint

NAME, TABLE = ("d", "t"), 77
ZERO, HALF = 0, packed(Moment(2024, 0, 0))


def column(id_: int, name: str, tp: Tp) -> dict[str, Any]:
    kind = {"Tp": tp, "Flag": 3, "Flen": 10, "Decimal": 0, "Charset": "binary", "Collate": "binary", "Elems": None}
    return {"id": id_, "name": {"O": name, "L": name}, "offset": id_ - 1, "state": PUBLIC, "type": kind}


def table(key: int) -> TableInfo:
    """(day date, v int), with a primary key of one of them."""
    primary = {
        "idx_name": {"O": "PRIMARY", "L": "primary"},
        "idx_cols": [{"offset": key, "length": -1}],
        "state": PUBLIC,
        "is_unique": True,
        "is_primary": True,
    }
    columns = [column(1, "day", Tp.DATE), column(2, "v", Tp.LONG)]
    head = {"id": TABLE, "name": {"O": "t", "L": "t"}, "charset": "utf8mb4", "collate": "utf8mb4_bin"}
    handle = {"pk_is_handle": False, "is_common_handle": False, "partition": None, "view": None, "sequence": None}
    return TableInfo.from_json(head | handle | {"cols": columns, "index_info": [primary]})


def decoded(key: int, *days: int) -> tuple[list[Any], list[str]]:
    """Silver's rows, and what holds the table."""
    versions = versions_of([TableChange(Change.CREATE, NAME, table(key))], Stands(10, "p", 0, ""), SchemaHistory("p"))
    inserts = [
        (Mutation.INSERT, encode.datum(at) + encode.datum(1) + b"\x09" + written_varint(day) + encode.pairs({2: at}))
        for at, day in enumerate(days)
    ]
    payload = encode.binlog(BinlogType.PREWRITE, 100, value=encode.mutations(TABLE, *inserts), key=b"k")
    segment: Any = SimpleNamespace(payload=joined([payload]), start_pos=0, file="p", seq=1)
    spans = {NAME: CommitSpan(20, 200)}
    found = list(decode_in_pieces(segment, {NAME: versions}, spans, known=Known(answers={100: 110})))
    rows = [row for one in found for change in one.changes for row in change.batch.to_pylist()]
    return [row["day"] for row in rows], [problem.message for one in found for problem in one.problems]


@pytest.mark.parametrize(("day", "text"), [(ZERO, "0000-00-00"), (HALF, "2024-00-00")])
def test_a_key_with_such_a_date_holds_its_table(day: int, text: str) -> None:
    days, (problem,) = decoded(0, day)
    assert days == []
    assert f"column day of the key holds {text}" in problem


def test_elsewhere_it_is_null() -> None:
    assert decoded(1, ZERO, HALF) == ([None, None], [])
