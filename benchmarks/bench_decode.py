"""Rows per CPU-second of the decoder and of mysql-replication, on the same binlog, in the same run.

In:  nothing; starts the demo's MariaDB under a temporary folder and writes workloads A (wide) and B (narrow), C (A's
     table in single-row transactions).
Out: one line per workload: rows, MB, both rates, their ratio. Target: FACTS "decode against mysql-replication" 300x.

`python benchmarks/bench_decode.py [--rows N]`. CPU-seconds are user + system of this process; ours is the best of five
runs after warm(), mysql-replication reads the first rows of the same file over a connection.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from tests.unit.binlog.support import ALL_TIME, current_binlog, segment, version_on
from tidegate.binlog.decode import decode_segment
from tidegate.binlog.event_index import index_segment
from tidegate.binlog.kernel import index as K  # noqa: N812
from tidegate.binlog.segment import Segment
from tidegate.binlog.transaction_scan import ENDS
from tidegate.binlog.warm import warm
from tidegate.demo import mariadb
from tidegate.demo.server import Server
from tidegate.limits import SEGMENT_BYTES_DEFAULT

ROOT = Path(__file__).resolve().parents[1]
REFERENCE_ROWS = 4000
WIDE = (
    "id BIGINT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, amount DECIMAL(18,4),"
    " ts DATETIME(6) NOT NULL, flag TINYINT NOT NULL, note VARCHAR(255), j JSON"
)
WIDE_ROWS = (
    "SELECT seq, FLOOR(RAND()*1000000), REPEAT(MD5(RAND()), 3), LEFT(CONCAT(MD5(RAND()), MD5(seq)), 60),"
    " IF(RAND()<0.05, NULL, ROUND((RAND()-0.5)*2e9, 4)), '2026-01-01' + INTERVAL FLOOR(RAND()*2.6e13) MICROSECOND,"
    " FLOOR(RAND()*3), IF(RAND()<0.1, NULL, CONCAT('订单备注 ünïcode note ', MD5(seq), REPEAT('x', FLOOR(RAND()*40)))),"
    " JSON_OBJECT('sku', FLOOR(RAND()*1e6), 'tags', JSON_ARRAY('a','b','c'), 'addr', JSON_OBJECT('city','上海'))"
    " FROM seq_{first}_to_{last}"
)
NARROW = "id BIGINT NOT NULL PRIMARY KEY, a INT NOT NULL, b SMALLINT, c DOUBLE NOT NULL, d DECIMAL(12,2)"
NARROW_ROWS = (
    "SELECT seq, FLOOR(RAND()*2e9)-1e9, IF(RAND()<0.05, NULL, FLOOR(RAND()*60000)-30000), RAND()*1e6,"
    " IF(RAND()<0.05, NULL, ROUND((RAND()-0.5)*1e9, 2)) FROM seq_{first}_to_{last}"
)


def play(server: Server, name: str, rows: int) -> Path:
    """60% inserts, 30% updates, 10% deletes into one binlog file; C one row per transaction."""
    columns, select, counter = (NARROW, NARROW_ROWS, "a") if name == "b" else (WIDE, WIDE_ROWS, "k")
    server.query(f"CREATE TABLE bench.{name} ({columns})")
    if name == "c":
        server.query(f"INSERT INTO bench.c {select.format(first=1, last=rows)}", database="bench")
    server.query("FLUSH BINARY LOGS")
    path = current_binlog(server)
    with server.connect("bench").cursor() as cursor:
        step = 1 if name == "c" else 5000
        for first in range(1, rows + 1, step):
            if name == "c":
                cursor.execute(f"UPDATE c SET {counter} = {counter} + 1 WHERE id = {first}")
                continue
            cursor.execute(f"INSERT INTO {name} {select.format(first=first, last=first + step - 1)}")
            cursor.execute(f"UPDATE {name} SET {counter} = {counter} + 1 WHERE id BETWEEN {first} AND {first + 2499}")
            cursor.execute(f"DELETE FROM {name} WHERE id BETWEEN {first} AND {first + 832}")
    server.query("FLUSH BINARY LOGS")
    return path


def cut(content: bytes) -> list[Segment]:
    """The file as segments of the default size, cut at transaction ends."""
    first = int.from_bytes(content[13:17], "little")
    context, payload = content[4 : 4 + first], content[4:]
    events = index_segment(segment(context, payload)).events
    ends = (events[:, K.OFFSET] + events[:, K.SIZE])[(events[:, K.BITS] & ENDS) != 0].tolist()
    cuts = [0]
    for end in [*ends, len(payload)]:
        if end - cuts[-1] >= SEGMENT_BYTES_DEFAULT or end == len(payload):
            cuts.append(end)
    return [segment(context, payload[a:b], start_pos=4 + a) for a, b in itertools.pairwise(cuts) if b > a]


def ours(server: Server, name: str, path: Path) -> tuple[int, float]:
    """(changes, best CPU-seconds of five runs)."""
    versions = {("bench", name): [version_on(server, "bench", name)]}
    windows = dict.fromkeys(versions, ALL_TIME)
    segments = cut(path.read_bytes())
    best, rows = float("inf"), 0
    for _ in range(5):
        started = time.process_time()
        found = [decode_segment(one, versions, windows) for one in segments]
        best = min(best, time.process_time() - started)
        assert not any(one.problems for one in found)
        rows = sum(one.ledger.rows for one in found)
    return rows, best


def reference(server: Server, path: Path) -> tuple[int, float]:
    """(rows, CPU-seconds) of mysql-replication over the first rows of the file."""
    settings = {"host": server.host, "port": server.port, "user": server.user, "passwd": server.password}
    stream = BinLogStreamReader(
        connection_settings=settings,
        server_id=987654,
        log_file=path.name,
        log_pos=4,
        resume_stream=True,
        is_mariadb=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )
    started, rows = time.process_time(), 0
    for event in stream:
        rows += len(event.rows)
        if rows >= REFERENCE_ROWS:
            break
    spent = time.process_time() - started
    stream.close()
    return rows, spent


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=100_000, help="inserted rows of A; B has three times as many")
    rows = options.parse_args().rows
    warm()
    base = mariadb.install(ROOT)
    with tempfile.TemporaryDirectory() as folder, mariadb.MariaDB(Path(folder) / "mariadb", base) as server:
        server.query("CREATE DATABASE bench CHARACTER SET utf8mb4")
        for name, count in (("a", rows), ("b", 3 * rows), ("c", rows // 5)):
            path = play(server, name, count)
            done, spent = ours(server, name, path)
            their_rows, their_seconds = reference(server, path)
            mine, theirs = done / spent, their_rows / their_seconds
            size = path.stat().st_size
            print(
                f"{name.upper()}: {done} changes, {size / 1e6:.0f} MB; tidegate {mine / 1e6:.2f} M rows/CPU-s"
                f" ({size / spent / 1e6:.0f} MB/CPU-s); mysql-replication {theirs / 1e3:.1f} k rows/CPU-s;"
                f" ratio {mine / theirs:.0f}x"
            )


if __name__ == "__main__":
    main()
