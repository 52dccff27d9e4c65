"""In which partition a row lies, as TiDB finds it.

In:  a table's partitioning, and the SQL value of each column of a row.
Out: the place of its partition among the definitions. UnsupportedValue without certainty: texts under a collation of
     unknown order, an unknown function.

Source: locatePartitionCommon and ForKeyPruning in pkg/table/tables/partition.go.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from tidegate.errors import UnsupportedValue
from tidegate.remedy import REFILL
from tidegate.tidb.jobs import ColumnInfo, PartitionInfo, PartitionType, TableInfo
from tidegate.tidb.values.evaluate import Row, evaluate, parsed
from tidegate.tidb.values.operators import compare
from tidegate.tidb.values.sql_value import Sql, cell_value, plain_text, sql_value, whole

_MAXVALUE: Final = "MAXVALUE"
_DEFAULT: Final = "DEFAULT"
_PRINTED: Final = re.compile(r"[!-~ ]*")


def _refuse(what: str) -> UnsupportedValue:
    return UnsupportedValue(f"the partition of a row isn't known: {what}", remedy=REFILL)


class Locator:
    """The locator of rows in one table's partitioning."""

    def __init__(self, table: TableInfo) -> None:
        if table.partition is None:
            raise _refuse(f"{table.name} has none")
        self._info: PartitionInfo = table.partition
        self._columns: list[ColumnInfo] = []
        for name in self._info.columns:
            column = table.column(name)
            if column is None:
                raise _refuse(f"column {name} isn't known")
            self._columns.append(column)
        definitions = self._info.definitions
        self._bounds = [self._constants(definition.less_than) for definition in definitions]
        self._values = [[self._constants(value) for value in definition.in_values] for definition in definitions]

    def _constants(self, texts: Sequence[str]) -> list[Sql]:
        return [self._constant(n, text) for n, text in enumerate(texts)]

    def _constant(self, n: int, text: str) -> Sql:
        """A bound as the column has it; MAXVALUE and DEFAULT stand as they are."""
        if text.upper() in (_MAXVALUE, _DEFAULT):
            return text.upper()
        value = evaluate(parsed(text), _no_column)
        if not self._columns or value is None:
            return value
        column = self._columns[n]
        return self._ordered(column, sql_value(column, cell_value(column, value)))

    @staticmethod
    def _ordered(column: ColumnInfo, value: Sql) -> Sql:
        """A text as its collation orders it, where that is certain."""
        if not isinstance(value, str):
            return value
        if column.collation.endswith("_bin") or not column.collation:
            return value.rstrip(" ")
        if not _PRINTED.fullmatch(value):
            raise _refuse(f"how {value[:40]!r} compares under {column.collation} isn't known here")
        return value.rstrip(" ").upper()

    def of(self, row: Row) -> int:
        match self._info.type:
            case PartitionType.KEY:
                return self._by_key(row)
            case PartitionType.HASH:
                hashed = evaluate(parsed(self._info.expression), row)
                size = _signed(whole(hashed)) if hashed is not None else 0
                return abs(size) % len(self._info.definitions)
            case PartitionType.RANGE:
                return self._by_range(self._sides(row))
            case PartitionType.LIST:
                return self._by_list(self._sides(row))

    def _sides(self, row: Row) -> list[Sql]:
        if not self._columns:
            return [evaluate(parsed(self._info.expression), row)]
        return [self._ordered(column, row(column.name.lower())) for column in self._columns]

    def _by_range(self, sides: Sequence[Sql]) -> int:
        for at, bounds in enumerate(self._bounds):
            if len(bounds) != len(sides):
                raise _refuse(f"the bound of partition {self._info.definitions[at].name} isn't known")
            if _below(sides, bounds):
                return at
        raise _refuse(f"no partition is above {sides}")

    def _by_list(self, sides: Sequence[Sql]) -> int:
        default = None
        for at, values in enumerate(self._values):
            for value in values:
                if value == [_DEFAULT]:
                    default = at
                elif all(_equal(left, right) for left, right in zip(sides, value, strict=True)):
                    return at
        if default is None:
            raise _refuse(f"no partition has {sides}")
        return default

    def _by_key(self, row: Row) -> int:
        """CRC-32 of the columns' texts, each as its collation's sort key."""
        data = b""
        for column in self._columns:
            value = row(column.name.lower())
            if value is None:
                data += b"\0"
            elif isinstance(value, bytes):
                data += value
            elif isinstance(value, int | Decimal) or (isinstance(value, str) and column.collation.endswith("_bin")):
                data += plain_text(value).rstrip(" ").encode()
            else:
                raise _refuse(f"what KEY makes of column {column.name} ({column.type_text}) isn't known here")
        return zlib.crc32(data) % len(self._info.definitions)


def _no_column(name: str) -> Sql:
    raise _refuse(f"a bound names column {name}")


def _signed(value: int) -> int:
    """As an int64, TiDB's input of the hash also for an unsigned number."""
    return value - (1 << 64) if value >> 63 == 1 else value


def _below(sides: Sequence[Sql], bounds: Sequence[Sql]) -> bool:
    """Whether the sides come before the bounds, one after the other. NULL comes before all."""
    for left, right in zip(sides, bounds, strict=True):
        if right == _MAXVALUE or left is None:
            return True
        if order := compare(left, right):
            return order < 0
    return False


def _equal(left: Sql, right: Sql) -> bool:
    if left is None or right is None:
        return left is right
    return compare(left, right) == 0
