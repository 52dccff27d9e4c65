"""Tables as TiDB describes them, and what decoding made of their rows.

In:  columns, which of them are the key, how rows are named.
Out: a TableInfo; versions of it; what either decoder gives, in one form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import SimpleNamespace
from typing import Any, Final

from tidegate.schema.model.columns import TableVersion
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.result import CommitSpan, DecodedSegment, Known
from tidegate.tidb.jobs import NOT_NULL, PUBLIC, TableInfo, Tp
from tidegate.tidb.records.enclosed import joined
from tidegate.tidb.rows.by_row import decode_by_row
from tidegate.tidb.rows.decode import decode_in_pieces
from tidegate.tidb.rows.summary import Summary
from tidegate.tidb.tables.definitions import Stands, versions_of
from tidegate.tidb.tables.live_tables import TableChange, VersionKind

NAME: Final = ("d", "t")
TABLE: Final = 77
# Every test of decoding runs with both.
DECODERS: Final = (decode_in_pieces, decode_by_row)
Decode = Callable[..., Iterable[DecodedSegment]]


class Rows(StrEnum):
    """How TiDB names a table's rows."""

    BY_ID = "_tidb_rowid"
    BY_NUMBER = "an integer key"
    BY_KEY = "a clustered key"


@dataclass(frozen=True, slots=True)
class Col:
    """generated: a virtual column's expression. default: what rows have from before the column."""

    tp: Tp
    flag: int = 0
    length: int = 10
    digits: int = 0
    charset: str = "binary"
    members: tuple[str, ...] = ()
    default: str | None = None
    generated: str = ""


def table(
    columns: Sequence[Col], key: Sequence[int] = (), rows: Rows = Rows.BY_ID, ids: Sequence[int] = ()
) -> TableInfo:
    """key: places of its columns. ids: of the columns; 1, 2, 3 ... when not given."""
    cols = [
        {
            "id": ids[at] if ids else at + 1,
            "name": {"O": f"c{at}", "L": f"c{at}"},
            "offset": at,
            "state": PUBLIC,
            "origin_default": column.default,
            "generated_expr_string": column.generated,
            "type": {
                "Tp": column.tp,
                "Flag": column.flag | (NOT_NULL | 2 if at in key else 0),
                "Flen": column.length,
                "Decimal": column.digits,
                "Charset": column.charset,
                "Collate": "utf8mb4_bin" if column.charset != "binary" else "binary",
                "Elems": list(column.members) or None,
            },
        }
        for at, column in enumerate(columns)
    ]
    primary = {
        "idx_name": {"O": "PRIMARY", "L": "primary"},
        "idx_cols": [{"offset": at, "length": -1} for at in key],
        "state": PUBLIC,
        "is_unique": True,
        "is_primary": True,
    }
    return TableInfo.from_json(
        {
            "id": TABLE,
            "name": {"O": "t", "L": "t"},
            "charset": "utf8mb4",
            "collate": "utf8mb4_bin",
            "pk_is_handle": rows is Rows.BY_NUMBER,
            "is_common_handle": rows is Rows.BY_KEY,
            "partition": None,
            "view": None,
            "sequence": None,
            "cols": cols,
            "index_info": [primary] if key and rows is not Rows.BY_NUMBER else [],
        }
    )


def versions(info: TableInfo) -> list[TableVersion]:
    return versions_of([TableChange(VersionKind.CREATE, NAME, info)], Stands(10, "p", 0, ""), SchemaHistory("p"))


def segment(*payloads: bytes) -> Any:
    return SimpleNamespace(payload=joined(payloads), start_pos=0, file="p", seq=1, where="p:0")


@dataclass(frozen=True, slots=True)
class Made:
    """rows: of each version, in order; none of tables with a problem. raised: the error that ended it."""

    rows: Mapping[int, list[dict[str, Any]]]
    problems: tuple[str, ...] = ()
    ledger: tuple[int, ...] = ()
    raised: str = ""


def made(
    decode: Decode, one: Any, mine: Sequence[TableVersion], answers: Mapping[int, int], span: CommitSpan | None = None
) -> Made:
    try:
        parts = list(decode(one, {NAME: mine}, {NAME: span or CommitSpan(20, 2000)}, known=Known(answers=answers)))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other decoder has to raise it too
        return Made({}, raised=f"{type(error).__name__}: {error}")
    for part in parts:
        part.ledger.check()
    ledgers = [part.ledger for part in parts]
    counted = [(one.payload_bytes, one.decoded_bytes, one.quarantined_bytes, one.null_dates) for one in ledgers]
    problems = tuple(f"{one.error} at {one.pos}: {one.text}" for one in parts[-1].problems)
    rows: dict[int, list[dict[str, Any]]] = {}
    for change in (change for part in parts for change in part.changes if not problems):
        change.batch.validate(full=True)
        rows.setdefault(change.version, []).extend(change.batch.to_pylist())
    return Made(rows, problems, tuple(map(sum, zip(*counted, strict=True))))


def summed(summary: Summary) -> dict[str, Any]:
    """To compare."""
    arrays = ("started", "of_table", "table_ids", "answered", "stamps")
    found = {name: getattr(summary, name).tolist() for name in arrays}
    return found | {name: getattr(summary, name) for name in ("ddl", "jobs", "tables")}
