"""Questions to a real server's information_schema: no table is missed, and no other one is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.mysql.sql_text.catalog import NAMES, Name, asked_by, names_of, rows_of
from tidegate.mysql.start.information_schema import InformationSchema

pytestmark = pytest.mark.server

MANY = 1100  # MariaDB makes a subquery of a list of 1000


@contextmanager
def _upper(server: Server, database: str) -> Iterator[str]:
    """A database whose name differs in case alone."""
    upper = database.upper()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {upper}")
        try:
            yield upper
        finally:
            cursor.execute(f"DROP DATABASE {upper}")


def test_names_that_are_equal_by_their_collation_are_each_told(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(any_server)
    with _upper(any_server, database) as upper, any_server.connect() as connection, connection.cursor() as cursor:
        for name in (f"{database}.t", f"{database}.T", f"{database}.`tä`", f"{database}.ta", f"{upper}.t"):
            cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
        ask = asked_by(cursor)
        for names in (
            {(database, "t"), (upper, "t")},
            {(database, "t"), (database, "T")},
            {(database, "tä"), (database, "ta")},
        ):
            catalog = InformationSchema(ask)
            assert {*names_of(rows_of(ask, NAMES, names))} == names
            assert catalog.listed_tables(names).keys() == names
            assert {name: len(columns) for name, columns in catalog.columns_of(names).items()} == dict.fromkeys(
                names, 1
            )
            assert catalog.indexes_of(names).keys() == names


def test_few_tables_of_many_are_opened_alone(mariadb: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(mariadb)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for number in range(MANY + 100):
            cursor.execute(f"CREATE TABLE t{number} (id INT) ENGINE=MyISAM")
        catalog = InformationSchema(asked_by(cursor))
        for count in (1, 2, MANY):
            names: set[Name] = {(database, f"t{number}") for number in range(count)}
            cursor.execute("FLUSH TABLES")
            before = _opened(cursor)
            assert catalog.listed_tables(names).keys() == names
            assert _opened(cursor) - before <= count + 10


def _opened(cursor: Any) -> int:
    cursor.execute("SHOW STATUS LIKE 'Opened_table_definitions'")
    return int(cursor.fetchone()[1])
