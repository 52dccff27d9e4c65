"""A key's canonical value as a literal of SQL: no value ends it early, and a server converts only what it must."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.schema.replay.test_history import Session
from tidegate.errors import UnsupportedValue
from tidegate.snapshot.reading.by_key import key_literal


@pytest.mark.parametrize(
    ("declared", "value", "literal"),
    [
        ("INT", -7, "-7"),
        ("BIGINT UNSIGNED", Decimal(2**64 - 1), str(2**64 - 1)),
        ("YEAR", 2024, "2024"),
        ("BIT(1)", True, "1"),
        ("BIT(12)", b"\x0f\xff", "4095"),
        ("DECIMAL(20,4)", Decimal("1E+3"), "1000"),
        ("FLOAT", 0.10000000149011612, "0.10000000149011612e0"),
        ("DOUBLE", 1e300, "1e+300"),
        ("DATE", date(2020, 2, 29), "'2020-02-29'"),
        ("DATETIME(3)", datetime.fromisoformat("0001-02-03 04:05:06.007"), "'0001-02-03 04:05:06.007000'"),
        ("TIMESTAMP", datetime(2020, 1, 1, tzinfo=UTC), "'2020-01-01 00:00:00.000000'"),
        ("TIME", "-12:00:01", "'-12:00:01'"),
        ("VARBINARY(9)", b"'\x00", "x'2700'"),
        ("VARCHAR(9) CHARACTER SET latin1", "a'b", "_latin1 x'612762'"),
        ("VARCHAR(9) CHARACTER SET latin1", "é", "_utf8mb4 x'c3a9'"),
        ("VARCHAR(9) CHARACTER SET swe7", "[", "_utf8mb4 x'5b'"),
        ("VARCHAR(9) CHARACTER SET utf16", "a", "_utf8mb4 x'61'"),
        ("ENUM('x''y')", "x'y", "_utf8mb4 x'782779'"),
    ],
)
def test_a_literal_of_each_kind(declared: str, value: Any, literal: str) -> None:
    session = Session()
    session.run(f"CREATE TABLE t (k {declared} PRIMARY KEY) CHARACTER SET utf8mb4")
    assert key_literal(session.history.versions("db", "t")[-1].columns[0], value) == literal


@pytest.mark.parametrize(("declared", "value"), [("TIME", "1' OR '1"), ("JSON", "{}"), ("POINT", b"")])
def test_what_is_no_key_is_refused(declared: str, value: Any) -> None:
    session = Session()
    session.run(f"CREATE TABLE t (k {declared})")
    with pytest.raises(UnsupportedValue, match="can't be asked for as a key"):
        key_literal(session.history.versions("db", "t")[-1].columns[0], value)
