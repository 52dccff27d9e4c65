"""Statements about indexes and options alone, in every form that a server takes: read, and no column changes by them.

In:  a server, a table with a column of each kind that an index may be of.
Out: after each statement the history is what information_schema says, and it holds nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.own_server import own_server_or_skip
from tidegate.local.server import Server
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SchemaHistory

pytestmark = pytest.mark.server

TABLE: Final = (
    "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT NOT NULL, b VARCHAR(100) NOT NULL, c TEXT, g GEOMETRY NOT NULL,"
    " j JSON, s DATE NOT NULL, e DATE NOT NULL{})"
)
EVERYWHERE: Final = (
    "ALTER TABLE t ADD FULLTEXT name (b)",
    "CREATE FULLTEXT INDEX name ON t (c) COMMENT 'x, y)' ALGORITHM=INPLACE LOCK=SHARED",
    "ALTER TABLE t ADD SPATIAL name (g)",
    "ALTER TABLE t ADD SPATIAL INDEX name (g) COMMENT 'x'",
    "ALTER TABLE t ADD UNIQUE n USING BTREE (b) USING BTREE",
    "ALTER TABLE t ADD INDEX n TYPE BTREE (b)",
    "CREATE INDEX n USING BTREE ON t (b DESC)",
    "ALTER TABLE t ADD CONSTRAINT n UNIQUE KEY m (a)",
    "ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY n (a) REFERENCES t (id) MATCH FULL ON DELETE NO ACTION",
    'ALTER TABLE t ADD INDEX `a``b` (a) COMMENT "it\'s"',
    "ALTER TABLE t ALGORITHM=INPLACE, LOCK=NONE, ADD INDEX n (a)",
    "ALTER TABLE t ORDER BY a DESC, b",
    "ALTER TABLE t COMMENT 'ADD VECTOR name (x), ADD x INT', STATS_AUTO_RECALC DEFAULT",
    "ALTER TABLE t ADD clustering INT, ADD visible INT",
    "CREATE TABLE u (clustering INT, ignored INT, enforced INT, CHECK (ignored > 0))",
)
MYSQL: Final = (
    "ALTER TABLE t ADD FULLTEXT INDEX name (b, c) /*!50100 WITH PARSER `ngram` */",
    "CREATE FULLTEXT INDEX name ON t (c) WITH PARSER ngram",
    "ALTER TABLE t ADD UNIQUE INDEX n (a) INVISIBLE",
    "ALTER TABLE t ADD INDEX n ((a + 1), b), ADD UNIQUE m ((lower(b)))",
    "CREATE INDEX n ON t ((CAST(j->>'$.x' AS CHAR(10) ARRAY)))",
    "ALTER TABLE t ADD CONSTRAINT n CHECK (a > 0) NOT ENFORCED",
    "ALTER TABLE t ADD vector VECTOR(3), ADD INDEX n (a)",
    "CREATE TABLE u (id INT PRIMARY KEY, vector VECTOR(3), INDEX n (id) INVISIBLE)",
    "ALTER TABLE t AUTOEXTEND_SIZE=4M, SECONDARY_ENGINE=NULL",
)
MARIADB: Final = (
    "ALTER TABLE t ADD INDEX name (a) IGNORED",
    "ALTER TABLE t ALTER INDEX IF EXISTS zz IGNORED, ADD INDEX n (a) NOT IGNORED",
    "CREATE OR REPLACE INDEX n ON t (a)",
    "ALTER TABLE t NOWAIT ADD INDEX n (a)",
    "ALTER TABLE t ADD UNIQUE n (c)",
    "ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY IF NOT EXISTS n (a) REFERENCES t (id) ON DELETE RESTRICT",
    "ALTER TABLE t DROP PERIOD FOR p",
    "ALTER TABLE t PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL=3",
)
# The period is an earlier statement's.
OVER_PERIODS: Final = (
    "ALTER TABLE t ADD UNIQUE n (a, p WITHOUT OVERLAPS)",
    "CREATE UNIQUE INDEX n ON t (b, a, p WITHOUT OVERLAPS)",
    "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, p WITHOUT OVERLAPS)",
)
VECTORS: Final = (
    "ALTER TABLE t ADD VECTOR name (v)",
    "ALTER TABLE t ADD VECTOR name (v) M=6",
    "ALTER TABLE t ADD VECTOR (v)",
    "ALTER TABLE t ADD VECTOR INDEX IF NOT EXISTS name (v) M=8 DISTANCE=cosine",
    "CREATE VECTOR INDEX IF NOT EXISTS name ON t (v) DISTANCE=euclidean",
    "CREATE TABLE u (id INT PRIMARY KEY, v VECTOR(3) NOT NULL, VECTOR n (v))",
    "CREATE TABLE u (id INT PRIMARY KEY, `vector` INT)",
)
FORMS: Final = {
    "mariadb": (", PERIOD FOR p(s, e)", (*EVERYWHERE, *MARIADB, *OVER_PERIODS)),
    "mysql9": (", v VECTOR(3) NOT NULL", (*EVERYWHERE, *MYSQL)),
    "mariadb118": (", v VECTOR(3) NOT NULL, PERIOD FOR p(s, e)", (*MARIADB, *OVER_PERIODS, *VECTORS)),
}


def shapes(versions: list[TableVersion]) -> dict[str, tuple[object, ...]]:
    """Columns, and the names and kinds of indexes, by table."""
    return {
        version.table: (
            [(column.name, column.type, column.nullable) for column in version.columns],
            {(index.name, index.kind) for index in version.indexes},
        )
        for version in versions
        if version.table and version.status is not VersionStatus.DROPPED
    }


@pytest.mark.parametrize("flavour", FORMS)
def test_forms_of_indexes_and_options_hold_nothing_and_are_followed(flavour: str, tmp_path: Path) -> None:
    more, forms = FORMS[flavour]
    with own_server_or_skip(flavour, tmp_path / "server") as server:
        for form in forms:
            follow_form(server, TABLE.format(more), form)


def follow_form(server: Server, made: str, form: str) -> None:
    for sql in ("DROP DATABASE IF EXISTS forms", "CREATE DATABASE forms CHARACTER SET utf8mb4"):
        server.query(sql)
    history = SchemaHistory("one")
    with server.connect("forms") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        version = str(cursor.fetchone()[0])
        for ts, sql in enumerate(("CREATE DATABASE forms CHARACTER SET utf8mb4", made, form), 1):
            if ts > 1:
                cursor.execute(sql)
            history.replay(DdlStatement(sql, "forms", 0, ts, "b.000001", ts, 0, "utf8mb4", version))
        wanted = read_schema(connection, "one", lambda database, _: database == "forms", Position.of("b.000001", 4))
    known = [last for name in history.tables() if (last := history.last(name)) is not None]
    assert shapes(known) == shapes(wanted), form
