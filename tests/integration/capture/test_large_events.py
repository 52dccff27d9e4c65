"""Events around the size where the protocol begins a second packet, and a transaction far larger than capture's memory.

TIDEGATE_TEST_TRANSACTION_MIB=1024 is the formal size; without it the transaction and capture's bounds are smaller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.events import ROWS_TYPES
from tests.support.captures import (
    assert_equals_binlog,
    binlog_end,
    bronze_segments,
    capture_until_quiet,
    pipeline_text,
)
from tests.support.seeds import many
from tests.support.servers import FreshDatabase
from tidegate.binlog.format.events import read_header
from tidegate.limits import PACKET_BYTES_MAX
from tidegate.local.server import Server
from tidegate.tables import SegmentFlag

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

TRANSACTION_MIB = int(os.environ.get("TIDEGATE_TEST_TRANSACTION_MIB") or many(200, 1024))
ROW_BYTES = 1 << 20
# A packet is a status byte and an event. One of exactly PACKET_BYTES_MAX is followed by an empty one.
EVENT_BYTES = [
    PACKET_BYTES_MAX - 2,
    PACKET_BYTES_MAX - 1,
    PACKET_BYTES_MAX,
    PACKET_BYTES_MAX + 1,
    PACKET_BYTES_MAX + 2,
    2 * PACKET_BYTES_MAX - 1,
]


def row_events(payload: bytes) -> list[int]:
    """Sizes of the rows events in there."""
    found, at = [], 0
    while at < len(payload):
        header = read_header(payload[at : at + 19])
        if header.type in ROWS_TYPES:
            found.append(header.size)
        at += header.size
    return found


def test_events_around_the_largest_packet_come_as_they_are(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """A run for each, so that each is also what the next run asks for once more to compare it."""
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query("SET GLOBAL max_allowed_packet = 268435456")
    any_server.query(f"CREATE TABLE `{database}`.b (id INT PRIMARY KEY, x LONGBLOB)")
    capture_until_quiet(any_server, lake)
    any_server.query(f"INSERT INTO `{database}`.b VALUES (0, REPEAT('x', 1000))")
    capture_until_quiet(any_server, lake)
    frame = row_events(b"".join(bytes(segment.payload) for segment in bronze_segments(lake)))[-1] - 1000
    for number, size in enumerate(EVENT_BYTES, 1):
        any_server.query(f"INSERT INTO `{database}`.b VALUES (%s, REPEAT('y', %s))", (number, size - frame))
        capture_until_quiet(any_server, lake)
    segments = bronze_segments(lake)
    found = [size for segment in segments for size in row_events(bytes(segment.payload))]
    assert found[-len(EVENT_BYTES) :] == EVENT_BYTES
    assert_equals_binlog(segments, any_server)
    assert (segments[-1].file, segments[-1].end_pos) == binlog_end(any_server)


_PROGRAM = """
import json, resource, sys
from pathlib import Path
from tidegate import config
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo

server = json.loads(sys.argv[2])
run = binlog_run(config.load(Path(sys.argv[1])), "one", ConnectionInfo(**server), Path(sys.argv[3]),
                 on_first_start=lambda _facts, _position: None)
result = run.run(600, idle_seconds=2)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"peak_bytes": int(peak.split()[1]) * 1024, "bytes": result.bytes}))
"""


def captured_in_a_process(server: Server, folder: Path, **settings: object) -> dict[str, int]:
    """Capture until it is quiet; the most memory that the process had, and what it read."""
    file = folder / "pipeline.yaml"
    file.write_text(pipeline_text(server, folder / "lake", **settings))
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(file), json.dumps(login), str(folder / "state")],
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.long
def test_a_transaction_larger_than_captures_memory_is_captured_in_it(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """What capture takes beyond an idle one is bounded by queue_bytes and land_bytes, not by the transaction."""
    database = fresh_database(mariadb)
    queue = 128 << 20 if TRANSACTION_MIB >= 1024 else 16 << 20
    settings = {"queue_bytes": queue, "land_bytes": queue // 2, "segment_bytes": 1 << 20}
    mariadb.query("SET GLOBAL max_allowed_packet = 67108864")
    mariadb.query(f"CREATE TABLE `{database}`.b (id INT PRIMARY KEY, x LONGBLOB)")
    captured_in_a_process(mariadb, tmp_path, **settings)
    mariadb.query(f"INSERT INTO `{database}`.b VALUES (0, REPEAT('x', 1000))")
    idle = captured_in_a_process(mariadb, tmp_path, **settings)["peak_bytes"]
    with mariadb.connect(database, max_allowed_packet=64 << 20, autocommit=False) as connection:
        with connection.cursor() as cursor:
            for number in range(1, TRANSACTION_MIB + 1):
                cursor.execute("INSERT INTO b SELECT %s, REPEAT(SHA2(%s, 512), 8192)", (number, number))
        connection.commit()
    found = captured_in_a_process(mariadb, tmp_path, **settings)
    print(
        f"{found['bytes'] >> 20} MiB, idle {idle >> 20} MiB, peak {found['peak_bytes'] >> 20} MiB, queue {queue >> 20}"
    )
    assert found["bytes"] > TRANSACTION_MIB * ROW_BYTES
    segments = bronze_segments(tmp_path / "lake") if TRANSACTION_MIB < 1024 else []
    if segments:
        assert_equals_binlog(segments, mariadb)
        assert len([segment for segment in segments if segment.flags & SegmentFlag.OPEN_AT_START]) > 10
    assert found["peak_bytes"] - idle < (128 << 20) + 3 * queue
