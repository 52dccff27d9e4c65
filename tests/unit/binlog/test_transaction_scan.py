"""Which transaction an event belongs to: tables of events, what each did, and the commit_ts that comes of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.binlog.encoding import events as e
from tidegate.binlog import transaction_scan as scan
from tidegate.binlog.format.events import EventType
from tidegate.commit_ts import compose

B, E, F, S = scan.BEGINS, scan.ENDS, scan.FRAME, scan.STATEMENT
MAP, ROWS, LAST = scan.TABLE_MAP, scan.ROWS, scan.ROWS | scan.STATEMENT_END
SECOND = compose(e.SECONDS * 1000)
MICROSECOND = 1_795_000_000_123_456
GTID_TS = compose(MICROSECOND // 1000)
NONE = -1  # commit_ts before any transaction

MAPPED = e.table_map(5, "t", b"\x03", b"")
MORE = e.rows(EventType.WRITE_ROWS_V1, 5, 1, b"", end=False)
DONE = e.rows(EventType.WRITE_ROWS_V1, 5, 1, b"")
V2, PARTIAL = e.rows(EventType.WRITE_ROWS_V2, 5, 1, b""), e.rows(EventType.PARTIAL_UPDATE_ROWS, 5, 1, b"")
PACKED = e.compressed_rows(EventType.WRITE_ROWS_V1, 5, 1, b"x")
MYSQL, MARIA, ALONE = e.mysql_gtid(1, MICROSECOND), e.mariadb_gtid(1), e.mariadb_gtid(1, standalone=True)
PREPARE = e.event(EventType.XA_PREPARE, b"\0" + bytes(12))
STOP = e.event(EventType.STOP, b"")
LOAD_BEGIN = e.event(EventType.BEGIN_LOAD_QUERY, bytes(4) + b"1,2\n")
LOAD_MORE = e.event(EventType.APPEND_BLOCK, bytes(4) + b"1,2\n")
LOAD = e.load_data("LOAD DATA INFILE 'x' INTO TABLE t")

# events with the bits that each gives, and the transactions' commit_ts in order of their beginnings
Steps = list[tuple[bytes, int]]
SEQUENCES: dict[str, tuple[Steps, list[int]]] = {
    "mysql, rows": (
        [(MYSQL, B | F), (e.query("BEGIN"), F), (MAPPED, MAP), (MORE, ROWS), (DONE, LAST), (e.xid(), E)],
        [GTID_TS],
    ),
    "mysql, version 2 and partial rows": (
        [(MYSQL, B | F), (e.query("begin"), F), (MAPPED, MAP), (V2, LAST), (PARTIAL, LAST), (e.xid(), E)],
        [GTID_TS],
    ),
    "mysql, a statement alone": ([(MYSQL, B | F), (e.query("CREATE TABLE x (i INT)"), S | E)], [GTID_TS]),
    "mysql, a statement inside": (
        [(MYSQL, B | F), (e.query("BEGIN"), F), (e.query("INSERT INTO t VALUES (1)"), S), (e.query("COMMIT"), E)],
        [GTID_TS],
    ),
    "mysql, compressed": ([(MYSQL, B | F), (e.payload(e.xid()), E)], [GTID_TS]),
    "mysql, savepoints": (
        [
            (MYSQL, B | F),
            (e.query("BEGIN"), F),
            (e.query("SAVEPOINT `a`"), scan.SAVEPOINT),
            (e.query("ROLLBACK TO `a`"), scan.SAVEPOINT),
            (e.query("RELEASE SAVEPOINT `a`"), scan.SAVEPOINT),
            (e.query("ROLLBACK"), E),
        ],
        [GTID_TS],
    ),
    "mysql, XA": (
        [
            (MYSQL, B | F),
            (e.query("XA START X'01',X'',1"), F),
            (MAPPED, MAP),
            (DONE, LAST),
            (e.query("XA END X'01',X'',1"), scan.SAVEPOINT),
            (PREPARE, scan.PREWRITE | E),
            (MYSQL, B | F),
            (e.query("XA COMMIT X'01',X'',1"), scan.XA_ANSWER | E),
        ],
        [GTID_TS, GTID_TS + 1],
    ),
    "mariadb, rows": ([(MARIA, B | F), (MAPPED, MAP), (MORE, ROWS), (DONE, LAST), (e.xid(), E)], [SECOND]),
    "mariadb, compressed rows": ([(MARIA, B | F), (MAPPED, MAP), (PACKED, LAST), (e.xid(), E)], [SECOND]),
    "mariadb, standalone": (
        [(ALONE, B | F), (e.query("DROP TABLE t"), S | E), (ALONE, B | F), (MAPPED, MAP), (DONE, LAST | E)],
        [SECOND, SECOND + 1],
    ),
    "mariadb, LOAD DATA in statement format": (
        [(MARIA, B | F), (LOAD_BEGIN, 0), (LOAD_MORE, 0), (LOAD, S), (e.query("COMMIT"), E)],
        [SECOND],
    ),
    "mariadb, LOAD DATA alone": (
        [(ALONE, B | F), (LOAD_BEGIN, 0), (LOAD, S | E), (MARIA, B | F)],
        [SECOND, SECOND + 1],
    ),
    "no GTIDs": (
        [
            (e.query("BEGIN"), B | F),
            (MAPPED, MAP),
            (DONE, LAST),
            (e.xid(), E),
            (e.query("DROP TABLE t"), B | S | E),
            (MAPPED, B | MAP),
            (DONE, LAST),
            (e.query("COMMIT"), E),
        ],
        [SECOND, SECOND + 1, SECOND + 2],
    ),
    "ends without a transaction": ([(e.xid(), 0), (e.query("COMMIT"), 0), (STOP, 0)], []),
    "a crashed transaction": ([(MARIA, B | F), (MAPPED, MAP), (MARIA, B | F | scan.ABORTED)], [SECOND, SECOND + 1]),
    "too short for its type": ([(e.event(EventType.QUERY, b"x"), scan.MALFORMED)], []),
}


def bits_and_stamps(events: list[bytes], said: dict[int, int] | None = None) -> tuple[list[int], list[int]]:
    state = scan.new_state(NONE, 4)
    bits, stamps = [], []
    for number, event in enumerate(events):
        if said and number in said:
            state[scan.SAID] = said[number] + 1
        data = np.frombuffer(event, np.uint8)
        bits.append(int(scan.scan_at(data.ctypes.data, len(data), len(data), state.ctypes.data)))
        if bits[-1] & B:
            stamps.append(int(state[scan.CURRENT]))
    assert state[scan.TXN_ENDED] == sum(bool(one & E) for one in bits)
    return bits, stamps


@pytest.mark.parametrize("case", SEQUENCES)
def test_each_event_does_what_its_place_in_a_transaction_says(case: str) -> None:
    steps, stamps = SEQUENCES[case]
    assert bits_and_stamps([event for event, _ in steps]) == ([bits for _, bits in steps], stamps)


SAYINGS = {
    "SAVEPOINT `abcdefgh`": scan.Q_SAVEPOINT,
    "ROLLBACK TO `abcdefgh`": scan.Q_SAVEPOINT,
    "XA START X'01',X'',1": scan.Q_XA_START,
    "XA END X'01',X'',1": scan.Q_XA_END,
    "XA COMMIT X'01',X'',1": scan.Q_XA_ANSWER,
    "xa rollback X'01',X'',1": scan.Q_XA_ANSWER,
    "INSERT INTO t VALUES (1)": scan.Q_STATEMENT,
}


@pytest.mark.parametrize("begin", [MARIA, ALONE, MYSQL], ids=["transaction", "standalone", "mysql"])
@pytest.mark.parametrize("sql", SAYINGS)
def test_a_compressed_statement_does_what_its_text_does(sql: str, begin: bytes) -> None:
    rest = [MAPPED, DONE, e.xid()]
    plain = bits_and_stamps([begin, e.query(sql), *rest, MARIA])
    packed = bits_and_stamps([begin, e.compressed_query(sql), *rest, MARIA], {1: SAYINGS[sql]})
    assert packed == plain


def test_what_a_compressed_statement_says_counts_for_it_alone() -> None:
    savepoint = e.compressed_query("SAVEPOINT `abcdefgh`")
    bits, _ = bits_and_stamps([MARIA, savepoint, savepoint], {1: scan.Q_SAVEPOINT})
    assert bits == [B | F, scan.SAVEPOINT, S]


def test_commit_ts_never_goes_back_when_the_clock_does() -> None:
    events = [e.mariadb_gtid(n, seconds=e.SECONDS - n, standalone=True) for n in range(3)]
    _, stamps = bits_and_stamps([part for event in events for part in (event, e.query("DROP TABLE t"))])
    assert stamps == [SECOND, SECOND + 1, SECOND + 2]
