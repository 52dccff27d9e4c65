"""Whether a server still has the log it sent: a crash may undo the end of it, a restore or RESET
may replace it.

In:  the facts of the connected server, the captured segments' places and checksums.
Out: nothing, or PositionLost with the log the source lacks, its tables, and the remedy.

A server may lose the end of its log (sync_binlog = 0 and a dead host, an old image of the machine).
It gives its next transactions the numbers of the lost ones. Therefore its GTIDs prove nothing: capture
would leave the lost rows in silver and skip the new ones. Therefore the bytes are compared. The
newest captured events are requested again, by position, and their CRC-32C must be the captured one.
Another server doesn't have these bytes. There GTIDs must suffice: servers of a topology never use
them twice.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from tidegate.binlog.format.events import HEARTBEATS, EventType, is_made_up, read_header
from tidegate.capture.captured import Captured
from tidegate.config import Flavour
from tidegate.errors import PositionLost, SourceBehind, SourceRefused, StreamCorrupt
from tidegate.limits import CONTINUITY_RECEIVE_SECONDS, CONTINUITY_SEGMENTS_MAX, PACKET_BYTES_MAX
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.stream.dump_stream import OFFSET_MAX, DumpRequest, DumpStream
from tidegate.position import MariadbGtidPosition, MysqlGtidSet, Position
from tidegate.remedy import NEW_LAKE
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment, Server
from tidegate.tables import SegmentKind

_HEADER_BYTES: Final = 19
_STARTED_AT: Final = _HEADER_BYTES + 2 + 50  # in a FORMAT_DESCRIPTION, after two versions
_PACKET_HEADER_BYTES: Final = 4
# How far back is looked for where the server's history parts from ours; beyond that the message says "at least".
_NAMES_MAX: Final = 20


def check_continuity(
    info: ConnectionInfo, facts: SourceFacts, captured: Captured, request: Callable[[Position], DumpRequest]
) -> None:
    """Compare the newest captured bytes with the server's. request: how to ask for events from a
    position on.

    Only the server that sent them is asked, and only if it still has the file.
    Raises PositionLost, SourceUnavailable.
    """
    tail = captured.tail
    if tail is None or tail.kind is SegmentKind.GAP or not is_same_server(facts, tail):
        return
    reader = Reader(info, dict(facts.binary_logs), request)
    if reader.purged(tail) or reader.has(tail):
        return
    lost, before = [tail], None
    for segment in islice(captured.newest_first(), 1, CONTINUITY_SEGMENTS_MAX):
        if not is_same_server(facts, segment) or reader.purged(segment) or reader.has(segment):
            before = segment
            break
        lost.append(segment)
    raise _lost(facts, lost, before)


def check_gtids(facts: SourceFacts, gtid_executed: str, captured: Captured, *, patient: bool = False) -> None:
    """Refuse a server without captured transactions. Raises PositionLost.

    patient: SourceBehind, as long as it may still get them: as a replica that applies its relay log, in a cluster.
    """
    lacking = _lacking(facts, gtid_executed, captured.tail)
    if not lacking:
        return
    if patient and facts.may_receive:
        raise SourceBehind(
            f"the server doesn't have yet what was captured: GTIDs {lacking}; it still receives",
            where=facts.where,
            remedy="it is waited for, up to capture.failover_wait_seconds",
        )
    lost = []
    for segment in islice(captured.newest_first(), CONTINUITY_SEGMENTS_MAX):
        if not _lacking(facts, segment.gtid_executed, captured.tail):
            break
        lost.append(segment)
    raise PositionLost(
        f"the server doesn't have transactions that were captured: GTIDs {lacking} (it has"
        f" {facts.gtid_executed or 'none'}){_touched(lost, whole=len(lost) < CONTINUITY_SEGMENTS_MAX)}",
        where=facts.where,
        remedy="connect to a server that has them; if none has, silver holds what the source lost: " + NEW_LAKE,
    )


def _lacking(facts: SourceFacts, ours: str, tail: Segment | None) -> str:
    """Our GTIDs that the server never executed, in its own form; "" if it has them all.

    If the same server doesn't know a domain, the domain was removed there (MariaDB: FLUSH BINARY
    LOGS DELETE_DOMAIN_ID). Its own transactions may be in its log while they wait for a replica's
    reply (MySQL: semi-sync with AFTER_SYNC).
    """
    known = tail is not None and is_same_server(facts, tail)
    if facts.flavour is Flavour.MYSQL:
        lacking = MysqlGtidSet.parse(ours).minus(MysqlGtidSet.parse(facts.gtid_executed))
        return str(lacking.minus(facts.gtid_owned) if known else lacking)
    executed, here = MariadbGtidPosition.parse(facts.gtid_executed), MariadbGtidPosition.parse(ours)
    lacking_gtids = []
    for domain, (server, sequence) in sorted(here.domains.items()):
        if known and domain not in executed.domains:
            continue
        reached = executed.domains.get(domain, (0, 0))[1]
        if reached < sequence:
            last = f"{domain}-{server}-{sequence}"
            lacking_gtids.append(last if reached + 1 == sequence else f"after {domain}-*-{reached} up to {last}")
    return ", ".join(lacking_gtids)


def is_same_server(facts: SourceFacts, captured: Segment) -> bool:
    """Whether the captured log is this server's."""
    return is_server(facts, captured.server, captured.file)


def is_server(facts: SourceFacts, server: Server, file: str) -> bool:
    """Whether this is that server, by its ids and the name of its files.

    Under another name (log_bin was changed) their numbers say nothing, and only GTIDs do.
    """
    if (facts.server_id, facts.server_uuid) != server:
        return False
    bases = {Position.of(name, 0).base for name, _ in facts.binary_logs}
    return not bases or not file or Position.of(file, 0).base in bases


def _lost(facts: SourceFacts, lost: list[Segment], before: Segment | None) -> PositionLost:
    first, last, whole = lost[-1], lost[0], before is not None or len(lost) < CONTINUITY_SEGMENTS_MAX
    last_file = ", ".join(f"{name}:{size}" for name, size in facts.binary_logs[-1:]) or "no file"
    gtids = _gtids_between(facts.flavour, before.gtid_executed if before else "", last.gtid_executed)
    return PositionLost(
        f"the log captured from {first.file}:{first.start_pos} to {last.file}:{last.end_pos}{gtids} isn't what the"
        f" server has there now; its binlog ends at {last_file}{_touched(lost, whole=whole)}",
        where=facts.where,
        remedy="it crashed without its last transactions, was restored or reset: silver holds what it lost; "
        + NEW_LAKE,
    )


def _gtids_between(flavour: Flavour, before: str, last: str) -> str:
    if not last:
        return ""
    if not before:
        return f" (GTIDs up to {last})"
    if flavour is Flavour.MYSQL:
        return f" (GTIDs {MysqlGtidSet.parse(last).minus(MysqlGtidSet.parse(before))})"
    return f" (GTIDs after {before} up to {last})"


def _touched(lost: list[Segment], *, whole: bool) -> str:
    names = sorted({name for segment in lost for name in segment.tables})
    if not names:
        return ""
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return f"; they touched {'' if whole else 'at least '}{', '.join(names[:_NAMES_MAX])}{more}"


class Reader:
    """Reads captured slices of the server's files again."""

    def __init__(self, info: ConnectionInfo, sizes: dict[str, int], request: Callable[[Position], DumpRequest]) -> None:
        self._info, self._sizes, self._request = info, sizes, request
        self._oldest = min((Position.of(name, 0) for name in sizes), default=None)

    def purged(self, segment: Segment) -> bool:
        """Whether the server removed the file as it grew old: nothing can be said of it then."""
        return self._oldest is None or Position.of(segment.file, 0) < self._oldest

    def has(self, segment: Segment) -> bool:
        """Whether the server has the captured bytes there. Raises SourceUnavailable.

        A position beyond 4 GiB of a file can't be requested: there only the file's length is
        compared.
        """
        if self._sizes.get(segment.file, 0) < segment.end_pos:
            return False
        if segment.start_pos > OFFSET_MAX:
            return True
        stream = DumpStream.open(self._info, self._request(Position.of(segment.file, segment.start_pos)))
        try:
            return segment.payload_crc32c in _crcs_of(stream, segment.start_pos, segment.end_pos)
        except (PositionLost, SourceRefused, StreamCorrupt):  # the server itself finds no sound event there
            return False
        finally:
            stream.close()


def probe(stream: DumpStream) -> None:
    """Wait for the server's first event. Raises its refusal, SourceUnavailable."""
    Packets(stream).begin()


def _crcs_of(stream: DumpStream, start: int, end: int) -> set[int]:
    """CRC-32C of the events from start to end, in each form the server sends them in.

    Empty when no event ends there. Raises the stream's errors.
    """
    packets, position, crcs = Packets(stream), start, {0}
    while position < end:
        packets.begin()
        head = packets.take(_HEADER_BYTES)
        header = read_header(head)
        kind, length, made_up = header.type, header.size, is_made_up(header)
        if kind in HEARTBEATS or (kind == EventType.ROTATE and not made_up and position + length < end):
            return set()  # the server has no more of this file
        if length < _HEADER_BYTES or (not made_up and position + length > end):
            return set()
        left = length - _HEADER_BYTES
        if kind == EventType.FORMAT_DESCRIPTION and not made_up:
            forms = _forms(head + packets.take(left))
            crcs = {crc32c(form, crc) for crc in crcs for form in forms}
            left = 0
        elif not made_up:
            crcs = {crc32c(head, crc) for crc in crcs}
        while left:
            part = packets.some(left)
            crcs = crcs if made_up else {crc32c(part, crc) for crc in crcs}
            left -= len(part)
        position += 0 if made_up else length
    return crcs


def _forms(event: bytes) -> list[bytes]:
    """A FORMAT_DESCRIPTION as it is, and without the time of the server's start.

    The first file of a running server has this time. By position the server sends it. By GTID, for
    the file in which it begins to read, it doesn't (MySQL: sql/rpl_binlog_sender.cc); the event
    then has a checksum of its own, if it has one.
    """
    without = event[:_STARTED_AT] + bytes(4) + event[_STARTED_AT + 4 :]
    return [event, without, without[:-4] + zlib.crc32(without[:-4]).to_bytes(4, "little")]


class Packets:
    """Bytes of events, whichever packets they came in; nothing larger than the receive buffer is held."""

    def __init__(self, stream: DumpStream) -> None:
        self._stream = stream
        self._view = memoryview(stream.received.data)
        self._state: dict[str, Any] = {"read": 0, "have": 0}
        self._left = 0  # of the packet at hand
        self._whole = False  # it is as large as packets get: the event goes on in the next

    def begin(self) -> None:
        """To the next event. Raises the server's refusal."""
        self._packet()
        self._need(1)
        if self._view[self._state["read"]]:
            self._need(self._left)
            self._state["read"] -= _PACKET_HEADER_BYTES
            raise self._stream.refusal(self._state)
        self._state["read"] += 1
        self._left -= 1

    def take(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            received += bytes(self.some(count - len(received)))
        return received

    def some(self, count: int) -> memoryview:
        """At least one byte and at most count of the event, valid until the next call."""
        if not self._left:
            if not self._whole:
                raise StreamCorrupt("a packet is shorter than its event", remedy="check the network")
            self._packet()
        self._need(1)
        read, have = self._state["read"], self._state["have"]
        size = min(count, self._left, have - read)
        self._state["read"] = read + size
        self._left -= size
        return self._view[read : read + size]

    def _packet(self) -> None:
        self._need(_PACKET_HEADER_BYTES)
        read = self._state["read"]
        self._left = int.from_bytes(self._view[read : read + 3], "little")
        self._whole = self._left == PACKET_BYTES_MAX
        self._state["read"] = read + _PACKET_HEADER_BYTES

    def _need(self, count: int) -> None:
        while self._state["have"] - self._state["read"] < count:
            # What was read of a packet's header stays: a refusal is told from its beginning.
            kept = min(self._state["read"], _PACKET_HEADER_BYTES)
            self._state["read"] -= kept
            self._stream.receive(self._state, CONTINUITY_RECEIVE_SECONDS)
            self._state["read"] += kept
