"""DDL jobs as TiDB's history has them: what a table is after each, by table id and column id.

In:  model.Job as JSON (mysql.tidb_ddl_history.job_meta, HTTP :10080/ddl/history, or a file of such lines).
Out: Job, TableInfo, ColumnInfo. StreamCorrupt for JSON that isn't a job.

Rows have only table ids and column ids, so a value can't be found by a name or a position.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, Self

from tidegate.errors import StreamCorrupt
from tidegate.remedy import REPORT
from tidegate.schema.model.type_table import Wire

PUBLIC: Final = 5  # schema state
SYNCED: Final = 6  # job state: done, and every TiDB knows it; 3 is rolled back
ROWID: Final = -1  # column id of _tidb_rowid
ROWID_NAME: Final = "_tidb_rowid"
NOT_NULL, PRIMARY, UNSIGNED, ZEROFILL, BINARY = 1, 2, 32, 64, 128


class Action(IntEnum):
    """Job.type, of the jobs with more changes than their TableInfo."""

    CREATE_SCHEMA = 1
    DROP_SCHEMA = 2
    CREATE_TABLE = 3
    DROP_TABLE = 4
    TRUNCATE_TABLE = 11
    MODIFY_COLUMN = 12
    RENAME_TABLE = 14
    DROP_PARTITION = 20
    CREATE_VIEW = 21
    TRUNCATE_PARTITION = 23
    DROP_VIEW = 24
    RECOVER_TABLE = 25
    CREATE_SEQUENCE = 34
    ALTER_SEQUENCE = 35
    DROP_SEQUENCE = 36
    EXCHANGE_PARTITION = 42
    RENAME_TABLES = 47
    CREATE_TABLES = 60
    MULTI_SCHEMA_CHANGE = 61
    FLASHBACK_CLUSTER = 62
    RECOVER_SCHEMA = 63
    REORGANIZE_PARTITION = 64
    ALTER_PARTITIONING = 71
    REMOVE_PARTITIONING = 72


# Jobs that move all rows, or some, into other partitions. TiDB writes changes during the job to
# both.
REFILLING: Final = frozenset({Action.REORGANIZE_PARTITION, Action.ALTER_PARTITIONING, Action.REMOVE_PARTITIONING})


class Tp(IntEnum):
    """ColumnInfo.type.Tp: MySQL's own numbers (mysql/type.go), those that TiDB has."""

    TINY = Wire.TINY
    SHORT = Wire.SHORT
    LONG = Wire.LONG
    FLOAT = Wire.FLOAT
    DOUBLE = Wire.DOUBLE
    NULL = Wire.NULL
    TIMESTAMP = Wire.TIMESTAMP
    LONGLONG = Wire.LONGLONG
    INT24 = Wire.INT24
    DATE = Wire.DATE
    TIME = Wire.TIME
    DATETIME = Wire.DATETIME
    YEAR = Wire.YEAR
    VARCHAR = Wire.VARCHAR
    BIT = Wire.BIT
    JSON = Wire.JSON
    DECIMAL = Wire.NEWDECIMAL
    ENUM = Wire.ENUM
    SET = Wire.SET
    TINYBLOB = 249  # these three are in no binlog of MySQL's
    MEDIUMBLOB = 250
    LONGBLOB = 251
    BLOB = Wire.BLOB
    VARSTRING = Wire.VAR_STRING
    STRING = Wire.STRING


INTEGERS: Final = {Tp.TINY: 8, Tp.SHORT: 16, Tp.INT24: 24, Tp.LONG: 32, Tp.LONGLONG: 64}
STRINGS: Final = frozenset(
    {Tp.VARCHAR, Tp.VARSTRING, Tp.STRING, Tp.TINYBLOB, Tp.BLOB, Tp.MEDIUMBLOB, Tp.LONGBLOB}
)  # fmt: skip
MOMENTS: Final = frozenset({Tp.DATE, Tp.DATETIME, Tp.TIMESTAMP})
_NAMES: Final = {
    Tp.TINY: "tinyint", Tp.SHORT: "smallint", Tp.INT24: "mediumint", Tp.LONG: "int", Tp.LONGLONG: "bigint",
    Tp.FLOAT: "float", Tp.DOUBLE: "double", Tp.DECIMAL: "decimal", Tp.TIMESTAMP: "timestamp", Tp.DATE: "date",
    Tp.TIME: "time", Tp.DATETIME: "datetime", Tp.YEAR: "year", Tp.BIT: "bit", Tp.JSON: "json", Tp.ENUM: "enum",
    Tp.SET: "set",
}  # fmt: skip
_BYTES: Final = {
    Tp.VARCHAR: "varbinary", Tp.VARSTRING: "varbinary", Tp.STRING: "binary", Tp.TINYBLOB: "tinyblob", Tp.BLOB: "blob",
    Tp.MEDIUMBLOB: "mediumblob", Tp.LONGBLOB: "longblob",
}  # fmt: skip
_TEXTS: Final = {
    Tp.VARCHAR: "varchar", Tp.VARSTRING: "varchar", Tp.STRING: "char", Tp.TINYBLOB: "tinytext", Tp.BLOB: "text",
    Tp.MEDIUMBLOB: "mediumtext", Tp.LONGBLOB: "longtext",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """origin_default: the value of older rows, as TiDB's own literal; None for NULL.

    digits: after the point, of a second or of a decimal; -1 when the type names none. length: as declared.
    """

    id: int
    name: str
    tp: Tp
    flag: int = 0
    length: int = -1
    digits: int = -1
    charset: str = ""
    collation: str = ""
    members: tuple[str, ...] = ()
    origin_default: str | None = None
    expression: str = ""
    stored: bool = False
    hidden: bool = False

    @property
    def unsigned(self) -> bool:
        return bool(self.flag & UNSIGNED)

    @property
    def nullable(self) -> bool:
        return not self.flag & NOT_NULL

    @property
    def is_binary(self) -> bool:
        """Bytes and no text."""
        return self.tp in STRINGS and self.charset == "binary"

    @property
    def is_virtual(self) -> bool:
        """Generated, and in no row's bytes."""
        return bool(self.expression) and not self.stored

    @property
    def type_text(self) -> str:
        """As information_schema shows it (COLUMN_TYPE)."""
        base = (_BYTES if self.is_binary else _TEXTS).get(self.tp) or _NAMES[self.tp]
        sign = " unsigned" if self.unsigned else ""
        match self.tp:
            case Tp.ENUM | Tp.SET:
                listed = ",".join("'" + member.replace("'", "''") + "'" for member in self.members)
                return f"{base}({listed})"
            case Tp.DECIMAL:
                return f"{base}({self.length},{max(self.digits, 0)}){sign}"
            case Tp.FLOAT | Tp.DOUBLE:
                return f"{base}({self.length},{self.digits}){sign}" if self.digits >= 0 else base + sign
            case Tp.TIME | Tp.DATETIME | Tp.TIMESTAMP:
                return f"{base}({self.digits})" if self.digits > 0 else base
            case Tp.DATE | Tp.JSON | Tp.TINYBLOB | Tp.BLOB | Tp.MEDIUMBLOB | Tp.LONGBLOB:
                return base
            case _:
                return f"{base}({self.length}){sign}"

    @classmethod
    def from_json(cls, cells: Mapping[str, Any]) -> Self:
        kind = cells["type"]
        bits = cells.get("origin_default_bit")
        default = base64.b64decode(bits).decode("latin-1") if bits else cells.get("origin_default")
        try:
            tp = Tp(kind["Tp"])
        except ValueError:
            raise StreamCorrupt(
                f"column {cells['name']['O']} has type {kind['Tp']}, which isn't known", remedy=REPORT
            ) from None
        return cls(
            cells["id"], cells["name"]["O"], tp, kind["Flag"], kind["Flen"], kind["Decimal"], kind["Charset"] or "",
            kind["Collate"] or "", tuple(kind["Elems"] or ()), None if default is None else str(default),
            cells.get("generated_expr_string") or "", bool(cells.get("generated_stored")), bool(cells.get("hidden")),
        )  # fmt: skip


class PartitionType(IntEnum):
    """PartitionInfo.type."""

    RANGE = 1
    HASH = 2
    LIST = 3
    KEY = 4


@dataclass(frozen=True, slots=True)
class PartitionDefinition:
    """less_than: the bounds of RANGE; in_values: the values of LIST; each is TiDB's own text of an expression."""

    id: int
    name: str
    less_than: tuple[str, ...] = ()
    in_values: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """columns: of COLUMNS and KEY, in lower case; else there is an expression."""

    type: PartitionType
    expression: str
    columns: tuple[str, ...]
    definitions: tuple[PartitionDefinition, ...]

    @classmethod
    def from_json(cls, cells: Mapping[str, Any]) -> Self:
        return cls(
            PartitionType(cells["type"]),
            cells["expr"] or "",
            tuple(column["L"] for column in cells["columns"] or ()),
            tuple(
                PartitionDefinition(
                    definition["id"],
                    definition["name"]["O"],
                    tuple(definition["less_than"] or ()),
                    tuple(tuple(value) for value in definition["in_values"] or ()),
                )
                for definition in cells["definitions"] or ()
            ),
        )


@dataclass(frozen=True, slots=True)
class TableInfo:
    """columns: public ones in their order; hidden ones (of expression indexes) among them. key: ids of the primary
    key's columns, in the key's order. handle: ids of the handle's columns, () for _tidb_rowid. is_base: no view and no
    sequence. text: its JSON, without needless parts.
    """

    id: int
    name: str
    columns: tuple[ColumnInfo, ...]
    key: tuple[int, ...] = ()
    handle: tuple[int, ...] = ()
    partition: PartitionInfo | None = None
    is_base: bool = True
    text: str = field(default="", repr=False, compare=False)

    def with_id(self, table_id: int) -> Self:
        return type(self).from_json(json.loads(self.text) | {"id": table_id})

    @classmethod
    def from_text(cls, text: str) -> TableInfo:
        """The table's facts in `text`, as it was kept. Many versions of a table may be asked for often."""
        return _info_of(text)

    def column(self, name: str) -> ColumnInfo | None:
        low = name.lower()
        return next((column for column in self.columns if column.name.lower() == low), None)

    def by_id(self) -> dict[int, ColumnInfo]:
        return {column.id: column for column in self.columns}

    @property
    def shown(self) -> tuple[ColumnInfo, ...]:
        """The columns of SELECT *."""
        return tuple(column for column in self.columns if not column.hidden)

    @classmethod
    def from_json(cls, cells: Mapping[str, Any]) -> Self:
        is_base = not (cells.get("view") or cells.get("sequence"))
        listed = [column for column in cells["cols"] or () if column["state"] == PUBLIC and is_base]
        columns = tuple(ColumnInfo.from_json(column) for column in sorted(listed, key=lambda column: column["offset"]))
        ids = [column["id"] for column in sorted(cells["cols"] or (), key=lambda column: column["offset"])]
        key = tuple(
            ids[part["offset"]]
            for index in cells["index_info"] or ()
            if index["is_primary"] and index["state"] == PUBLIC
            for part in index["idx_cols"]
        )
        handle: tuple[int, ...] = key if cells["is_common_handle"] else ()
        if cells["pk_is_handle"]:
            key = handle = tuple(column.id for column in columns if column.flag & PRIMARY)
        partition = cells.get("partition")
        if partition is not None and not (partition.get("enable", True) and partition["definitions"]):
            partition = None
        return cls(
            cells["id"], cells["name"]["O"], columns, key, handle,
            PartitionInfo.from_json(partition) if partition is not None else None,
            is_base, _kept(cells),
        )  # fmt: skip


_KEPT: Final = {
    "id", "name", "charset", "collate", "cols", "index_info", "pk_is_handle", "is_common_handle", "partition", "view",
    "sequence", "comment",
}  # fmt: skip
_KEPT_OF_COLUMN: Final = {
    "id", "name", "offset", "state", "type", "origin_default", "origin_default_bit", "default", "comment",
    "generated_expr_string", "generated_stored", "hidden",
}  # fmt: skip
_KEPT_OF_INDEX: Final = {"idx_name", "idx_cols", "state", "is_unique", "is_primary"}
_KEPT_OF_PARTITION: Final = {"type", "expr", "columns", "enable", "definitions"}


def _kept(cells: Mapping[str, Any]) -> str:
    """TiDB's facts of a table, as far as anybody asks."""

    def only(names: Collection[str], of: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return {name: of[name] for name in of if name in names} if of else None

    kept = {"id": cells["id"]} | {name: cells[name] for name in cells if name in _KEPT}
    kept["cols"] = [only(_KEPT_OF_COLUMN, column) for column in cells["cols"] or ()]
    kept["index_info"] = [only(_KEPT_OF_INDEX, index) for index in cells["index_info"] or ()]
    kept["partition"] = only(_KEPT_OF_PARTITION, cells.get("partition"))
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def id_in(text: str) -> int:
    """The id in a `text`, without a look at the rest."""
    return int(text[len('{"id":') : text.index(",")])


@lru_cache(maxsize=4096)
def _info_of(text: str) -> TableInfo:
    return TableInfo.from_json(json.loads(text))


@dataclass(frozen=True, slots=True)
class Job:
    """schema_state: of the last of its binlogs, when it writes several. table: as it is after the job. time_zone: in
    which existing values were converted. start_ts: no row changed by its doing before.
    """

    id: int
    type: int
    state: int
    schema_state: int
    schema_id: int
    table_id: int
    query: str
    database: str = ""
    table: TableInfo | None = None
    tables: tuple[TableInfo, ...] = ()
    time_zone: str = ""
    start_ts: int = 0

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """Raises StreamCorrupt."""
        try:
            cells = json.loads(text)
            info = cells["binlog"] or {}
            table, many = info.get("TableInfo"), info.get("MultipleTableInfos") or ()
            schema, reorganised = info.get("DBInfo"), cells.get("reorg_meta") or {}
            return cls(
                cells["id"], cells["type"], cells["state"], cells["schema_state"], cells["schema_id"],
                cells["table_id"], cells["query"], schema["db_name"]["O"] if schema else cells.get("schema_name") or "",
                TableInfo.from_json(table) if table else None, tuple(map(TableInfo.from_json, many)),
                (reorganised.get("location") or {}).get("name") or "", cells.get("start_ts") or 0,
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise StreamCorrupt(
                f"a DDL job isn't as TiDB 7.5 writes it: {type(error).__name__}: {error}",
                remedy=f"{REPORT} and the job's JSON",
            ) from None
