"""Names of views in a schema history: a rename of a view moves no rows, and hides no table's."""

from __future__ import annotations

import itertools

import pytest

from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SchemaHistory

SERVERS = ("9.7.4", "11.4.5-MariaDB-log")
MAKES = (
    "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` AS SELECT 1",
    "CREATE OR REPLACE VIEW db.v (a) AS SELECT 1 AS a",
    "CREATE VIEW IF NOT EXISTS v AS SELECT 1",
)

RENAMES = ("RENAME TABLE v TO a", "ALTER TABLE v RENAME TO a", "RENAME TABLE IF EXISTS v TO a")


class Session:
    def __init__(self, version: str = SERVERS[1]) -> None:
        self.history = SchemaHistory("one")
        self.version = version
        self.ts = itertools.count(10, 10)
        self.rows: list[TableVersion] = []

    def run(self, *sql: str) -> list[tuple[str, str]]:
        """The table and status of each version that the last one made."""
        made: list[TableVersion] = []
        for text in sql:
            made = self.replay(text, next(self.ts))
            self.rows += made
        return [(version.table, str(version.status)) for version in made]

    def replay(self, sql: str, ts: int) -> list[TableVersion]:
        return self.history.replay(DdlStatement(sql, "db", 0, ts, "b.000001", ts, 0, "utf8mb4", self.version))

    def read_anew(self) -> None:
        """The next application's history, from what was stored."""
        self.history = SchemaHistory("one", [version.to_row() for version in self.rows])


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("makes", MAKES)
@pytest.mark.parametrize("renames", RENAMES)
def test_a_renamed_view_holds_nothing_and_a_table_beside_it_is_followed(server: str, makes: str, renames: str) -> None:
    s = Session(server)
    s.run("CREATE TABLE t (a INT)", makes)
    s.read_anew()
    s.run(renames)
    s.read_anew()
    assert s.run("RENAME TABLE a TO w, t TO a") == [("a", "active"), ("w", "dropped"), ("t", "dropped")]
    assert not s.history.held


def test_a_name_that_nobody_said_is_a_views_stays_in_doubt() -> None:
    s = Session()
    s.run("CREATE VIEW v AS SELECT 1", "DROP VIEW IF EXISTS other, v", "CREATE VIEW w AS SELECT 1", "DROP DATABASE db")
    for name in ("unknown", "v", "w"):
        with pytest.raises(DdlNotRead, match="renamed but not known"):
            s.run(f"RENAME TABLE {name} TO x_{name}")


def test_a_table_of_a_former_views_name_is_a_table() -> None:
    s = Session()
    s.run("CREATE VIEW v AS SELECT 1", "DROP VIEW v", "CREATE TABLE v (a INT)")
    assert s.run("RENAME TABLE v TO t") == [("v", "dropped"), ("t", "active")]
    assert s.run("CREATE VIEW v AS SELECT 1") == [("v", "dropped")]
    assert s.run("CREATE OR REPLACE VIEW v AS SELECT 2") == []
    s.read_anew()
    assert s.history.last(("db", "t")).status is VersionStatus.ACTIVE
    assert s.run("CREATE TABLE IF NOT EXISTS v (a INT)") == [("v", "active")]


def test_a_view_known_by_a_later_statement_hides_no_earlier_one() -> None:
    """A table that catches up replays what the others are past."""
    s = Session()
    s.run("CREATE TABLE t (a INT)", "CREATE VIEW v AS SELECT 1")
    ts = next(s.ts)
    s.run("CREATE VIEW w AS SELECT 1", "DROP VIEW v", "CREATE OR REPLACE VIEW v AS SELECT 1", "DROP VIEW v")
    made = s.replay("RENAME TABLE v TO w, t TO u", ts)
    assert {version.table: str(version.status) for version in made} == {"t": "dropped", "u": "active"}


def test_statements_of_views_replayed_by_a_killed_window_change_nothing() -> None:
    s = Session()
    texts = [
        "CREATE VIEW v AS SELECT 1",
        "RENAME TABLE v TO a",
        "RENAME TABLE a TO b",
        "CREATE VIEW v AS SELECT 1",
        "DROP VIEW v, b",
    ]
    s.run(*texts)
    s.read_anew()
    assert [s.replay(text, ts) for ts, text in zip(itertools.count(10, 10), texts, strict=False)] == [[]] * len(texts)


def test_a_view_whose_name_cant_be_read_is_passed_over() -> None:
    s = Session()
    s.history.replay(DdlStatement("CREATE VIEW v AS SELECT 1", "", 0, 10, "b.000001", 10, 0, "utf8mb4", SERVERS[0]))
    s.history.replay(DdlStatement("DROP VIEW v", "", 0, 20, "b.000001", 20, 0, "utf8mb4", SERVERS[0]))
    assert not s.history.held
