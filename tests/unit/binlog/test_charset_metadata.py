"""Charsets in TABLE_MAP's optional metadata belong to the right columns.

What counts as a character column differs: MySQL's list has VECTOR in it, MariaDB's has geometries. Random tables on
real servers found both; one column too few or too many gives the others a wrong charset.
"""

from __future__ import annotations

import itertools

import pytest

from tests.unit.binlog.encoding.types import wire_type
from tests.unit.binlog.logs import Dress, Table
from tidegate.binlog.format.table_map import parse_table_map

_HEAD = 19 + 8  # header, table id, flags
_COLUMNS = {
    "vector": wire_type("vector(2)"),
    "point": wire_type("point"),
    "text": wire_type("text", "utf8mb4"),
    "varchar": wire_type("varchar(5)", "gbk"),
    "blob": wire_type("blob"),
}


@pytest.mark.parametrize("mysql", [True, False], ids=["mysql", "mariadb"])
@pytest.mark.parametrize("default", [True, False], ids=["default and exceptions", "one for each"])
def test_each_column_has_its_own_charset(mysql: bool, default: bool) -> None:
    names = [name for name in _COLUMNS if mysql or name != "vector"]
    for order in itertools.permutations(names):
        table = Table("t", tuple(_COLUMNS[name] for name in order))
        event = table.map_event(5, Dress(mysql=mysql, default_charset=default))
        columns = parse_table_map(event[_HEAD:-4], mariadb=not mysql).columns
        charsets = {name: column.charset for name, column in zip(order, columns, strict=True)}
        assert (charsets["text"], charsets["varchar"], charsets["blob"]) == ("utf8mb4", "gbk", "binary")
