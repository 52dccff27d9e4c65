"""One value's text is the same on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate.query import duck
from tidegate.verify.columns.forms import decimal_text, form


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with duck.connect(1 << 26) as made:
        yield made


@pytest.mark.parametrize(
    ("value", "declared", "shown"),
    [
        ("0.5", "DECIMAL(2,2)", "0.50"),
        ("-0.05", "DECIMAL(3,3)", "-0.050"),
        ("0", "DECIMAL(2,2)", "0.00"),
        ("-1.5", "DECIMAL(5,2)", "-1.50"),
        ("-7", "DECIMAL(5,0)", "-7"),
    ],
)
def test_a_decimal_reads_as_a_server_writes_it(connection: Any, value: str, declared: str, shown: str) -> None:
    text = decimal_text(f"'{value}'::{declared}")
    assert connection.execute(f"SELECT {text}").fetchone() == (shown,)


def test_a_bound_is_in_the_bytes_that_its_literal_says() -> None:
    latin1 = form("a", "varchar", "varchar(9)", "latin1")
    utf8 = form("a", "varchar", "varchar(9)", "utf8mb4")
    assert (latin1.bound, latin1.bound_literal("E9")) == ("HEX(`a`)", "_latin1 x'E9'")
    assert (utf8.bound, utf8.bound_literal("C3A9")) == ("HEX(CONVERT(`a` USING utf8mb4))", "_utf8mb4 x'C3A9'")
