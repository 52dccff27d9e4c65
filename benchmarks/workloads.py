"""The workloads, played on a real server, each into binlog files of its own.

In:  the demo's MariaDB, sizes.
Out: Workload: the table, its file, and how many row changes are in it.

A  wide rows (nine columns, about 370 bytes), thousands per transaction: 60% inserts, 30% updates, 10% deletes
B  the same of narrow rows (five numbers)
C  A's table in single-row transactions: 60% inserts, 30% updates, 10% deletes
D, E  changes to a table whose other rows are in silver already (450 bytes a row): updates and deletes hit keys
   spread over all of it, inserts have keys above it. The server holds just the rows that are changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pymysql.cursors import Cursor

from tidegate.local.server import Server

DATABASE = "bench"
_STEP = 5000
_DIGITS = "LEFT(CONCAT({}), {})"


def _noise(length: int) -> str:
    """SQL for `length` characters that don't compress well and look like no other row's."""
    return _DIGITS.format(", ".join(["MD5(RAND())"] * -(-length // 32)), length)


WIDE = (
    "id BIGINT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, amount DECIMAL(18,4),"
    " ts DATETIME(6) NOT NULL, flag TINYINT NOT NULL, note VARCHAR(255), j JSON"
)
_WIDE_REST = (
    f"FLOOR(RAND()*1000000), {_noise(120)}, {_noise(60)}, IF(RAND()<0.05, NULL, ROUND((RAND()-0.5)*2e9, 4)),"
    " '2026-01-01' + INTERVAL FLOOR(RAND()*2.6e13) MICROSECOND, FLOOR(RAND()*3),"
    " IF(RAND()<0.1, NULL, CONCAT('订单备注 ünïcode ', MD5(seq), REPEAT('x', FLOOR(RAND()*40)){more})),"
    " IF(RAND()<0.1, NULL, JSON_OBJECT('sku', FLOOR(RAND()*1e6), 'tags', JSON_ARRAY('a','b','c'),"
    " 'addr', JSON_OBJECT('zip', FLOOR(RAND()*99999), 'city', '上海')))"
)
NARROW = "id BIGINT NOT NULL PRIMARY KEY, a INT NOT NULL, b SMALLINT, c DOUBLE NOT NULL, d DECIMAL(12,2)"
_NARROW_REST = (
    "FLOOR(RAND()*2e9)-1e9, IF(RAND()<0.05, NULL, FLOOR(RAND()*60000)-30000), RAND()*1e6,"
    " IF(RAND()<0.05, NULL, ROUND((RAND()-0.5)*1e9, 2))"
)
# One row change per transaction; counted, because a row may be gone already.
_ONE_BY_ONE = f"""CREATE PROCEDURE one_by_one(held INT, wanted INT) BEGIN
 DECLARE i INT DEFAULT 0; DECLARE at INT; DECLARE n INT DEFAULT 0;
 WHILE n < wanted DO
  SET at = 1 + FLOOR(RAND() * held);
  CASE i % 10
   WHEN 0 THEN DELETE FROM c WHERE id = at;
   WHEN 1 THEN UPDATE c SET c = pad, ts = NOW(6) WHERE id = at;
   WHEN 2 THEN UPDATE c SET k = k + 1, amount = amount + 1 WHERE id = at;
   WHEN 3 THEN UPDATE c SET flag = (flag + 1) % 3, note = 'short' WHERE id = at;
   ELSE INSERT INTO c VALUES (held + i, {_WIDE_REST.format(more="").replace("MD5(seq)", "MD5(i)")});
  END CASE;
  SET n = n + IF(ROW_COUNT() > 0, 1, 0);
  SET i = i + 1;
 END WHILE;
END"""


@dataclass(frozen=True, slots=True)
class Workload:
    """A played workload. path: its binlog file; gtid: what the server had before it; changes: row changes in it;
    rows: what the table holds afterwards.
    """

    name: str
    table: str
    path: Path
    gtid: str
    changes: int
    rows: int

    @property
    def bytes(self) -> int:
        return self.path.stat().st_size


def prepare(server: Server) -> None:
    """A database, and a server that doesn't wait for its disk: its speed isn't what is measured."""
    server.query(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
    for setting in ("sync_binlog = 0", "innodb_flush_log_at_trx_commit = 0", "max_binlog_size = 1073741824"):
        server.query(f"SET GLOBAL {setting}")


def create(server: Server, name: str) -> None:
    """The empty table of a workload: capture that starts now has the whole of it."""
    server.query(f"CREATE TABLE {name} ({NARROW if name == 'b' else WIDE})", database=DATABASE)


def play_batches(server: Server, name: str, rows: int, begin: int = 0) -> Workload:
    """A or B: per 5,000 inserted rows 2,500 updated and 833 deleted, anywhere among those that are there.

    name: of the table; its columns are B's if it is `b`. begin: the largest key that it has already.
    """
    rest, counter = (_NARROW_REST, "a") if name == "b" else (_WIDE_REST.format(more=""), "k")
    file, changes = _new_file(server), 0
    with server.connect(DATABASE) as connection, connection.cursor() as cursor:
        for first in range(begin + 1, begin + rows + 1, _STEP):
            last = min(first + _STEP - 1, begin + rows)
            share = last - first + 1
            changes += cursor.execute(f"INSERT INTO {name} SELECT seq, {rest} FROM seq_{first}_to_{last}")
            changes += _somewhere(
                cursor,
                f"UPDATE {name} SET {counter} = {counter} + 1",
                first * 7919 % last,
                share // 2,
            )
            changes += _somewhere(cursor, f"DELETE FROM {name}", first * 104_729 % last, share // 6)
    return _done(server, name, file, changes)


def play_single(server: Server, changes: int) -> Workload:
    """C. The rows that it begins with are in no binlog."""
    held = changes
    with server.connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(f"INSERT INTO c SELECT seq, {_WIDE_REST.format(more='')} FROM seq_1_to_{held}")
        cursor.execute(_ONE_BY_ONE)
        cursor.execute("SET sql_log_bin = 1")
        file = _new_file(server)
        cursor.execute(f"CALL one_by_one({held}, {changes})")
    return _done(server, "c", file, changes)


def play_changes(server: Server, name: str, changes: int, target_rows: int) -> Workload:
    """D or E: `changes` row changes to a table of `target_rows` rows with keys 1 to target_rows."""
    rest = _WIDE_REST.format(more=", REPEAT('y', 60)")
    updates, deletes = changes * 3 // 10, changes // 10
    inserts, apart = changes - updates - deletes, target_rows // (updates + deletes)
    with server.connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(f"INSERT INTO {name} SELECT 1 + (seq - 1) * {apart}, {rest} FROM seq_1_to_{updates + deletes}")
        cursor.execute("SET sql_log_bin = 1")
        file, done = _new_file(server), 0
        for first in range(1, inserts + 1, _STEP):
            last = min(first + _STEP - 1, inserts)
            done += cursor.execute(f"INSERT INTO {name} SELECT {target_rows} + seq, {rest} FROM seq_{first}_to_{last}")
        # Every fourth of the rows that are there is deleted, the others are updated: both over the whole table.
        where = f"id <= {target_rows} AND (id - 1) DIV {apart} % 4"
        for low in range(0, target_rows, _STEP * apart):
            part = f"id > {low} AND id <= {low + _STEP * apart} AND {where}"
            done += cursor.execute(f"DELETE FROM {name} WHERE {part} = 0")
            done += cursor.execute(f"UPDATE {name} SET k = k + 1, amount = amount + 1, ts = NOW(6) WHERE {part} <> 0")
    return _done(server, name, file, done)


def play_hot(server: Server, name: str, changes: int, rows: int) -> Workload:
    """`changes` row changes of `rows` rows: all of them come, and then all are updated, again and again."""
    rest = _WIDE_REST.format(more=", REPEAT('y', 60)")
    file, done = _new_file(server), 0
    with server.connect(DATABASE) as connection, connection.cursor() as cursor:
        done += cursor.execute(f"INSERT INTO {name} SELECT seq, {rest} FROM seq_1_to_{rows}")
        while done < changes:
            done += cursor.execute(f"UPDATE {name} SET k = k + 1, amount = amount + 1, ts = NOW(6)")
    return _done(server, name, file, done)


def _somewhere(cursor: Cursor, what: str, start: int, limit: int) -> int:
    """Change `limit` rows from key `start` on, and from the beginning when the table ends before."""
    done = cursor.execute(f"{what} WHERE id >= {start} ORDER BY id LIMIT {limit}")
    if done < limit:
        done += cursor.execute(f"{what} WHERE id < {start} ORDER BY id LIMIT {limit - done}")
    return done


def _new_file(server: Server) -> tuple[Path, str]:
    """An empty binlog file, and the GTID position where it begins."""
    server.query("FLUSH BINARY LOGS")
    name = str(server.query("SHOW MASTER STATUS")[0][0])
    path = Path(server.query("SELECT @@log_bin_basename")[0][0]).parent / name
    return path, str(server.query("SELECT @@gtid_binlog_pos")[0][0])


def _done(server: Server, name: str, file: tuple[Path, str], changes: int) -> Workload:
    server.query("FLUSH BINARY LOGS")
    rows = server.query(f"SELECT COUNT(*) FROM {name}", database=DATABASE)[0][0]
    return Workload(name.upper(), name, *file, changes, rows)
