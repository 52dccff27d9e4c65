"""Keys of ENUM and SET columns that become text: a prefix, or whole, as MySQL itself says afterwards.

In:  a real MySQL 9; columns of members in several charsets, their new types.
Out: schema_history has the key that the server has.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.replay.history import SchemaHistory

pytestmark = pytest.mark.server

MANY = ", ".join(f"'{number}'" for number in range(300))
FORMS = (
    "ENUM('a', 'b')",
    "ENUM('aaaa', 'bb')",
    f"ENUM({MANY})",
    "SET('x')",
    "SET('x', 'y')",
    f"SET({', '.join(repr(f'm{number}') for number in range(30))})",
)
CHARSETS = ("utf8mb4", "latin1", "ucs2", "binary")
TEXTS = ("VARCHAR(200)", "CHAR(1)", "CHAR(3)", "VARBINARY(200)", "VARCHAR(200) CHARACTER SET latin1", "INT")


def statements(form: str, charset: str, text: str) -> tuple[str, str]:
    create = f"CREATE TABLE t (id {form} CHARACTER SET {charset} NOT NULL, x INT NOT NULL, PRIMARY KEY (x, id))"
    return create, f"ALTER TABLE t MODIFY id {text} NOT NULL"


@pytest.mark.parametrize("charset", CHARSETS)
def test_the_key_is_what_the_server_makes_of_it(mysql9: Server, fresh_database: FreshDatabase, charset: str) -> None:
    database = fresh_database(mysql9)
    (version,) = (str(row[0]) for row in mysql9.query("SELECT VERSION()"))
    parts = set()
    for form, text in product(FORMS, TEXTS):
        history = SchemaHistory("s")
        for at, sql in enumerate(statements(form, charset, text)):
            mysql9.query(sql, database=database)
            history.replay(
                DdlStatement(
                    sql=sql, database="d", sql_mode=0, commit_ts=10 + at, file="b.1", pos=at,
                    timestamp_us=0, charset="utf8mb4", server_version=version,
                )
            )  # fmt: skip
        rows = mysql9.query(
            "SELECT sub_part FROM information_schema.statistics"
            f" WHERE table_schema = '{database}' AND table_name = 't' AND column_name = 'id'"
        )
        whole = rows[0][0] is None
        parts.add(whole)
        now = history.versions("d", "t")[-1]
        assert (now.key_names == ("x", "id")) == whole, (form, text, rows)
        mysql9.query("DROP TABLE t", database=database)
    assert parts == {True, False}
