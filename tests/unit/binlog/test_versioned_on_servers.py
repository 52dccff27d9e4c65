"""System-versioned tables as schema_history knows them from their DDL: keys, ALTERs, and what the log leaves out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.kit.decoding import ALL_TIME, current_binlog, decode_both, segment_of_file
from tests.support.servers import FreshDatabase
from tidegate.binlog.statements.ddl_events import ddl_statements
from tidegate.errors import UnsupportedValue
from tidegate.local.server import Server
from tidegate.schema.follow.added_columns import existing_row_value
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.result import DecodedSegment
from tidegate.tables import OP_DELETE

pytestmark = pytest.mark.server

PERIOD = ", s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END"
PERIOD += ", PERIOD FOR SYSTEM_TIME (s, e)"
PARTITIONS = "PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION p1 CURRENT)"
DML = [
    "INSERT INTO t (pk, f) VALUES (1, 1), (2, 2), (3, 3)",
    "UPDATE t SET f = 9 WHERE pk = 1",
    "DELETE FROM t WHERE pk = 2",
    "UPDATE t SET pk = 30 WHERE pk = 3",
]
CREATES = [
    "pk INT PRIMARY KEY, f INT) WITH SYSTEM VERSIONING",
    "pk INT NOT NULL UNIQUE, f INT) WITH SYSTEM VERSIONING",
    "pk INT PRIMARY KEY, f INT, x TEXT CHARACTER SET utf8mb4, FULLTEXT (x)) WITH SYSTEM VERSIONING",
    "pk INT PRIMARY KEY, f INT WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING",
    "pk INT PRIMARY KEY, f INT WITH SYSTEM VERSIONING)",
    f"pk INT PRIMARY KEY, f INT) WITH SYSTEM VERSIONING {PARTITIONS}",
    f"pk INT PRIMARY KEY, f INT{PERIOD}) WITH SYSTEM VERSIONING",
    f"pk INT NOT NULL, f INT, UNIQUE (pk){PERIOD}) WITH SYSTEM VERSIONING",
]
STATEMENTS = [[f"CREATE TABLE t ({create}", *DML] for create in CREATES]
STATEMENTS.append(
    [
        "CREATE TABLE t (pk INT PRIMARY KEY, f INT)",
        DML[0],
        "ALTER TABLE t ADD SYSTEM VERSIONING",
        *DML[1:3],
        "SET system_versioning_alter_history = KEEP",
        "ALTER TABLE t ADD u INT NOT NULL DEFAULT 5, ADD UNIQUE (u, pk)",
        "ALTER TABLE t DROP PRIMARY KEY",
        DML[3],
        "ALTER TABLE t DROP SYSTEM VERSIONING",
        "UPDATE t SET f = f + 70",
    ]
)


def decoded(server: Server, database: str, statements: Sequence[str]) -> tuple[DecodedSegment, list[TableVersion]]:
    """With the versions that the log's own DDL makes."""
    server.query("FLUSH BINARY LOGS")
    path = current_binlog(server)
    with server.connect(database).cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for statement in statements:
            cursor.execute(statement)
    segment, history, name = segment_of_file(path.read_bytes()), SchemaHistory("test"), (database, "t")
    for statement in ddl_statements(segment):
        history.replay(statement)
    versions = list(history.versions(*name))
    return decode_both(segment, {name: versions}, {name: ALL_TIME}), versions


def test_a_table_with_a_key_is_its_current_rows(mariadb: Server, fresh_database: FreshDatabase) -> None:
    for statements in STATEMENTS:
        database = fresh_database(mariadb)
        found, versions = decoded(mariadb, database, statements)
        assert found.problems == (), statements
        rows: dict[int, int] = {}
        for change in found.changes:
            for row in change.batch.to_pylist():
                if row["_tg_op"] == OP_DELETE:
                    rows.pop(row["pk"])
                else:
                    rows[row["pk"]] = row["f"]
        assert rows == dict(mariadb.query("SELECT pk, f FROM t", database=database)), statements
        assert versions[-1].key_names[-1] in ("pk", "e"), statements


def test_what_the_log_does_not_tell_of_a_versioned_table_holds_it(
    mariadb: Server, fresh_database: FreshDatabase
) -> None:
    key = "KEY (r), FOREIGN KEY (f) REFERENCES t (r) ON DELETE SET NULL) WITH SYSTEM VERSIONING"
    for columns in ("y INT UNIQUE NULL", "y INT PRIMARY KEY"):
        cascade = [f"CREATE TABLE t ({columns}, r INT, f INT, {key}", "INSERT INTO t VALUES (1, 6, 6), (2, 6, 6)"]
        found, _ = decoded(mariadb, fresh_database(mariadb), [*cascade, "DELETE FROM t"])
        assert "a foreign key changed" in found.problems[0].message
    by_transaction = PERIOD.replace("TIMESTAMP(6)", "BIGINT UNSIGNED")
    create = f"CREATE TABLE t (pk INT PRIMARY KEY, f INT{by_transaction}) ENGINE=InnoDB WITH SYSTEM VERSIONING"
    found, _ = decoded(mariadb, fresh_database(mariadb), [create, DML[0]])
    assert "system-versioned by BIGINT" in found.problems[0].message
    period = "ADD s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, ADD e TIMESTAMP(6) GENERATED ALWAYS AS ROW END"
    alter = f"ALTER TABLE t {period}, ADD PERIOD FOR SYSTEM_TIME (s, e), ADD SYSTEM VERSIONING"
    _, versions = decoded(mariadb, fresh_database(mariadb), ["CREATE TABLE t (pk INT PRIMARY KEY, f INT)", alter])
    for column in versions[-1].columns[-2:]:
        with pytest.raises(UnsupportedValue, match="the server computed it"):
            existing_row_value(column)
