"""What a window asks of an object store: so much for itself and for each table that changes; others cost nothing."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

import pytest

from tests.kit.reached import run_to
from tests.kit.s3 import S3
from tests.kit.turns import Turns
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import current_position

pytestmark = pytest.mark.server

# Of a window, whatever changes in it: a look at what others wrote, bronze's new segments, the ledger, the cut.
WINDOW = 40
WINDOW_PUTS = 4
# Of a table: its log, twice before and twice around the commit; a small file that its rows join; the data, the commit.
TABLE = 10
TABLE_PUTS = 2
_CHANGED = 9
_IN_A_ROW = 10
_PACKS_EVERY = 8  # windows of a table, after which its small files become one


class World:
    """A pipeline of one database into a store."""

    def __init__(self, server: Server, database: str, s3: S3, folder: Path) -> None:
        self._server, self._database, self._s3, self._folder = server, database, s3, folder
        self._pipeline = config.parse(
            f"pipeline: p\nlake: {{path: '{s3.folder()}', conn_id: the_lake}}\n"
            f"sources: {{one: {{conn_id: one, flavour: {server.flavour}, start: now}}}}\n"
            f"tables: {{include: ['{database}.*']}}\ncapture: {{heartbeat_seconds: 1}}\n"
            "apply: {mode: micro_batch}\n",
            where="p.yaml",
        )
        self._agent = f"apply-{uuid.uuid4().hex}"
        self._value = 0
        self._capture(begin=True)
        self._turns = Turns(self._pipeline, LakeFiles(self._pipeline.lake.path, s3.options_of(self._agent)))

    def create(self, tables: range) -> None:
        """Empty tables, known in silver."""
        for number in tables:
            self._server.query(f"CREATE TABLE {self._database}.t{number} (id INT PRIMARY KEY, a INT)")
        self.window(len(tables), first=tables.start)

    def window(self, changed: int, first: int = 0) -> Counter[str]:
        """The requests of a window with a row of so many tables."""
        self._value += 1
        for number in range(first, first + changed):
            self._server.query(f"REPLACE INTO {self._database}.t{number} VALUES (1, {self._value})")
        self._capture()
        versions = self._turns.window(lambda: self._s3.asked(self._agent))
        assert len(versions) == changed
        return self._s3.asked(self._agent)

    def end(self) -> None:
        self._turns.end()

    def _capture(self, *, begin: bool = False) -> None:
        with self._server.connect() as connection, connection.cursor() as cursor:
            goal = current_position(cursor)
        server = self._server
        info = ConnectionInfo(host=server.host, port=server.port, user=server.user, password=server.password)
        run = binlog_run(self._pipeline, "one", info, self._folder, storage_options=self._s3.options_of("capture"))
        run_to(run, goal, 60, idle_seconds=3.0, heartbeat=begin)


def test_a_window_asks_the_store_for_what_changes_alone(
    mariadb: Server, fresh_database: FreshDatabase, s3: S3, tmp_path: Path
) -> None:
    if s3.pid is None:
        pytest.skip("only the test's own store counts")
    world = World(mariadb, fresh_database(mariadb), s3, tmp_path)
    try:
        world.create(range(_CHANGED))
        world.window(_CHANGED)  # the second of each table: only from here on a window finds rows
        one, all_of_them = world.window(1), world.window(_CHANGED)
        assert one.total() <= WINDOW + TABLE
        assert one["PUT"] <= WINDOW_PUTS + TABLE_PUTS
        further = _CHANGED - 1
        assert all_of_them.total() - one.total() <= TABLE * further
        assert all_of_them["PUT"] - one["PUT"] == TABLE_PUTS * further
        assert not one["LIST"] + all_of_them["LIST"]
        world.create(range(_CHANGED, 3 * _CHANGED))
        in_a_row = [world.window(1) for _ in range(_IN_A_ROW)]
        plain = sorted(asked.total() for asked in in_a_row)[: _IN_A_ROW - _IN_A_ROW // _PACKS_EVERY - 1]
        assert max(plain) <= one.total() + 2, "neither tables that don't change nor a longer log cost anything"
        assert not sum(asked["LIST"] for asked in in_a_row)
    finally:
        world.end()
