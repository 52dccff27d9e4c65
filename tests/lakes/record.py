"""Record lakes of the release that this is: `python -m tests.lakes.record [CASE ...]`, once, before its format changes.

In:  MariaDB, hand-made events, TiDB's recorded binlogs; the code of this checkout.
Out: a folder of tests/lakes per case: <case>_<release>. What there is already stays as it is.

A case has two moments. At the first one the lake is packed whole. By the second one more was captured and nothing more
applied: bronze is packed, and what others than apply said. expected.json is what this release made of it then; where
there was a server its own SELECT said the same (Road.assert_equal).
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import typer.testing

from spark_jobs.window.life.following import leave_behind
from tests.integration.road.test_prewrites import prepare
from tests.kit.road import Road
from tests.kit.tidb.road import lake_with, segments_of
from tests.lakes.archive import (
    LAKE,
    LAKES,
    applied,
    control_rows,
    files_in,
    later_of,
    packed,
    silver_of,
    states_of,
)
from tests.support.event_log import Log
from tests.support.own_server import own_server
from tests.support.plain_snapshot import PlainReader
from tests.support.wave_log import baseline
from tidegate import __version__, tables
from tidegate.cli.main import app as command_line
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.figures import status
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import TableState
from tidegate.local.server import Server
from tidegate.tables import State

_TIDB_CASE: Final = LAKES.parent / "golden" / "tidb" / "p04_bank"


class Moments:
    """The two moments of a case, as they come."""

    def __init__(self, name: str, file: Path, lake: LakeFiles) -> None:
        self.folder = LAKES / f"{name}_{__version__}"
        self.file, self.lake = file, lake
        self._rows: dict[str, int] = {}
        self.folder.mkdir()

    def first(self) -> None:
        """All that apply left."""
        (self.folder / "pipeline.yaml").write_text(self.file.read_text().replace(self.lake.root, LAKE))
        (self.folder / "lake.tar.gz").write_bytes(packed(files_in(Path(self.lake.root))))
        self._rows = {path: rows.num_rows for path, rows in control_rows(self.lake).items()}
        self._status = {one.table: str(one.state) for one in status.table_statuses(self.lake)}

    def second(self) -> None:
        """More is captured; then it is applied by this release."""
        (self.folder / "later.tar.gz").write_bytes(packed(later_of(self.lake, self._rows)))
        states = states_of(applied(self.file, self.lake))
        expected = {"release": __version__, "status": self._status, "states": states, "silver": silver_of(self.lake)}
        text = json.dumps(expected, indent=1, ensure_ascii=False)
        # A row is a line.
        text = re.sub(r"\[\s+((?:\"(?:[^\"\\]|\\.)*\"|null)(?:,\s+(?:\"(?:[^\"\\]|\\.)*\"|null))*)\s+\]", _line, text)
        (self.folder / "expected.json").write_text(text + "\n")


def _line(found: re.Match[str]) -> str:
    return "[" + re.sub(r",\n\s+", ", ", found[1]) + "]"


_SHOP: Final = (
    "CREATE TABLE customers (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(60), kind ENUM('new', 'old'), born DATE)",
    "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, customer INT, total DECIMAL(9,2), at DATETIME(3), note TEXT)",
    "CREATE TABLE items (order_id BIGINT UNSIGNED, line INT, what VARCHAR(40), PRIMARY KEY (order_id, line))",
    "CREATE TABLE views (page VARCHAR(40), seen TIMESTAMP(6) NULL)",
    "CREATE TABLE coupons (code CHAR(8) PRIMARY KEY, off DOUBLE, picture BLOB)",
    "INSERT INTO customers (name, kind, born) SELECT CONCAT('näme ', seq), 1 + seq % 2, '2001-02-03' FROM seq_1_to_20",
    "INSERT INTO orders SELECT seq, 1 + seq % 20, seq * 1.25, '2026-01-02 03:04:05.678', NULL FROM seq_1_to_40",
    "INSERT INTO items SELECT 1 + seq % 40, seq, CONCAT('thing ', seq) FROM seq_1_to_60",
    "INSERT INTO views SELECT CONCAT('/page/', seq % 4), '2026-01-02 03:04:05' FROM seq_1_to_12",
    "INSERT INTO coupons VALUES ('AAAA', 0.5, x'00ff'), ('BBBB', 0.25, NULL)",
    "ALTER TABLE orders ADD channel VARCHAR(10) DEFAULT 'web' AFTER customer",
    "UPDATE orders SET total = total + 1, channel = 'app' WHERE id % 5 = 0",
    "DELETE FROM items WHERE line % 7 = 0",
    "UPDATE views SET page = '/other' WHERE page = '/page/1'",
)
_SHOP_LATER: Final = (
    "INSERT INTO orders VALUES (18446744073709551615, 1, 'app', 9.99, '2026-02-03 00:00:00', 'largest')",
    "UPDATE orders SET id = id + 1000 WHERE id < 5",
    "ALTER TABLE customers ADD city VARCHAR(30)",
    "UPDATE customers SET city = 'Köln' WHERE id < 4",
    "DELETE FROM views WHERE page = '/other' LIMIT 2",
    "INSERT INTO views VALUES ('/page/2', NULL), ('/page/2', NULL)",
    "DROP TABLE coupons",
    "CREATE TABLE visits (id INT PRIMARY KEY, n INT)",
    "INSERT INTO visits VALUES (1, 1)",
)


def shop(server: Server, folder: Path) -> None:
    """Tables of every kind that nothing keeps waiting; each statement a transaction, and a DDL among them."""
    road = Road.begun(server, folder, "store", *_SHOP[: len(_SHOP) // 2])
    road.capture()
    applied(road.file, road.lake)
    _done(server, "store", _SHOP[len(_SHOP) // 2 :])
    road.capture()
    applied(road.file, road.lake)
    moments = Moments("shop", road.file, road.lake)
    moments.first()
    _done(server, "store", _SHOP_LATER)
    road.capture()
    moments.second()
    road.assert_equal()


def _done(server: Server, database: str, statements: Iterable[str]) -> None:
    for statement in statements:
        with server.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            connection.commit()


def snapshots(server: Server, folder: Path) -> None:
    """Two tables half read: one has waves in silver, one was only asked for; more waves come."""
    for table in ("t", "u", "v"):
        server.query(f"CREATE TABLE half.{table} (id INT PRIMARY KEY, a VARCHAR(20), n INT)", database=None)
        server.query(
            f"INSERT INTO half.{table} SELECT seq, CONCAT('old ', seq), NULL FROM seq_1_to_20", database="half"
        )
    road = Road(server, folder, include="half.*", apply=", writer: positional")
    road.capture()
    applied(road.file, road.lake)
    reader = PlainReader(road, "half", "t")
    beside = PlainReader(road, "half", "u", reader)
    other = PlainReader(road, "half", "v", reader)
    other.whole_wave(count=50)
    reader.whole_wave(count=3, chunks=2)
    server.query("UPDATE half.t SET a = 'seen' WHERE id IN (2, 15)")
    road.capture()
    applied(road.file, road.lake)
    moments = Moments("snapshots", road.file, road.lake)
    moments.first()
    reader.low()
    server.query("DELETE FROM half.t WHERE id = 8")
    reader.read(4)
    server.query("UPDATE half.t SET a = 'too late' WHERE id IN (9, 10)")
    reader.high()
    beside.whole_wave(count=50)
    other.end()
    server.query("INSERT INTO half.u VALUES (100, 'new', 1)")
    server.query("INSERT INTO half.t VALUES (101, 'new', 1)")
    road.capture()
    moments.second()
    road.assert_equal()
    reader.close()
    beside.close()
    other.close()


def held_rows(server: Server, folder: Path) -> None:
    """Tables that wait for many causes, as a real server makes them."""
    server.query("CREATE TABLE waits.old (id INT PRIMARY KEY, a INT)")
    server.query("INSERT INTO waits.old VALUES (1, 1)")
    policies = "]}\nddl: {drop_column: ask, truncate: stop}\nmaintain: {schedule: ''"
    road = Road(
        server, folder, include="waits.*", extra=f", exclude: ['waits.out_.*'{policies}", apply=", writer: positional"
    )
    road.capture()
    plain = ("well", "asked", "asked_too", "stopped", "parent", "gone", "gives", "writes", "widened", "odd")
    for table in plain:
        server.query(f"CREATE TABLE waits.{table} (id INT PRIMARY KEY, n INT, c VARCHAR(20))")
        server.query(f"INSERT INTO waits.{table} VALUES (1, 1, 'one'), (2, 2, 'two')")
    key = "CONSTRAINT up FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE"
    server.query(f"CREATE TABLE child (id INT PRIMARY KEY, p INT, {key})", database="waits")
    server.query("INSERT INTO waits.child VALUES (1, 1)")
    road.capture()
    applied(road.file, road.lake)
    server.query("ALTER TABLE waits.asked DROP c")
    server.query("ALTER TABLE waits.asked_too DROP c")
    server.query("TRUNCATE waits.stopped")
    server.query("ALTER TABLE waits.gives DROP c")
    server.query("RENAME TABLE waits.gives TO waits.taken")
    server.query("CREATE TABLE waits.gives (id INT PRIMARY KEY, n INT)")
    server.query("DROP TABLE waits.gone")
    server.query("INSERT INTO waits.asked VALUES (3, 3)")
    road.capture()
    app = applied(road.file, road.lake)
    causes = {"waits.writes": "TableWriteError 2", "waits.widened": "SchemaMismatch", "waits.odd": "UnsupportedValue"}
    yesterday = datetime.now(UTC) - timedelta(days=1)  # a pause is over whenever this is opened
    for name, error in causes.items():
        state = TableState(State.HELD, f"{name} can't go on", error, app.applied(name))
        control.append(road.lake, tables.TABLE_STATES, [state.to_row("road", name, yesterday)])
    _run("release", str(road.file), "waits.asked_too")  # and nobody has applied since
    moments = Moments("held_rows", road.file, road.lake)
    moments.first()
    for table in (*plain, "taken"):
        if table not in ("gone", "odd"):  # its held rows would count as a difference
            server.query(f"INSERT INTO waits.{table} (id, n) VALUES (7, 7)")
    server.query("DELETE FROM waits.parent WHERE id = 1")
    server.query("TRUNCATE waits.old")
    server.query("INSERT INTO waits.old VALUES (9, 9)")
    road.capture()
    _run("release", str(road.file), "waits.widened")
    moments.second()
    road.assert_equal()


def held_events(server: Server | None, folder: Path) -> None:
    """What nobody could follow, a source behind the cut, shards and tables that were left out or left."""
    log = Log(folder)
    log.file.write_text(
        log.file.read_text()
        .replace("writer: merge", "writer: positional, stalled_seconds: 100000000")
        .replace("tables: {", "tables: {routes: [{match: 'shop.t_.*', to: shop.all}], ")
    )
    for table in ("t_1", "t_2", "c_1", "c_2", "unread", "unread_too"):
        log.send("one", f"CREATE TABLE shop.{table} (id INT NOT NULL PRIMARY KEY)")
    baseline(log, "shop", "before")
    baseline(log, "shop", "t_0")
    log.level()
    applied(log.file, log.lake)
    log.send("one", "UPDATE a SET id = 2")  # rows that no event shows
    log.send("one", "ALTER TABLE shop.b ADD v FROBNICATE(3)", ("shop.b",))
    log.send("one", "ALTER TABLE shop.unread ADD v FROBNICATE(3)", ("shop.unread",))
    log.send("one", "ALTER TABLE shop.unread_too ADD v FROBNICATE(3)", ("shop.unread_too",))
    child = "(id INT PRIMARY KEY, p INT, CONSTRAINT up FOREIGN KEY (p) REFERENCES shop.c_1 (id) ON DELETE CASCADE)"
    log.send("one", f"CREATE TABLE shop.child {child}", ("shop.child",))
    log.send("one", "RENAME TABLE shop.a TO shop.moved", ("shop.a", "shop.moved"))
    log.send("one", "CREATE TABLE shop.a (id INT PRIMARY KEY)", ("shop.a",))
    log.level()
    applied(log.file, log.lake)
    kept = "include: ['shop.*', 'two.*'], exclude: ['shop.before', 'shop.c_2', 'shop.b', 'shop.t_2']"
    log.file.write_text(log.file.read_text().replace("include: ['shop.*', 'crm.*', 'two.*']", kept))
    log.level()
    app = applied(log.file, log.lake)
    leave_behind(app, "two", "its capture stands")
    log.send("one", "CREATE TABLE shop.late (id INT NOT NULL PRIMARY KEY)", ("shop.late",))
    log.send("one", "FLUSH STATUS", ())
    applied(log.file, log.lake)
    _run("release", str(log.file), "shop.unread_too")  # and nobody has applied since
    moments = Moments("held_events", log.file, log.lake)
    moments.first()
    log.send("one", "TRUNCATE TABLE shop.moved", ("shop.moved",))
    log.send("one", "DROP TABLE shop.child", ("shop.child",))
    log.send("one", "CREATE TABLE shop.child (id INT PRIMARY KEY)", ("shop.child",))
    log.send("two", "ALTER TABLE two.d ADD v INT", ("two.d",))
    log.level()
    moments.second()


def branches(server: Server, folder: Path) -> None:
    """XA branches that are open, answered later, or never."""
    road = Road(server, folder, include="xa.*", apply=", writer: positional")
    road.capture()
    for table in ("a", "b"):
        server.query(f"CREATE TABLE xa.{table} (id INT PRIMARY KEY, v VARCHAR(20))")
    prepare(server, "xa", "'commits'", "INSERT INTO a VALUES (1, 'commits')", "INSERT INTO b VALUES (1, 'commits')")
    prepare(server, "xa", "'goes'", "INSERT INTO a VALUES (2, 'goes')")
    prepare(server, "xa", "'done'", "INSERT INTO b VALUES (3, 'done')")
    server.query("XA COMMIT 'done'")
    server.query("INSERT INTO xa.a VALUES (4, 'plain')")
    road.capture()
    applied(road.file, road.lake)
    moments = Moments("branches", road.file, road.lake)
    moments.first()
    server.query("XA COMMIT 'commits'")
    server.query("XA ROLLBACK 'goes'")
    prepare(server, "xa", "'open'", "INSERT INTO a VALUES (5, 'open')")
    server.query("INSERT INTO xa.a VALUES (6, 'plain')")
    road.capture()
    moments.second()
    road.assert_equal()
    server.query("XA ROLLBACK 'open'")


def tidb(server: Server | None, folder: Path) -> None:
    """TiDB's binlog, with transactions whose halves lie on both sides of the first moment."""
    segments = segments_of(_TIDB_CASE, 40)
    halves = {source: mine[: len(mine) // 2] for source, mine in segments.items()}
    pipeline, lake = lake_with(folder, halves, apply=", writer: positional, stalled_seconds: 100000000")
    del pipeline
    file = folder / "road.yaml"
    applied(file, lake)
    moments = Moments("tidb", file, lake)
    moments.first()
    for source, mine in segments.items():
        Bronze(lake, source).append(mine[len(halves[source]) :])
    moments.second()


_DATABASES: Final = {"shop": "store", "snapshots": "half", "held_rows": "waits", "branches": "xa"}
CASES: Final[tuple[Callable[[Server, Path], None], ...]] = (shop, snapshots, held_rows, held_events, branches, tidb)


def _run(*arguments: str) -> None:
    done = typer.testing.CliRunner().invoke(command_line, [*arguments])
    assert done.exit_code == 0, done.output


def main(names: list[str]) -> None:
    """Those cases that are named, or all."""
    with tempfile.TemporaryDirectory() as place, own_server("mariadb", Path(place) / "mariadb") as server:
        for case in CASES:
            place_of = LAKES / f"{case.__name__}_{__version__}"
            if place_of.exists() or (names and case.__name__ not in names):
                continue
            folder = Path(place) / case.__name__
            folder.mkdir()
            if database := _DATABASES.get(case.__name__):
                server.query(f"CREATE DATABASE {database}")
            case(server, folder)
            print(case.__name__, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
