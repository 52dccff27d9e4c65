"""What servers say when they end a stream or refuse a login: lost, damaged, refused, or passing. Their own words."""

from __future__ import annotations

from types import SimpleNamespace

import pymysql
import pytest

from tidegate.config import DumpMode, Flavour
from tidegate.errors import (
    Fenced,
    LogTorn,
    PositionLost,
    SourceRefused,
    SourceUnavailable,
    SourceUnwilling,
    StreamCorrupt,
    TidegateError,
)
from tidegate.mysql.connecting.connection import ConnectionInfo, named
from tidegate.mysql.stream.dump_stream import DumpRequest, DumpStream

INFO = ConnectionInfo("db", user="tide")
REQUEST = DumpRequest(Flavour.MYSQL, DumpMode.GTID, 77, "uuid", 2.0)

LOST = (
    "Cannot replicate because the master purged required binary logs.",
    "Cannot replicate because the source purged required binary logs.",
    "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged binary logs",
    "Could not find first log file name in binary log index file",
    "Client requested master to start replication from position > file size; the first event 'b.000001' at 8000",
    "Client requested source to start replication from position > file size",
    "Client requested master to start replication from impossible position; the first event 'b.000001' at 9",
    "Slave has more GTIDs than the master has, using the master's SERVER_UUID.",
    "Replica has more GTIDs than the source has, using the source's SERVER_UUID.",
    "Error: connecting slave requested to start from GTID 0-1-77, which is not in the master's binlog",
    (
        "Error: connecting slave requested to start from GTID 0-1-77, which is not in the master's binlog. Since the"
        " master's binlog contains GTIDs with higher sequence numbers, it probably means that the slave has diverged"
    ),
    (
        "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and"
        " required binlog files have been purged."
    ),
    (
        "The binlog on the master is missing the GTID 0-1-7 requested by the slave (even though both a prior and"
        " a subsequent sequence number does exist), and GTID strict mode is enabled."
    ),
    "Requested slave GTID state not found in binlog. The slave has probably diverged due to executing erroneous",
)
DAMAGED = (
    "bogus data in log event; the first event 'b.000001' at 4",
    "event read from binlog did not pass crc check; the first event 'b.000001' at 4",
    "Replication event checksum verification failed while reading from a log file",
    "Event crc check failed! Most likely there is event corruption.",
    "Could not find format_description_event in binlog file",
    "Failed to find format descriptor event in start of binlog",
    "Failed to read Gtid_list_log_event: corrupt binlog",
    "Failed to replace row annotate event with dummy: too small event.",
)
TORN = (
    "binlog truncated in the middle of event; consider out of disk space",
    "binlog truncated in the middle of event; consider out of disk space on master; the first event 'b.000001' at 4",
)
REFUSED = (
    "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master; the first event 'b' at 4",
    "Slave can not handle replication events with the checksum that master is configured to log",
    "Replica can not handle replication events with the checksum that source is configured to log",
    "Binary log is not open",
    "Misconfigured master - server_id was not set",
    "Misconfigured source - source server_id is 0",
    "The replication sender thread cannot start in AUTO_POSITION mode: this server has GTID_MODE = OFF instead of ON.",
    "Request to dump GTID when @@GLOBAL.GTID_MODE <> ON.",
    "Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file b.000003, position 157.",
)
PASSING = (
    "memory allocation failed reading log event; the first event 'b.000001' at 4",
    "Out of memory while looking for GTID position in binlog",
    "Corrupt Format_description event found or out-of-memory",
    "Failed in internal GTID book-keeping: Out of memory",
    "I/O error reading log event; the first event 'b.000001' at 4",
    "Could not open log file",
    "could not find next log; the first event 'b.000001' at 4",
    (
        "Could not find first log file name in binary log index file while looking for the oldest binary log that"
        " contains any GTID that is not in the given gtid set"
    ),
    "Could not decrypt binlog: encryption key error",
    "event decryption failure; the first event 'b.000001' at 4",
    "Failed to run hook 'transmit_start'",
    "Failed on my_net_write()",
    "unknown error reading log event on the master; the first event 'b.000001' at 4",
    "something that no server says today",
)


def told(code: int, text: str) -> TidegateError:
    """What an ERR packet becomes."""
    packet = b"\xff" + code.to_bytes(2, "little") + b"#HY000" + text.encode()
    stream = DumpStream(SimpleNamespace(_sock=None), INFO, REQUEST)
    whole = len(packet).to_bytes(3, "little") + b"\0" + packet
    stream.received[: len(whole)] = bytearray(whole)
    return stream.refusal({"read": 0, "have": len(whole)})


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (PositionLost, LOST),
        (LogTorn, TORN),
        (StreamCorrupt, DAMAGED),
        (SourceRefused, REFUSED),
        (SourceUnwilling, PASSING),
    ],
)
def test_a_streams_end_is_judged_by_the_servers_words(kind: type[TidegateError], texts: tuple[str, ...]) -> None:
    for text in texts:
        found = told(1236, text)
        assert type(found) is kind, text
        assert "tide@db:3306" in str(found)
        assert "\n" not in str(found)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (1945, "Connecting slave requested to start from GTID 0-1-7, which is not in the master's binlog"),
        (1951, "The binlog on the master is missing the GTID 0-1-7 requested by the slave"),
        (1955, "Connecting slave requested to start from GTID 0-1-7, which is not in the master's binlog. Since"),
        (1373, "Target log not found in binlog index"),
    ],
)
def test_codes_of_their_own_for_a_lost_place(code: int, text: str) -> None:
    assert type(told(code, text)) is PositionLost


def test_a_reader_that_took_our_number_is_named_with_the_key_that_helps() -> None:
    came = told(1236, "A slave with the same server_uuid/server_id as this slave has connected to the master;")
    assert type(came) is Fenced
    # MariaDB 11 refuses the newcomer instead; it may be our own connection, which the server still takes for alive.
    there = told(4052, "A slave with the same server_uuid/server_id is already connected")
    assert type(there) is SourceUnwilling
    for found in (came, there):
        assert "replica id 77" in str(found)
        assert "server_id of its own in the pipeline file" in str(found)


@pytest.mark.parametrize("code", [1045, 1698, 1820, 1862, 3118, 4151, 1129, 1130, 1044, 1142, 1143, 1227, 1251, 3159])
def test_what_no_retry_mends_is_refused(code: int) -> None:
    assert isinstance(named(pymysql.err.OperationalError(code, "no"), INFO), SourceRefused)


@pytest.mark.parametrize("code", [1040, 1053, 1158, 1203, 1226, 1317, 1927, 3169, 3955, 4031])
def test_what_the_server_may_take_back_is_tried_again(code: int) -> None:
    assert type(named(pymysql.err.OperationalError(code, "not now"), INFO)) is SourceUnavailable


def test_a_connection_that_has_ended_says_so() -> None:
    found = named(pymysql.err.InterfaceError(0, ""), INFO)
    assert type(found) is SourceUnavailable
    assert "has ended" in str(found)
