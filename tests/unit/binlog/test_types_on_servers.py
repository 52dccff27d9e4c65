"""Types that only some servers have, and all types at their bounds: the log says what SELECT says."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import duckdb
import pytest

from tests.kit.decoding import changed_rows, version_on
from tests.support.servers import FreshDatabase
from tests.unit.binlog.on_servers import Kind, assert_same, log_of, written
from tidegate.local.server import Server
from tidegate.segments.result import DecodedSegment
from tidegate.tables import OP, OP_DELETE
from tidegate.verify.columns.cells import cell

pytestmark = pytest.mark.server

MICROS = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {})"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def old_format(mariadb: Server) -> Iterator[Server]:
    """MariaDB with the temporal format of before 10.1 for new tables."""
    mariadb.query("SET GLOBAL mysql56_temporal_format = OFF")
    yield mariadb
    mariadb.query("SET GLOBAL mysql56_temporal_format = ON")


def micros(moment: dt.datetime | None) -> int | None:
    if moment is None:
        return None
    return (moment.replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1)


CLOCKS = ("00:00:00.000000", "23:59:59.999999", "12:34:56.123456", "01:02:03.000001", "00:00:00.100000")


def test_mariadbs_temporal_format_of_before_10_1(old_format: Server, fresh_database: FreshDatabase) -> None:
    kinds = [Kind(f"TIME({n})", "CAST({} AS CHAR)") for n in range(7)]
    kinds += [Kind(f"DATETIME({n})", MICROS) for n in range(7)]
    kinds += [Kind(f"TIMESTAMP({n}) NULL", MICROS) for n in range(7)]
    times = ["'-838:59:59.999999'", "'838:59:59.999999'", "'-00:00:00.000001'", "'-00:00:01'", "'-12:34:56.654321'"]
    times += [f"'{clock}'" for clock in CLOCKS]
    days = ["0001-01-01", "9999-12-31", "2024-02-29", "1969-12-31", "1000-01-01"]
    moments = [f"'{day} {clock}'" for day in days for clock in CLOCKS]
    stamps = [f"'{day} {clock}'" for day in ("1970-01-02", "2038-01-18", "2024-02-29") for clock in CLOCKS]
    stamps.append("'2038-01-19 03:14:07.999999'")
    rows = [
        [times[n % len(times)]] * 7 + [moments[n % len(moments)]] * 7 + [stamps[n % len(stamps)]] * 7 for n in range(32)
    ]
    rows.append(["NULL"] * 21)
    found, truth = written(old_format, fresh_database(old_format), kinds, rows)
    for number in range(len(rows)):
        ours = (*found[number][:7], *map(micros, found[number][7:]))
        assert ours == truth[number], rows[number][0]


def test_zero_dates_of_the_old_format_are_null(old_format: Server, fresh_database: FreshDatabase) -> None:
    kinds = [Kind(f"{base}({n}) NULL") for base in ("DATETIME", "TIMESTAMP") for n in range(7)]
    found, _ = written(old_format, fresh_database(old_format), kinds, [["'0000-00-00'"] * 14])
    assert found[0] == (None,) * 14


COMPRESSED = [
    Kind("VARCHAR(10) COMPRESSED"),
    Kind("VARCHAR(300) CHARACTER SET latin1 COMPRESSED"),
    Kind("VARCHAR(254) CHARACTER SET latin1 COMPRESSED"),
    Kind("VARCHAR(255) CHARACTER SET latin1 COMPRESSED"),
    Kind("VARBINARY(300) COMPRESSED"),
    Kind("TINYTEXT COMPRESSED"),
    Kind("TEXT COMPRESSED"),
    Kind("MEDIUMBLOB COMPRESSED"),
    Kind("LONGTEXT CHARACTER SET utf16 COMPRESSED"),
]


@pytest.mark.parametrize("setting", ["zlib_wrap = 0", "zlib_wrap = 1", "zlib_level = 0", "threshold = 0"])
def test_mariadbs_compressed_columns(mariadb: Server, fresh_database: FreshDatabase, setting: str) -> None:
    mariadb.query(f"SET GLOBAL column_compression_{setting}")
    sizes = [10, 300, 254, 255, 300, 255, 60000, 100000, 3000]
    texts = ["'é'", "'€'", "'ß'", "'x'", "x'00ff'", "'中'", "'a中'", "x'00'", "'𝄞'"]
    rows = [
        ["''"] * 9,
        ["NULL"] * 9,
        texts,
        [f"REPEAT('a', {n})" for n in sizes],
        [f"LEFT(MD5({n}), 10)" for n in sizes],
    ]
    try:
        assert_same(mariadb, fresh_database(mariadb), COMPRESSED, rows)
    finally:
        mariadb.query(f"SET GLOBAL column_compression_{setting.split(maxsplit=1)[0]} = DEFAULT")


SHAPES = [
    "POINT(1 2)",
    "LINESTRING(0 0,1.5 1e300,2 2)",
    "POLYGON((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1))",
    "MULTIPOINT(1 2,3 4)",
    "MULTILINESTRING((0 0,1 1),(2 2,3 3))",
    "MULTIPOLYGON(((0 0,4 0,4 4,0 0)))",
    "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))",
    "GEOMETRYCOLLECTION EMPTY",
]
SUBTYPES = ["POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"]


def test_a_geometry_is_wkb_and_with_an_srid_ewkb(any_server: Server, fresh_database: FreshDatabase) -> None:
    rows = [[f"ST_GeomFromText('{shape}', {srid})"] for shape in SHAPES for srid in (0, 4326, 3857)]
    rows = [row for row in rows if "1e300" not in row[0] or row[0].endswith(", 0)")]
    rows.append(["NULL"])
    found, truth = written(any_server, fresh_database(any_server), [Kind("GEOMETRY")], rows)
    for number, row in enumerate(rows):
        (ours,), (theirs,) = found[number], truth[number]
        if number == len(rows) - 1:
            assert (ours, theirs) == (None, None)
            continue
        srid, wkb = theirs[:4], theirs[4:]  # SELECT gives the column's own bytes
        if srid == bytes(4):
            assert ours == wkb, row
        else:
            assert ours == wkb[:4] + b"\x20" + srid + wkb[5:], row
    point = found[1][0]
    assert (point[:9].hex(), len(point)) == ("0101000020e6100000", 25)


def test_verify_shows_a_geometry_as_the_log_does(any_server: Server, fresh_database: FreshDatabase) -> None:
    rows = [[f"ST_GeomFromText('{shape}', {srid})"] for shape in SHAPES if "1e" not in shape for srid in (0, 4326)]
    compared = cell("c0", "geometry", "geometry")
    kinds = [Kind("GEOMETRY", compared.source_sql.replace("`c0`", "{}"))]
    found, truth = written(any_server, fresh_database(any_server), kinds, rows)
    assert compared.from_source is not None
    assert found == {number: (compared.from_source(value),) for number, (value,) in truth.items()}


def test_every_subtype_of_geometry(any_server: Server, fresh_database: FreshDatabase) -> None:
    kinds = [Kind(f"{subtype} NOT NULL", "SUBSTR({}, 5)") for subtype in SUBTYPES]
    assert_same(
        any_server, fresh_database(any_server), kinds, [[f"ST_GeomFromText('{shape}')" for shape in SHAPES[:7]]]
    )


def test_a_geometry_that_a_column_got_by_default_is_empty(mariadb: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(mariadb)
    mariadb.query("CREATE TABLE t (id INT PRIMARY KEY) SELECT 1 AS id", database=database)
    mariadb.query("ALTER TABLE t ADD g GEOMETRY NOT NULL", database=database)
    decoded = log_of(mariadb, database, ["UPDATE t SET id = 2"])
    assert [row["g"] for row in changed_rows(decoded)] == [b"", b""]


def netted(decoded: DecodedSegment, key: tuple[str, ...]) -> list[tuple[object, ...]]:
    """Rows that remain when changes are applied by key; without one, as a multiset."""
    state: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
    for row in changed_rows(decoded):
        values = tuple(value for name, value in row.items() if not name.startswith("_tg_"))
        place = tuple(row[name] for name in key) if key else values
        if row[OP] == OP_DELETE:
            state[place].pop()
        elif key:
            state[place] = [values]
        else:
            state.setdefault(place, []).append(values)
    return sorted((values for rows in state.values() for values in rows), key=repr)


PERIOD = ", s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END"
PERIOD += ", PERIOD FOR SYSTEM_TIME (s, e)"
VERSIONED = [
    ("id INT PRIMARY KEY, a INT", ""),
    ("id INT, a INT", ""),
    ("id INT PRIMARY KEY, a INT, b TEXT UNIQUE", ""),
    ("id INT PRIMARY KEY, a INT" + PERIOD, ""),
    ("id INT, a INT" + PERIOD, ""),
    ("id INT PRIMARY KEY, a INT WITHOUT SYSTEM VERSIONING", ""),
    ("id INT PRIMARY KEY, a INT", " PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION p1 CURRENT)"),
]


@pytest.mark.parametrize(("columns", "more"), VERSIONED)
def test_a_system_versioned_table_is_its_current_rows(
    mariadb: Server, fresh_database: FreshDatabase, columns: str, more: str
) -> None:
    database = fresh_database(mariadb)
    statements = [
        f"CREATE TABLE t ({columns}) WITH SYSTEM VERSIONING{more}",
        "INSERT INTO t (id, a) VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)",
        "UPDATE t SET a = 10 WHERE id < 3",
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET id = 20 WHERE id = 2",
        "INSERT INTO t (id, a) VALUES (1, 7)",
        "DELETE FROM t WHERE id IN (1, 4)",
        "REPLACE INTO t (id, a) VALUES (5, 50), (6, 60)",
        "SET system_versioning_insert_history = 1",
        "DELETE HISTORY FROM t",
        "INSERT INTO t (id, a) VALUES (9, 9)",
    ]
    if "ROW END" in columns:
        statements.append("INSERT INTO t (id, a, s, e) VALUES (3, 8, '2020-01-01', '2021-01-01')")
    decoded = log_of(mariadb, database, statements)
    assert decoded.problems == ()
    truth = mariadb.query("SELECT * FROM t ORDER BY id, a", database=database)
    (change,) = decoded.changes
    assert len(change.batch.schema.names) == 4 + len(truth[0])
    key = version_on(mariadb, database, "t").key_names
    found = [
        tuple(v.replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in r) for r in netted(decoded, key)
    ]
    assert found == sorted(truth, key=repr)


def test_a_year_of_two_digits_is_the_year_and_verify_knows_it(mariadb: Server, fresh_database: FreshDatabase) -> None:
    database, years = fresh_database(mariadb), (0, 1, 69, 70, 99, 2000, 2012)
    rows = [f"INSERT INTO t VALUES ({n}, {year})" for n, year in enumerate(years)]
    found = netted(log_of(mariadb, database, ["CREATE TABLE t (id INT PRIMARY KEY, y YEAR(2))", *rows]), ("id",))
    assert [year for _, year in found[1:]] == [2001, 2069, 1970, 1999, 2000, 2012]
    compared = cell("y", "year", "year(2)")
    shown = mariadb.query(f"SELECT id, {compared.source_sql} FROM t ORDER BY id", database=database)
    ours = [
        duckdb.sql(f"SELECT {row[0]}, {compared.silver_sql} FROM (SELECT {row[1]} AS y)").fetchone() for row in found
    ]
    assert ours == [(number, int(year)) for number, year in shown]


def test_the_hash_of_a_long_unique_key_is_hidden(mariadb: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(mariadb)
    create = (
        "CREATE TABLE t (id INT PRIMARY KEY, a TEXT UNIQUE, b BLOB, c CHAR(9), UNIQUE (b, c), UNIQUE (c) USING HASH)"
    )
    decoded = log_of(mariadb, database, [create, "INSERT INTO t VALUES (1, 'x', 'y', 'z')", "UPDATE t SET a = 'w'"])
    assert decoded.problems == ()
    assert netted(decoded, ("id",)) == [(1, "w", b"y", "z")]


def test_columns_that_are_hidden_without_a_name_are_told(mariadb: Server, fresh_database: FreshDatabase) -> None:
    create = "CREATE TABLE t (id INT PRIMARY KEY) WITH SYSTEM VERSIONING"
    mariadb.query("SET GLOBAL binlog_row_metadata = NO_LOG")
    try:
        decoded = log_of(mariadb, fresh_database(mariadb), [create, "INSERT INTO t VALUES (1)"])
    finally:
        mariadb.query("SET GLOBAL binlog_row_metadata = FULL")
    assert "MariaDB's hidden columns" in decoded.problems[0].message


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB", "FULL_NODUP"])
def test_a_system_versioned_table_with_images_that_lack_columns(
    mariadb: Server, fresh_database: FreshDatabase, image: str
) -> None:
    database = fresh_database(mariadb)
    statements = [
        f"SET binlog_row_image = '{image}'",
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT) WITH SYSTEM VERSIONING",
        "INSERT INTO t (id, a) VALUES (1, 1), (2, 2), (3, 3)",
        "UPDATE t SET a = 10 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "UPDATE t SET id = 5 WHERE id = 1",
    ]
    decoded = log_of(mariadb, database, statements)
    assert decoded.problems == ()
    assert netted(decoded, ("id",)) == mariadb.query("SELECT * FROM t ORDER BY id", database=database)
