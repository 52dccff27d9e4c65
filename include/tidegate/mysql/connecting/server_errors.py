"""The meaning of a server's refusals: its error codes and, for the stream, its words.

In:  an error code and its text, of MySQL 5.6 to 9 or MariaDB 10.3 to 11.
Out: a Meaning.

A stream ends with code 1236 for nearly everything (mysql-server sql/rpl_binlog_sender.cc, MariaDB
sql/sql_repl.cc). Its words must distinguish lasting losses from passing faults: no memory, a silent
disk, a key server out of order. An unknown one counts as passing until the server has repeated it
for minutes (capture/retries.py).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CLIENT_ERRORS: Final = 2000  # from here on an error is the connection's, not the server's


class ErrorMeaning(StrEnum):
    LOST = "lost"  # what comes next isn't there any more, or the server isn't the one that had it
    TORN = "torn"  # a file of its binlog ends inside an event
    DAMAGED = "damaged"  # the server can't read its own binlog
    REFUSED = "refused"  # its settings or our grants don't allow it
    DENIED = "denied"  # login or password
    HOST_DENIED = "host denied"
    NOT_GRANTED = "not granted"
    TAKEN_OVER = "taken over"  # another reader with our replica id came, and we had to go
    TAKEN = "taken"  # another reader with our replica id is there; perhaps a dead connection of ours
    COLLECTED = "collected"  # a TiDB's garbage collection has passed the moment that is read
    PASSING = "passing"


_CODES: Final[dict[ErrorMeaning, frozenset[int]]] = {
    # 1045 password, 1698 no login with one, 1820 and 1862 it expired, 3118 and 4151 account locked
    ErrorMeaning.DENIED: frozenset({1045, 1698, 1820, 1862, 3118, 4151}),
    # 1129 blocked after failures, 1130 no account for this host
    ErrorMeaning.HOST_DENIED: frozenset({1129, 1130}),
    ErrorMeaning.NOT_GRANTED: frozenset({1044, 1142, 1143, 1227, 1370, 3530}),
    # 1251 and 2059 a way of logging in that isn't known, 1381 no binlog, 3159 TLS is demanded
    ErrorMeaning.REFUSED: frozenset({1251, 1381, 2059, 3159}),
    # 1373 no such binlog file; MariaDB: 1945, 1955 the GTID isn't in the binlog, 1951 it is in a hole of it
    ErrorMeaning.LOST: frozenset({1373, 1945, 1951, 1955}),
    # 8055 as tidb_snapshot is set, 9006 as a statement reads (tidb/pkg/errno)
    ErrorMeaning.COLLECTED: frozenset({8055, 9006}),
}

# The first that fits counts.
_WORDS: Final[tuple[tuple[ErrorMeaning, tuple[str, ...]], ...]] = (
    (ErrorMeaning.TAKEN_OVER, ("as this slave has connected", "as this replica has connected")),
    (ErrorMeaning.TAKEN, ("same server_uuid/server_id is already connected", "already a running dump thread")),
    (ErrorMeaning.PASSING, ("memory", "while looking for the oldest binary log")),
    (
        ErrorMeaning.LOST,
        (
            "purged",
            "could not find first log file name in binary log index file",
            "impossible position",
            "position > file size",
            "position < 4",
            "is not in the master's binlog",
            "is not in the source's binlog",
            "state not found in binlog",
            "missing the gtid",
            "more gtids than the",
            "diverged",
            "does not correspond to the location of any binlog event",
        ),
    ),
    (ErrorMeaning.TORN, ("truncated in the middle of event",)),
    (
        ErrorMeaning.DAMAGED,
        (
            "bogus data",
            "crc check",
            "checksum verification failed",
            "corrupt",
            "find format_description_event",
            "find format descriptor event",
            "find format description log event",
            "duplicate format description",
            "duplicate gtid_list",
            "too small event",
        ),
    ),
    (
        ErrorMeaning.REFUSED,
        (
            "max_allowed_packet",
            "checksum that",
            "binary log is not open",
            "misconfigured",
            "server_id was not set",
            "gtid_mode",
            "auto_position",
        ),
    ),
)


def meaning_of(code: int) -> ErrorMeaning:
    """The meaning of an error of a login or a statement."""
    return next((meaning for meaning, codes in _CODES.items() if code in codes), ErrorMeaning.PASSING)


def meaning_of_stream(code: int, text: str) -> ErrorMeaning:
    """The meaning of an error that ended the stream."""
    lowered = text.lower()
    by_words = next((meaning for meaning, words in _WORDS if any(word in lowered for word in words)), None)
    return by_words or meaning_of(code)
