"""MariaDB: whether another server's GTIDs name the captured transactions, or others of its own.

In:  another server than the captured one, which claims to have all captured GTIDs; a captured
     segment.
Out: check_same_history(): nothing, or PositionLost with the GTID; other_history(): the same as a
     sentence.

A MariaDB GTID is a domain, a server_id and a number. Two servers with one server_id (a clone on its
own) give the same GTIDs to other transactions, and so do two servers set up alike. Therefore the newest
captured transaction is read there again, and the parts kept by replication are compared. One part
is when its statements ran. (A replica writes the times of its source into events of rows and of
DDL, but not always into the GTID event and the XID.) The other is the rows, if both logs have
equally many bytes of them, uncompressed, since a replica may leave columns out. MySQL's GTIDs
contain the server's UUID.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, NamedTuple

from tidegate.binlog.format.events import HEADER_BYTES, HEARTBEATS, EventType, is_made_up, read_header
from tidegate.capture.captured import Captured
from tidegate.config import DumpMode, Flavour
from tidegate.errors import PositionLost, SourceRefused, StreamCorrupt
from tidegate.limits import CONTINUITY_SEGMENTS_MAX, OTHER_HISTORY_BYTES_MAX
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.history.continuity import Packets, is_same_server
from tidegate.mysql.stream.dump_stream import DumpRequest, DumpStream
from tidegate.mysql.stream.event_facts import described_format
from tidegate.position import MariadbGtidPosition
from tidegate.remedy import NEW_LAKE
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind

log = logging.getLogger(__name__)

_ROWS: Final = (EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1)
_OWN_BYTES: Final = 6 + 2  # a table id, which is each server's own, and flags
_TIMED: Final = (EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED, EventType.TABLE_MAP)
_ENDS: Final = (EventType.XID, EventType.XA_PREPARE)


class _Gtid(NamedTuple):
    domain: int
    server: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.sequence}"


class _Event(NamedTuple):
    """One event: its kind, its time and all its bytes but the checksum."""

    kind: int
    seconds: int
    bytes: bytes

    @property
    def gtid(self) -> _Gtid | None:
        if self.kind != EventType.MARIADB_GTID:
            return None
        sequence = int.from_bytes(self.bytes[HEADER_BYTES : HEADER_BYTES + 8], "little")
        domain = int.from_bytes(self.bytes[HEADER_BYTES + 8 : HEADER_BYTES + 12], "little")
        return _Gtid(domain, int.from_bytes(self.bytes[5:9], "little"), sequence)


@dataclass(slots=True)
class _Transaction:
    """The part of a transaction that both servers write alike. whole: up to its end; plain: no event of it is
    compressed.
    """

    seconds: int | None = None
    rows: bytearray = field(default_factory=bytearray)
    whole: bool = False
    plain: bool = True

    def take(self, event: _Event) -> None:
        if self.seconds is None and event.kind in _TIMED:
            self.seconds = event.seconds
        if event.kind in _ROWS:
            self.rows += event.bytes[HEADER_BYTES + _OWN_BYTES :]
        elif EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1 <= event.kind <= EventType.MARIADB_DELETE_ROWS_COMPRESSED:
            self.plain = False
        self.whole = event.kind in _ENDS

    def differs(self, other: _Transaction) -> str:
        """The difference, for a person; "" if nothing says that they are two transactions."""
        if self.seconds is not None and other.seconds is not None and self.seconds != other.seconds:
            return f"it was written {abs(self.seconds - other.seconds)} s apart"
        same_size = len(self.rows) == len(other.rows) and self.whole and other.whole
        if self.plain and other.plain and same_size and self.rows != other.rows:
            return "it has other rows"
        return ""


def check_same_history(info: ConnectionInfo, facts: SourceFacts, captured: Captured, plain: DumpRequest) -> None:
    """Refuse another server whose GTIDs name other transactions than the captured ones.

    plain: a request by GTID. Raises PositionLost, SourceUnavailable.
    """
    tail = captured.tail
    if tail is None or tail.kind is SegmentKind.GAP or is_same_server(facts, tail):
        return
    why = other_history(info, facts, captured, tail, plain)
    if why:
        raise PositionLost(
            f"this is another server than the captured one, with a history of its own under the same GTIDs: {why}",
            where=facts.where,
            remedy="connect to the captured server, or to a replica of it; where its history is gone: " + NEW_LAKE,
        )


def other_history(
    info: ConnectionInfo, facts: SourceFacts, captured: Captured, upto: Segment, plain: DumpRequest
) -> str:
    """The difference there of the newest transaction captured up to a segment; "" without a sign of one.

    Raises SourceUnavailable.
    """
    if facts.flavour is not Flavour.MARIADB or facts.galera:  # nodes of a cluster number one stream of write sets
        return ""
    newest = _newest(captured, upto)
    if newest is None:
        log.warning("%s is another server: no captured transaction is at hand to compare with it", facts.where)
        return ""
    gtid, before, ours = newest
    try:
        request = replace(plain, mode=DumpMode.GTID, gtid=before, position=None, semi_sync=False)
        theirs = _there(info, request, gtid, ours)
    except (PositionLost, SourceRefused, StreamCorrupt) as error:
        log.warning("%s is another server: GTID %s can't be compared with what it has: %s", facts.where, gtid, error)
        return ""
    if theirs is None:
        log.warning("%s is another server: it sends no GTID %s to compare", facts.where, gtid)
        return ""
    why = ours.differs(theirs)
    return f"GTID {gtid} is another transaction there: {why}" if why else ""


def _newest(captured: Captured, upto: Segment) -> tuple[_Gtid, str, _Transaction] | None:
    """(its GTID, the position before it, what was captured of it)."""
    pairs = (segment for segment in captured.newest_first() if segment.seq <= upto.seq)
    behind: Segment | None = None
    for before in islice(pairs, CONTINUITY_SEGMENTS_MAX):
        if behind is not None and (newest := _last_in(captured, behind, before.gtid_executed)):
            return newest
        behind = before
    return _last_in(captured, behind, "") if behind is not None else None


def _last_in(captured: Captured, narrow: Segment, executed: str) -> tuple[_Gtid, str, _Transaction] | None:
    """The last transaction that begins in a segment. executed: where it begins, "" when unknown."""
    segment = captured.whole(narrow)
    if segment is None:
        return None
    position = MariadbGtidPosition.parse(executed)
    last: tuple[_Gtid, str, _Transaction] | None = None
    for event in _captured_events(segment):
        if gtid := event.gtid:
            last = gtid, str(position), _Transaction()
            position.domains[gtid.domain] = (gtid.server, gtid.sequence)
        elif last:
            last[2].take(event)
    if last and not segment.flags & SegmentFlag.OPEN_AT_END:
        last[2].whole = True
    known = last and last[0].domain in MariadbGtidPosition.parse(last[1]).domains
    return last if known else None


def _captured_events(segment: Segment) -> Iterator[_Event]:
    """Those of its payload; the context says whether checksums stand after them."""
    checksum = 4
    for data, is_payload in ((bytes(segment.context), False), (bytes(segment.payload), True)):
        at = 0
        while at + HEADER_BYTES <= len(data):
            header = read_header(data[at : at + HEADER_BYTES])
            event = data[at : at + header.size]
            if header.type == EventType.FORMAT_DESCRIPTION:
                checksum = described_format(event, segment.where)[1]
            elif is_payload:
                yield _Event(header.type, int.from_bytes(event[:4], "little"), event[: len(event) - checksum])
            at += header.size


def _there(info: ConnectionInfo, request: DumpRequest, gtid: _Gtid, ours: _Transaction) -> _Transaction | None:
    """The server's copy of this transaction, as far as it can be compared with ours; None when it sends none.

    Raises what the stream raises.
    """
    stream = DumpStream.open(info, request)
    try:
        return _of(_sent_events(stream, str(gtid)), gtid, ours)
    finally:
        stream.close()


def _of(events: Iterable[_Event], gtid: _Gtid, ours: _Transaction) -> _Transaction | None:
    transaction: _Transaction | None = None
    for event in events:
        if transaction is None:
            transaction = _Transaction() if event.gtid == gtid else None
        elif event.gtid is not None:
            transaction.whole = True
            return transaction
        else:
            transaction.take(event)
            # Of a transaction that isn't captured whole, or is larger there, the time alone can be compared.
            enough = transaction.seconds is not None and (not ours.whole or len(transaction.rows) > len(ours.rows))
            if transaction.whole or enough:
                return transaction
    if transaction is not None:
        transaction.whole = True  # the server has nothing after it
    return transaction


def _sent_events(stream: DumpStream, where: str) -> Iterator[_Event]:
    """Up to a heartbeat: the server has sent all that it has by then. Raises StreamCorrupt where none comes."""
    packets, checksum, taken = Packets(stream), 0, 0
    while taken < OTHER_HISTORY_BYTES_MAX:
        packets.begin()
        head = packets.take(HEADER_BYTES)
        header = read_header(head)
        if header.type in HEARTBEATS:
            return
        event = head + packets.take(header.size - HEADER_BYTES)
        taken += len(event)
        if header.type == EventType.FORMAT_DESCRIPTION:
            checksum = described_format(event, where)[1]
        elif not is_made_up(header):
            yield _Event(header.type, int.from_bytes(head[:4], "little"), event[: len(event) - checksum])
    raise StreamCorrupt(f"it doesn't end within {OTHER_HISTORY_BYTES_MAX >> 20} MiB", where=where)
