"""Random tables with random rows on real servers: the net of what the log says is what SELECT shows.

In:  MySQL 9 and MariaDB 11.4; truth is their own SELECT at the end, asked in words of random_columns.py.
Out: kernel and slow twin agree on each change, and the changes, applied in order, are the table.

TIDEGATE_RANDOM_TABLES=200x200 (tables x rows, per server) sets the counts. That is what `make test-long` runs: some
100,000 changes and 20 MB of log per server. TIDEGATE_RANDOM_SEED=7 replays a run whose seed was printed,
TIDEGATE_RANDOM_SEED=7:31 its table 31 alone.

A table whose session wrote MINIMAL or NOBLOB images may be held instead, as UnsupportedValue; never may it be wrong.

Not covered here: DDL between rows (tests/integration/test_schema_*), foreign keys, partitions, triggers, values of more
than a few hundred bytes, TIMESTAMPs beyond 2038, charsets that random_columns.ALPHABETS does not name (their every
character: test_decode_on_servers.py).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.decoding import ALL_TIME, current_binlog, decode_both, segment_of_file
from tests.support.seeds import many, seed
from tests.support.servers import FreshDatabase
from tests.unit.binlog.random_tables import RandomTable, both_at_once
from tidegate.local.server import Server
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.result import TableChanges
from tidegate.tables import OP, OP_DELETE

pytestmark = [pytest.mark.server, pytest.mark.long]

_DEFAULT = f"{many(60, 200)}x{many(60, 200)}"
TABLES, ROWS = map(int, os.environ.get("TIDEGATE_RANDOM_TABLES", _DEFAULT).split("x"))
SEED = os.environ.get("TIDEGATE_RANDOM_SEED") or str(seed())
BATCH = many(10, 25)  # tables of one binlog file
METADATA = {"mysql": ["FULL", "FULL", "MINIMAL"], "mariadb": ["FULL", "FULL", "MINIMAL", "NO_LOG"]}


def batches(flavour: str) -> Iterator[list[RandomTable]]:
    seed, _, alone = SEED.partition(":")
    numbers = [int(alone)] if alone else list(range(TABLES))
    for at in range(0, len(numbers), BATCH):
        some = numbers[at : at + BATCH]
        yield [RandomTable(f"t{n}", random.Random(f"{seed}/{flavour}/{n}"), flavour, ROWS) for n in some]


def play(server: Server, database: str, tables: list[RandomTable]) -> bytes:
    """Run every statement of every table; gives the binlog."""
    server.query("FLUSH BINARY LOGS")
    path = current_binlog(server)
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET GLOBAL binlog_row_metadata = '{tables[0].random.choice(METADATA[server.flavour])}'")
        cursor.execute("SET time_zone = '+00:00'")
        for number, table in enumerate(tables):
            cursor.execute("SET SESSION sql_mode = ''")
            cursor.execute(table.create)
            for statement in table.statements():
                cursor.execute(statement)
            if number and table.image == tables[number - 1].image:
                cursor.execute(both_at_once(tables[number - 1], table))
    return path.read_bytes()


def versions_of(server: Server, database: str) -> dict[tuple[str, str], list[TableVersion]]:
    with server.connect() as connection:
        listed = read_schema(connection, "test", lambda kept, _table: kept == database, Position.of("binlog.1", 4))
    return {(version.database, version.table): [version] for version in listed if version.table}


def hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def net_of(changes: list[TableChanges], names: list[str], key: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """Rows after all changes: by key where there is one, else each delete takes one equal row away."""
    by_key: dict[Any, tuple[Any, ...]] = {}
    rows: Counter[tuple[Any, ...]] = Counter()
    for change in changes:
        for row in change.batch.to_pylist():
            values = tuple(hashable(row[name]) for name in names)
            at = tuple(hashable(row[name]) for name in key)
            if not key:
                rows[values] += -1 if row[OP] == OP_DELETE else 1
                assert rows[values] >= 0, f"a row is deleted that isn't there: {values}"
            elif row[OP] == OP_DELETE:
                assert by_key.pop(at, None) is not None, f"a row is deleted that isn't there: {values}"
            else:
                by_key[at] = values
    return Counter(by_key.values()) if key else +rows


def check(table: RandomTable, version: TableVersion, changes: list[TableChanges], answers: list[Any]) -> None:
    names = [name for name, _ in table.shown]
    found = net_of(changes, names, version.key_names)
    truth = Counter(tuple(map(hashable, table.read(answer))) for answer in answers)
    if found == truth:
        return
    place = names.index("n")
    ours = {row[place]: row for row in found - truth}
    for row in sorted(truth - found, key=lambda row: row[place]):
        for name, mine, theirs in zip(names, ours.get(row[place], ()), row, strict=False):
            assert mine == theirs, f"{name} of the row with n = {row[place]}"
        assert row[place] in ours, "a row is missing"
    assert found == truth


@pytest.fixture
def lax_server(any_server: Server) -> Server:
    """Not synced at each commit."""
    any_server.query("SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2")
    return any_server


def check_batch(server: Server, database: str, tables: list[RandomTable]) -> None:
    made = segment_of_file(play(server, database, tables))
    versions = versions_of(server, database)
    decoded = decode_both(made, versions, dict.fromkeys(versions, ALL_TIME))
    problems = {problem.table: problem for problem in decoded.problems}
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for table in tables:
            problem = problems.get(table.name)
            if problem and problem.error == "UnsupportedValue" and table.image != "FULL":
                continue
            cursor.execute(table.select)
            changes = [change for change in decoded.changes if change.table == table.name]
            try:
                assert problem is None, problem.message
                check(table, versions[database, table.name][0], changes, list(cursor.fetchall()))
            except AssertionError as error:
                seed = f"TIDEGATE_RANDOM_SEED={SEED.partition(':')[0]}:{table.name[1:]}"
                pytest.fail(f"{seed} TIDEGATE_RANDOM_TABLES={TABLES}x{ROWS}\n{table.create}\n{error}")


def test_the_net_of_a_log_is_what_select_shows(lax_server: Server, fresh_database: FreshDatabase) -> None:
    print(f"TIDEGATE_RANDOM_SEED={SEED} TIDEGATE_RANDOM_TABLES={TABLES}x{ROWS}")
    for tables in batches(lax_server.flavour):
        check_batch(lax_server, fresh_database(lax_server), tables)
