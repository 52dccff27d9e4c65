"""Every data type, asked of every place that has to know it: what is forgotten for a new one fails here by its name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.reference.decode import _READERS
from tidegate.binlog.format.table_map import WireColumn
from tidegate.binlog.format.wire_types import type_text
from tidegate.binlog.rows.column_cells import _CELLS, cell_of
from tidegate.delta.table.arrow_types import arrow_type, delta_json
from tidegate.errors import UnsupportedValue
from tidegate.log_files.as_json.column import _WRITERS
from tidegate.schema.ddl.reader import read
from tidegate.schema.ddl.tree import CreateTable
from tidegate.schema.ddl.types import shown_type
from tidegate.schema.follow.added_columns import _LITERALS, existing_row_value
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.type_table import GEOMETRY_NAMES, TYPES, Kind, Wire
from tidegate.schema.model.types import canonical, parse_type
from tidegate.snapshot.reading.result.plan import make_read_plan
from tidegate.ticdc.cells import _CONVERT, _DATES
from tidegate.tidb.rows.row_plan import _READ
from tidegate.upsert.keys.hash import Cells
from tidegate.verify.columns.cells import cell
from tidegate.verify.columns.column_types import due_type

# Of each type a column: its text, its character set, and (length, decimals) as a TABLE_MAP has them.
EXAMPLES: dict[str, tuple[str, str, int, int]] = {
    **{base: (base, "", 0, 0) for base in ("tinyint", "smallint", "mediumint", "int", "bigint", "float", "double")},
    "decimal": ("decimal(12,3)", "", 12, 3),
    "bit": ("bit(9)", "", 9, 0),
    "date": ("date", "", 0, 0),
    "datetime": ("datetime(3)", "", 0, 3),
    "timestamp": ("timestamp(3)", "", 0, 3),
    "time": ("time(3)", "", 0, 3),
    "year": ("year", "", 0, 0),
    "char": ("char(5)", "utf8mb4", 20, 0),
    "varchar": ("varchar(5)", "utf8mb4", 20, 0),
    "binary": ("binary(5)", "", 5, 0),
    "varbinary": ("varbinary(5)", "", 5, 0),
    **{f"{size}text": (f"{size}text", "utf8mb4", n, 0) for n, size in enumerate(("tiny", "", "medium", "long"), 1)},
    **{f"{size}blob": (f"{size}blob", "", n, 0) for n, size in enumerate(("tiny", "", "medium", "long"), 1)},
    "enum": ("enum('a','b')", "utf8mb4", 1, 0),
    "set": ("set('a','b')", "utf8mb4", 1, 0),
    "json": ("json", "", 4, 0),
    "vector": ("vector(3)", "", 4, 0),
    "uuid": ("uuid", "", 16, 0),
    "inet4": ("inet4", "", 4, 0),
    "inet6": ("inet6", "", 16, 0),
    **{name: (name, "", 4, 0) for names in GEOMETRY_NAMES for name in names},
}
# Of these an added column's default is no literal that we read, or none is allowed.
WITHOUT_LITERALS = {Kind.JSON, Kind.GEOMETRY, Kind.VECTOR, Kind.UUID, Kind.INET}
# These have no implicit value that we know: a table waits for a snapshot.
WITHOUT_IMPLICIT = {Kind.GEOMETRY, Kind.VECTOR}
# Silver keeps no key of these.
NO_KEYS = {Kind.VECTOR}
MARIADB_ALONE = {"uuid", "inet4", "inet6"}
NOT_OF_TIDB = {Kind.GEOMETRY, Kind.UUID, Kind.INET}
# A Pump has these as bytes, and each value is converted by itself.
RAW_OF_A_PUMP = {Kind.JSON, Kind.VECTOR, Kind.DECIMAL_TEXT}
# As the log has them they aren't told apart from others: BINARY, and the geometry of the same number.
AMBIGUOUS = MARIADB_ALONE | {"geomcollection"}


def _column(base: str, *, nullable: bool = True) -> Column:
    text, charset, _, _ = EXAMPLES[base]
    return Column(1, "c", text, nullable, charset)


def _wire(base: str) -> WireColumn:
    _, charset, length, decimals = EXAMPLES[base]
    row = TYPES[base]
    geometry = next((n for n, names in enumerate(GEOMETRY_NAMES) if base in names), None)
    members = (b"a", b"b") if base in ("enum", "set") else None
    dimensions = 3 if base == "vector" else None
    has_charset = row.kind in (Kind.TEXT, Kind.BINARY, Kind.ENUM, Kind.SET)
    said = (charset or "binary") if has_charset else None
    return WireColumn(
        row.wire[0], length, decimals, True, charset=said, members=members, geometry=geometry, dimensions=dimensions
    )


def test_every_type_has_an_example_here() -> None:
    assert EXAMPLES.keys() == TYPES.keys()


def test_tables_by_kind_name_every_kind() -> None:
    of_rows = {row.kind for row in TYPES.values()}
    assert set(_CELLS) == of_rows
    assert set(_READERS) == set(Kind)
    assert set(_WRITERS) == set(Kind) - {Kind.FLOAT, Kind.DOUBLE}, "a kernel writes these two"
    assert set(_LITERALS) == set(Kind) - WITHOUT_LITERALS - {Kind.TIMESTAMP}
    assert _CONVERT.keys() | _DATES == set(Kind) - NOT_OF_TIDB
    assert _READ.keys() | RAW_OF_A_PUMP == set(Kind) - NOT_OF_TIDB
    assert set(Kind) - of_rows == {Kind.UNSIGNED_BIGINT, Kind.BOOLEAN, Kind.DECIMAL_TEXT}


@pytest.mark.parametrize("base", TYPES)
def test_silver_has_a_type_for_it(base: str) -> None:
    kind = canonical(_column(base))
    assert arrow_type(delta_json(kind.delta)) == kind.arrow
    if kind.kind in NO_KEYS:
        with pytest.raises(UnsupportedValue):
            Cells([pa.nulls(1, kind.arrow)])
    else:
        assert Cells([pa.nulls(1, kind.arrow)]).count == 1


@pytest.mark.parametrize("base", TYPES)
def test_the_log_says_what_the_schema_says(base: str) -> None:
    column, wire = _column(base), _wire(base)
    assert cell_of(wire, column, canonical(column)) is not None
    assert cell_of(WireColumn(Wire.NULL, 0, 0, True), column, canonical(column)) is None
    if base not in AMBIGUOUS:
        assert type_text(wire) == column.type


@pytest.mark.parametrize("base", TYPES)
def test_a_statement_names_it(base: str) -> None:
    server = ServerVersion.of("11.4.5-MariaDB" if base in MARIADB_ALONE else "9.7.4")
    made = read(f"CREATE TABLE t (c {EXAMPLES[base][0]})", database="d", server=server)
    assert isinstance(made, CreateTable)
    shown, _, _ = shown_type(made.columns[0].type, ("utf8mb4", "utf8mb4_bin"), server)
    named = "geomcollection" if base == "geometrycollection" else base
    assert parse_type(shown).base == named


@pytest.mark.parametrize("base", TYPES)
def test_rows_from_before_it_was_added_have_a_value_or_wait(base: str) -> None:
    assert existing_row_value(_column(base)) is None
    if canonical(_column(base)).kind in WITHOUT_IMPLICIT:
        with pytest.raises(UnsupportedValue):
            existing_row_value(_column(base, nullable=False))
    else:
        pa.scalar(existing_row_value(_column(base, nullable=False)), canonical(_column(base)).arrow)


@pytest.mark.parametrize("base", TYPES)
def test_a_snapshot_reads_it(base: str) -> None:
    column = _column(base)
    version = TableVersion("s", "d", "t", 1, 0, "", 0, "create", "", (column,), (), "utf8mb4")
    plan = make_read_plan(version)
    assert plan.schema.field("c").type == canonical(column).arrow


@pytest.mark.parametrize("base", TYPES)
def test_verify_compares_it(base: str) -> None:
    assert cell("c", base, EXAMPLES[base][0]).source_sql


@pytest.mark.parametrize("base", TYPES)
def test_verify_knows_its_type_in_silver(base: str) -> None:
    text = EXAMPLES[base][0]
    assert due_type(base, text) == canonical(_column(base)).delta
    for other in ("{} unsigned", "{}(11) unsigned zerofill"):
        if TYPES[base].unsigned is not None:
            declared = other.format(base)
            assert due_type(base, declared) == canonical(Column(1, "c", declared, True, None)).delta


@pytest.mark.parametrize("text", ["decimal(38,10)", "decimal(39,0)", "decimal(1,1)", "bit(1)", "bit(2)"])
def test_verify_knows_the_type_of_so_many_digits(text: str) -> None:
    assert due_type(text.partition("(")[0], text) == canonical(Column(1, "c", text, True, None)).delta
