"""Text that stands in a row's hash as it is: whatever it holds, no two rows are taken for each other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.silver_by_hand import Lake, lake

__all__ = ["lake"]  # a fixture

pytestmark = pytest.mark.server


# What must not be taken for each other, each in a column of a character set or collation of its own.
MIXED = (
    "g VARCHAR(40) COLLATE utf8mb4_general_ci, b VARCHAR(40) COLLATE utf8mb4_bin, l VARCHAR(40) CHARACTER SET latin1,"
    " w VARCHAR(40) CHARACTER SET utf16, t TEXT COLLATE utf8mb4_unicode_ci, m MEDIUMTEXT, e ENUM('1:a', '', 'N')"
)


@pytest.mark.parametrize("key", [", PRIMARY KEY (id)", ""], ids=["keyed", "keyless"])
def test_text_that_looks_like_the_form_in_which_it_is_hashed_is_told_apart(lake: Lake, key: str) -> None:
    texts = ["", "N", "?", "1:a", "a,1:b", "é", "a ", "a", None]
    names = ["g", "b", "l", "w", "t", "m"]
    lake.server.query(f"CREATE TABLE t (id INT NOT NULL, {MIXED}{key})", database=lake.database)
    rows: list[list[Any]] = []
    for n, text in enumerate(texts):
        rows.append([n, *(text if (n + at) % 3 else None for at in range(len(names))), ["1:a", "", "N", None][n % 4]])
        lake.server.query(f"INSERT INTO t VALUES ({', '.join(['%s'] * 8)})", tuple(rows[-1]), database=lake.database)
    lake.silver("t", _typed(rows, names))
    lake.publish()
    assert lake.verify().equal
    changed = 0
    for row in rows:  # each text becomes the next one, or a NULL where there was none
        at = 1 + row[0] % len(names)
        row[at] = texts[(texts.index(row[at]) + 1) % len(texts)]
        changed += 1
    lake.silver("t", _typed(rows, names))
    (found,) = lake.verify().tables
    assert found.different == (changed if key else 2 * changed)


def test_a_geometry_that_a_lax_mode_left_empty_is_equal(lake: Lake) -> None:
    """MariaDB writes no bytes where NOT NULL has no value. A row without a key has nothing but its hash."""
    if lake.server.flavour != "mariadb":
        pytest.skip("MySQL refuses such a row")
    with lake.server.connect(lake.database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("CREATE TABLE t (id INT NOT NULL, g GEOMETRY NOT NULL)")
        cursor.execute("INSERT INTO t (id) VALUES (1)")
    lake.silver("t", pa.table({"id": pa.array([1], pa.int32()), "g": pa.array([b""], pa.binary())}))
    lake.publish()
    assert lake.verify().equal


def _typed(rows: list[list[Any]], names: list[str]) -> pa.Table:
    columns = [pa.array([row[0] for row in rows], pa.int32())]
    columns += [pa.array([row[at] for row in rows], pa.string()) for at in range(1, 8)]
    return pa.table(columns, names=["id", *names, "e"])
