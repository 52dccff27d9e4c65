"""A plan from a TABLE_MAP alone: for `tidegate decode`, which has no schema_history.

In:  the body of a TABLE_MAP.
Out: an InferredPlan: the result of make_plan for the table version in the event itself.

With FULL metadata that is the table as its server knows it. With MINIMAL, columns are @1, @2, ...,
and ENUM and SET values are numbers, for their members aren't in the log. Without any (MySQL before
8.0, MariaDB's default), integers count as signed and strings have no character set: they are text
when they are valid UTF-8 (`guessed`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from tidegate.binlog.format.table_map import TableMap, WireColumn, parse_table_map
from tidegate.binlog.format.wire_types import type_text
from tidegate.binlog.rows.decode_plan import Plan, make_plan
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import DecodeError
from tidegate.remedy import REPORT
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import NUMBER_NAMES, Wire
from tidegate.schema.model.types import canonical

_STRINGS: Final = frozenset(
    {Wire.STRING, Wire.VARCHAR, Wire.VAR_STRING, Wire.BLOB, Wire.VARCHAR_COMPRESSED, Wire.BLOB_COMPRESSED}
)
# ENUM and SET without members, by their bytes: the unsigned integer of that width.
_BY_WIDTH: Final = {
    1: ("tinyint unsigned", L.CELL_UINT8),
    2: ("smallint unsigned", L.CELL_UINT16),
    3: ("mediumint unsigned", L.CELL_UINT24),
    4: ("int unsigned", L.CELL_UINT32),
    8: ("bigint unsigned", L.CELL_UINT64),
}


@dataclass(frozen=True, slots=True)
class InferredPlan:
    """guessed: numbers of columns that may be text or not. blind: the event lacks signedness and character sets, and
    they matter.
    """

    plan: Plan
    guessed: frozenset[int]
    blind: bool


@lru_cache(maxsize=4096)
def infer_plan(body: bytes, *, mariadb: bool = False) -> InferredPlan:
    """Raises DecodeError and UnsupportedValue, as make_plan does. mariadb: whether a MariaDB wrote the event."""
    table_map = parse_table_map(body, mariadb=mariadb)
    plan = make_plan(body, version_of(table_map), mariadb=mariadb)
    words = plan.words.copy().reshape(-1, L.COLUMN_WORDS)
    columns = list(plan.columns)
    guessed = set()
    for i, wire in enumerate(table_map.columns):
        if wire.type in (Wire.ENUM, Wire.SET) and wire.members is None:
            width = int(words[i, L.WIDTH])
            if width not in _BY_WIDTH:
                raise DecodeError(f"column {i + 1} is a {wire.type.name} of {width} bytes", remedy=REPORT)
            text, cell = _BY_WIDTH[width]
            words[i, L.KIND] = cell
            words[i, L.P1 : L.P4 + 1] = 0
            columns[i] = replace(columns[i], type=canonical(Column(1, columns[i].name, text)), cell=cell, members=())
        elif _unsaid(wire):
            words[i, L.P1 : L.P4 + 1] = 0  # no padding: it may be a CHAR
            guessed.add(i)
    words.setflags(write=False)
    made = replace(plan, columns=tuple(columns), words=words.reshape(-1))
    blind = all(wire.unsigned is None and wire.charset is None for wire in table_map.columns)
    return InferredPlan(made, frozenset(guessed), blind and any(map(_matters, table_map.columns)))


def version_of(table_map: TableMap) -> TableVersion:
    """The table version that a TABLE_MAP describes. Raises UnsupportedValue for a type without a name in SQL."""
    columns = tuple(_column(i, wire) for i, wire in enumerate(table_map.columns, 1))
    return TableVersion(
        source="",
        database=table_map.database,
        table=table_map.table,
        version=0,
        commit_ts=0,
        file="",
        pos=0,
        kind="table map",
        ddl="",
        columns=columns,
        key=tuple(i + 1 for i in table_map.primary_key or () if i < len(columns)),
        charset="",
    )


def _unsaid(wire: WireColumn) -> bool:
    """Whether only a character set could say if this is text."""
    return wire.charset is None and wire.type in _STRINGS


def _matters(wire: WireColumn) -> bool:
    return _unsaid(wire) or (wire.type in NUMBER_NAMES and wire.type not in (Wire.FLOAT, Wire.DOUBLE))


def _column(number: int, wire: WireColumn) -> Column:
    name = wire.name if wire.name is not None else f"@{number}"
    charset = wire.charset or ""
    return Column(number, name, type_text(wire), wire.nullable, "" if charset == "binary" else charset)
