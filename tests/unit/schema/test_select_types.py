"""Types of CREATE TABLE ... SELECT as MariaDB 10.11 gave them; what hangs on a session is unknown until it is told."""

from __future__ import annotations

import pytest

from tidegate.ddl_script.script import Script
from tidegate.ddl_script.shown_columns import shown_columns
from tidegate.schema.ddl.tokens import Server

VERSION = "10.11.19-MariaDB"
TABLE = """CREATE TABLE b (i int, n int not null, d decimal(10,3), dn decimal(10,3) unsigned not null, f float,
    f2 float(10,2), g double, v varchar(10), vn varchar(300) not null, u varchar(20) character set utf8mb4,
    tx text, u8 text character set utf8mb3, e enum('a','bb'), uu uuid, i6 inet6, b9 bit(9)) CHARACTER SET latin1"""


def _column(expression: str, *settings: str) -> tuple[str, bool, str | None] | None:
    """(type, nullable, collation); None for unknown."""
    script = Script("db", VERSION)
    for line, sql in enumerate([*settings, TABLE, f"CREATE TABLE x AS SELECT {expression} AS a FROM b"]):
        script.run(line, sql)
    if ("db", "x") in script.history.held:
        return None
    (column,) = shown_columns(script.tables()["db.x"], Server.of(VERSION))
    return column["type"], column["nullable"], column["collation"]


@pytest.mark.parametrize(
    ("expression", "kind", "nullable"),
    [
        ("1 / 0.123456789012345678901234567890123456789012", "decimal(47,4)", True),
        ("1 + 0.123456789012345678901234567890123456789012", "decimal(44,38)", False),
        ("ifnull(d + 0.00000000000000000000000000000000000000000000000001, null)", "decimal(52,38)", True),
        ("case i when 1 then 0.0000000000000000000000000000000000000000001 end", "decimal(39,38)", True),
        ("coalesce(f2, i)", "double(13,2)", True),
        ("least(f2, f2)", "float(19,2)", True),
        ("max(coalesce(f2))", "double(19,2)", True),
        ("f2 / 2", "double(14,6)", True),
        ("coalesce(dn, null)", "decimal(10,3)", False),
        ("case i when 1 then dn end", "decimal(10,3) unsigned", True),
        ("coalesce(uu, '123e4567-e89b-12d3-a456-426655440000')", "uuid", False),
        ("coalesce(i6, 'ipv6')", "inet6", True),
        ("'' div dn", "int(1) unsigned", True),
        ("sec_to_time(1.12)", "time(2)", True),
        ("str_to_date(v, '%H:%i:%s.%f')", "time(6)", True),
        ("unix_timestamp('2001-01-01 10:10:10.12')", "decimal(18,2)", True),
        ("extract(day_hour from v)", "int(10)", True),
    ],
)
def test_numbers_and_addresses_need_no_session(expression: str, kind: str, nullable: bool) -> None:
    assert _column(expression) == (kind, nullable, None)


@pytest.mark.parametrize("expression", ["'abc'", "concat(i)", "cast(v as char)", "repeat('a', 3)", "format(d, 0)"])
def test_a_text_in_the_sessions_character_set_is_unknown_until_it_is_told(expression: str) -> None:
    assert _column(expression) is None
    told = _column(expression, "SET NAMES utf8mb3 COLLATE utf8_bin", "SET sql_mode=''")
    assert told is not None
    assert told[2] == "utf8mb3_bin"


def test_whether_a_functions_text_is_null_hangs_on_strict_mode() -> None:
    assert _column("upper(vn)") is None
    assert _column("upper(vn)", "SET sql_mode=''") == ("varchar(300)", False, "latin1_swedish_ci")
    assert _column("upper(vn)", "SET sql_mode='TRADITIONAL'") == ("varchar(300)", True, "latin1_swedish_ci")
    assert _column("upper(v)") == ("varchar(10)", True, "latin1_swedish_ci")


def test_character_sets_come_together_as_the_server_does_it() -> None:
    assert _column("coalesce(v, u)") == ("varchar(20)", True, "utf8mb4_general_ci")
    assert _column("concat(v, 'x', i)") == ("varchar(22)", True, "latin1_swedish_ci")
    assert _column("coalesce(e, i)") == ("varchar(11)", True, "latin1_swedish_ci")
    assert _column("coalesce(u8, v)") == ("mediumtext", True, "utf8mb3_general_ci")
    assert _column("concat(v, b9)") == ("varbinary(19)", True, None)


@pytest.mark.parametrize(
    ("first", "second", "kind", "collation"),
    [
        ("i", "d", "decimal(13,3)", None),
        ("1", "12", "int(3)", None),
        ("v", "tx", "text", "latin1_swedish_ci"),
        ("v", "vn", "varchar(300)", "latin1_swedish_ci"),
        ("e", "null", "enum('a','bb')", "latin1_swedish_ci"),
        ("u8", "u8", "mediumtext", "utf8mb3_general_ci"),
        ("i6", "v", "inet6", None),
    ],
)
def test_a_union_joins_types(first: str, second: str, kind: str, collation: str | None) -> None:
    found = _column(f"{first} AS a FROM b UNION ALL SELECT {second}")
    assert found is not None
    assert (found[0], found[2]) == (kind, collation)


def test_a_character_set_is_forgotten_with_what_the_script_does_not_tell() -> None:
    assert _column("'abc'", "SET NAMES latin1", "SET NAMES DEFAULT") is None
    assert _column("'abc'", "SET NAMES latin1", "SET CHARACTER SET utf8") is None
    assert _column("'abc'", "SET collation_connection=utf8mb4_bin") == ("varchar(3)", False, "utf8mb4_bin")


def test_digits_of_a_division_are_not_guessed_once_the_script_sets_them() -> None:
    assert _column("i / 3") == ("decimal(14,4)", True, None)
    for expression in ("i / 3", "1 + avg(d)", "std(i)", "avg(i) over ()"):
        assert _column(expression, "SET SESSION div_precision_increment=7") is None, expression
    assert _column("i / 3", "SET div_precision_increment=7", "SET div_precision_increment=DEFAULT") is not None
