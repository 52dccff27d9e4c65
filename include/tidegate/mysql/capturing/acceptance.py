"""A person accepts a source's loss of captured log, or its purge of uncaptured log. Capture then
continues after the gap.

In:  a source at which capture stopped (PositionLost on every host), its bronze and value log.
Out: a Gap: the loss, and where capture can continue. Recorded, it is a segment of bronze without
     bytes. Apply holds the tables in it until a CREATE TABLE at the source makes them whole again;
     or a TRUNCATE, unless the loss may hide DDL (HAS_DDL).

Capture continues after the newest captured segment still at the server, if it can continue there.
The gap then names the tables of the later segments. Without such a segment it continues at the
beginning of the server's binlog. Nobody knows the changes in between, so the gap names every table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

import pymysql

from tidegate.capture.captured import Captured
from tidegate.capture.recovery import Recovered, land_rest
from tidegate.capture.value_log.log import ValueLog
from tidegate.config import DumpMode, Flavour
from tidegate.errors import LakeUnavailable, PositionLost, SourceRefused, SourceUnavailable, TidegateError
from tidegate.lake.bronze.table import Bronze
from tidegate.limits import ACCEPTANCE_SEGMENTS_MAX
from tidegate.mysql.capturing.reader import BinlogSource
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.demands.preflight import SourceDemands, preflight
from tidegate.mysql.facts.server_facts import SourceFacts, check_is, read_facts
from tidegate.mysql.history.continuity import Reader, check_gtids, is_same_server
from tidegate.mysql.history.other_history import other_history
from tidegate.mysql.servers.hosts import together
from tidegate.mysql.start.position import (
    RunningCapture,
    check_sends,
    continued,
    dump_request,
    going_on,
    looking,
    reading_again,
)
from tidegate.mysql.stream.place import NOTHING, BinlogCheckpoint, beginning
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.tables import EVERY_TABLE, SegmentFlag, SegmentKind


@dataclass(frozen=True, slots=True)
class Gap:
    """why: the error at which capture stopped, at the host `where`. segment: the gap's record, with
    the waiting tables.
    """

    why: str
    where: str
    segment: Segment


def find_gap(source: BinlogSource, captured: Captured, checkpoint: BinlogCheckpoint) -> Gap | None:
    """The gap at the first of the source's hosts to answer. None if one of them can continue as it
    is.

    Raises SourceUnavailable, SourceRefused.
    """
    gaps: list[Gap] = []
    failures: list[tuple[ConnectionInfo, TidegateError]] = []
    for host in source.hosts.each:
        source.connection = host
        try:
            with connect(host) as connection:
                facts = read_facts(connection, host)
            preflight(facts, SourceDemands.of(source.pipeline, source.source_name))
            gap = _gap_at(source, facts, captured, checkpoint)
        except (SourceUnavailable, SourceRefused) as error:
            failures.append((host, error))
            continue
        if gap is None:
            return None
        gaps.append(gap)
    if not gaps:
        raise together(source.hosts, failures)
    unasked = "".join(f"; not asked: {host.endpoint}: {error.what}" for host, error in failures)
    return replace(gaps[0], why=gaps[0].why + unasked)


def _gap_at(run: RunningCapture, facts: SourceFacts, captured: Captured, checkpoint: BinlogCheckpoint) -> Gap | None:
    try:
        point = going_on(run, facts, captured, checkpoint)
        check_sends(run, facts, point)
    except PositionLost as error:
        why = error.what
    else:
        return None
    reader = Reader(run.connection, dict(facts.binary_logs), reading_again(run.pipeline, run.source_name, facts))
    lost: list[Segment] = []
    for segment in islice(captured.newest_first(), ACCEPTANCE_SEGMENTS_MAX):
        same = is_same_server(facts, segment)
        if same and reader.purged(segment):
            break  # as all before it are
        if not segment.flags & SegmentFlag.OPEN_AT_END and (not same or reader.has(segment)):
            point = _end_of(segment)
            if _goes_on(run, facts, captured, point) and (same or not _another(run, facts, captured, segment)):
                names = {name for segment_lost in lost for name in segment_lost.tables}
                has_ddl = any(segment_lost.flags & SegmentFlag.HAS_DDL for segment_lost in lost)
                return Gap(why, facts.where, _segment(run.source_name, checkpoint, point, names, has_ddl=has_ddl))
        lost.append(segment)
    earliest = _earliest(run, facts)
    return Gap(why, facts.where, _segment(run.source_name, checkpoint, earliest, {EVERY_TABLE}, has_ddl=True))


def record_gap(bronze: Bronze, value_log: ValueLog, recovered: Recovered, gap: Gap) -> None:
    """Land the value log's segments, then the gap. Raises LakeUnavailable, Fenced."""
    if recovered.newest is None:
        raise LakeUnavailable(
            "the place of capture can't be read from it", where=bronze.url, remedy="try again when it can"
        )
    land_rest(bronze, value_log, recovered.newest.seq)
    bronze.append([gap.segment])


def _goes_on(run: RunningCapture, facts: SourceFacts, captured: Captured, point: BinlogCheckpoint) -> bool:
    source = run.pipeline.server(run.source_name)
    try:
        if source.dump is DumpMode.GTID:
            check_gtids(facts, point.place.gtid_executed, captured)
        check_sends(run, facts, continued(facts, source, point))
    except PositionLost:
        return False
    return True


def _another(run: RunningCapture, facts: SourceFacts, captured: Captured, segment: Segment) -> bool:
    """Whether another server has other transactions under the GTIDs up to a segment."""
    plain = looking(dump_request(run.pipeline, run.source_name, facts, NOTHING))
    return bool(other_history(run.connection, facts, captured, segment, plain))


def _end_of(segment: Segment) -> BinlogCheckpoint:
    return NOTHING.after(segment)


def _earliest(run: RunningCapture, facts: SourceFacts) -> BinlogCheckpoint:
    """The beginning of the server's binlog, and the GTIDs before it."""
    first, executed = facts.binary_logs[0][0], facts.gtid_purged
    if facts.flavour is Flavour.MARIADB:
        with connect(run.connection) as connection, connection.cursor() as cursor:
            try:
                check_is(facts.server, cursor, run.connection)
                cursor.execute("SELECT BINLOG_GTID_POS(%s, 4)", (first,))
                executed = str(cursor.fetchone()[0] or "")
            except (pymysql.err.MySQLError, OSError) as error:
                raise named(error, run.connection) from error
    return beginning(first, 4, executed, facts.server_id, facts.server_uuid)


def _segment(
    source: str, checkpoint: BinlogCheckpoint, point: BinlogCheckpoint, names: set[str], *, has_ddl: bool
) -> Segment:
    """The gap's segment: one byte long in the file, to count as a place, but without bytes.

    point: where capture continues, on the server of that file; another server is found by GTID.
    has_ddl: whether the loss may include DDL.
    """
    commit_ts, place = checkpoint.resolved_ts + 1, point.place
    return Segment(
        source=source,
        seq=checkpoint.seq + 1,
        kind=SegmentKind.GAP,
        server_id=point.server[0],
        server_uuid=point.server[1],
        file=place.file,
        start_pos=place.offset - 1,
        end_pos=place.offset,
        gtid_executed=place.gtid_executed,
        prev_commit_ts=checkpoint.resolved_ts,
        min_commit_ts=commit_ts,
        max_commit_ts=commit_ts,
        resolved_ts=commit_ts,
        tables=tuple(sorted(names)),
        flags=SegmentFlag.GAP | (SegmentFlag.HAS_DDL if has_ddl else SegmentFlag(0)),
        event_count=0,
        txn_count=0,
        context=b"",
        payload=b"",
        payload_crc32c=crc32c(b""),
        captured_at=datetime.now(UTC),
    )
