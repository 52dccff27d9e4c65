"""Where to ask the server to begin, and whether it still has what comes next.

In:  the facts of a source, its entry in the pipeline file, the checkpoint (or none: first start).
Out: a DumpRequest; or PositionLost with the missing part and the remedy.
"""

from __future__ import annotations

import logging
import uuid
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from tidegate.capture.captured import Captured
from tidegate.config import DumpMode, Flavour, MysqlSource, Pipeline, Start
from tidegate.errors import PositionLost
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.history.continuity import check_continuity, check_gtids, is_server, probe
from tidegate.mysql.history.other_history import check_same_history
from tidegate.mysql.start.baseline import baseline_writer
from tidegate.mysql.start.prepared import wait_for_prepared
from tidegate.mysql.start.recorded import Began, check_settings, recorded_start
from tidegate.mysql.start.settled import settled
from tidegate.mysql.stream.dump_stream import OFFSET_MAX, DumpRequest, DumpStream
from tidegate.mysql.stream.place import NOTHING, BinlogCheckpoint, BinlogPlace, without_open
from tidegate.position import MysqlGtidSet, Position
from tidegate.remedy import NEW_LAKE

log = logging.getLogger(__name__)

_ROTATE_BYTES: Final = 19 + 8  # header, position; then the next file's name
_CHECKSUM_BYTES: Final = 4


class RunningCapture(Protocol):
    """The part of a CaptureRun that counts here."""

    @property
    def pipeline(self) -> Pipeline: ...
    @property
    def source_name(self) -> str: ...
    @property
    def connection(self) -> ConnectionInfo: ...
    @property
    def lake(self) -> LakeFiles: ...
    @property
    def on_first_start(self) -> Callable[[SourceFacts, Position], None] | None: ...


def first_checkpoint(run: RunningCapture, facts: SourceFacts, captured: Captured) -> BinlogCheckpoint:
    """For a source without captured log: where an earlier start began and failed, or where it
    begins now.

    A baseline is true only for the log after its own place. If the source no longer has this log,
    or start: was changed, a new baseline replaces the old one; a table with rows by then waits, by
    name. Raises PositionLost, SourceRefused, SourceUnavailable (a DDL ran), LakeUnavailable.
    """
    source = run.pipeline.server(run.source_name)
    earlier = recorded_start(run.lake, run.source_name)
    if earlier is not None and earlier.start == source.start:
        try:
            if earlier.still_there(facts):
                return going_on(run, facts, captured, earlier.checkpoint(source.dump))
            lost = f"the server no longer has {earlier.position}"
        except PositionLost as error:
            lost = error.what
        log.warning("%s: capture began at %s and got nothing; it begins again: %s", facts.where, earlier.position, lost)
    if source.start is Start.NOW:
        facts = settled(run.connection, facts)
    began = Began.of(facts, source)
    if source.start == "now":
        wait_for_prepared(run.connection, facts.where)
    record = run.on_first_start or baseline_writer(run.pipeline, run.source_name, run.connection, run.lake)
    record(facts, began.position)
    # Of two that start at once one has recorded its place, and both go on from there.
    return (recorded_start(run.lake, run.source_name) or began).checkpoint(source.dump)


def going_on(
    run: RunningCapture, facts: SourceFacts, captured: Captured, checkpoint: BinlogCheckpoint, *, patient: bool = False
) -> BinlogCheckpoint:
    """The checkpoint as this server can go on from it. Raises PositionLost when it can't, SourceUnavailable.

    patient: a replica with a relay log to apply is SourceBehind.
    """
    if not checkpoint.server[0]:
        return checkpoint
    check_settings(run.lake, run.source_name, facts)
    source = run.pipeline.server(run.source_name)
    check_continuity(run.connection, facts, captured, reading_again(run.pipeline, run.source_name, facts))
    if source.dump is DumpMode.GTID:
        check_gtids(facts, checkpoint.place.gtid_executed, captured, patient=patient)
        plain = looking(dump_request(run.pipeline, run.source_name, facts, NOTHING))
        check_same_history(run.connection, facts, captured, plain)
    return continued(facts, source, checkpoint)


def continued(facts: SourceFacts, source: MysqlSource, checkpoint: BinlogCheckpoint) -> BinlogCheckpoint:
    """The checkpoint on this server. Raises PositionLost if it never had, or no longer has, the
    captured log.

    With GTIDs another server may take over, also inside a transaction. Then the captured part is
    given up: the new server writes it in other events at other positions, and sends it from its
    beginning, if it has it at all.
    """
    place = checkpoint.place
    same = is_server(facts, checkpoint.server, place.file)
    if not same and source.dump is DumpMode.GTID and facts.galera and not facts.on("wsrep_gtid_mode"):
        raise PositionLost(
            "this is another node than the captured one, and each numbers transactions in its own way"
            " (wsrep_gtid_mode is OFF)",
            where=facts.where,
            remedy="connect to that node again, or " + NEW_LAKE,
        )
    if not same and source.dump is DumpMode.POSITION:
        raise PositionLost(
            f"this is server {facts.server_id} {facts.server_uuid} ({_newest(facts)}), captured was"
            f" {checkpoint.server[0]} {checkpoint.server[1]} ({place}): positions of one mean nothing at"
            " another",
            where=facts.where,
            remedy="connect to that server again, or " + NEW_LAKE,
        )
    if source.dump is DumpMode.GTID and facts.flavour is Flavour.MYSQL:
        _check_purged_gtids(facts, place)
    if same and (source.dump is DumpMode.POSITION or place.open):
        _check_file(facts, place)
    if not same and place.open:
        log.warning(
            "%s is another server than before: the transaction that was half captured at %s is read again",
            facts.where,
            place,
        )
        return without_open(checkpoint)
    return checkpoint


def _newest(facts: SourceFacts) -> str:
    return facts.binary_logs[-1][0] if facts.binary_logs else "no binlog file"


def dump_request(pipeline: Pipeline, source_name: str, facts: SourceFacts, checkpoint: BinlogCheckpoint) -> DumpRequest:
    """The request to the server. A half captured transaction is read again by position, whatever the mode."""
    source = pipeline.server(source_name)
    name = f"tidegate/{pipeline.pipeline}/{source_name}"
    place = checkpoint.place
    mode = DumpMode.POSITION if place.open else source.dump
    return DumpRequest(
        flavour=facts.flavour,
        mode=mode,
        # Upper half of the numbers: people number their servers from 1.
        server_id=source.server_id or zlib.crc32(name.encode()) | 0x80000000,
        replica_uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
        heartbeat_seconds=pipeline.capture.heartbeat_seconds,
        gtid=place.gtid_executed if mode is DumpMode.GTID else "",
        position=_first_asked_for(facts, place) if mode is DumpMode.POSITION else None,
        semi_sync=source.semi_sync,
        server=(facts.server_id, facts.server_uuid),
    )


def check_sends(run: RunningCapture, facts: SourceFacts, point: BinlogCheckpoint) -> None:
    """Ask the server to send from there, and close the stream. Raises the server's refusal: MariaDB says
    only when asked that the log before is purged.

    It asks without semi_sync: no commit may wait for the reply of a reader that goes away at once.
    """
    asked = looking(dump_request(run.pipeline, run.source_name, facts, point))
    stream = DumpStream.open(run.connection, asked)
    try:
        probe(stream)
    finally:
        stream.close()


def _first_asked_for(facts: SourceFacts, place: BinlogPlace) -> Position:
    """Where to begin. The protocol can't point beyond 4 GiB of a file. A file as long holds a large
    transaction; if nothing but a ROTATE event follows the place, the next file's beginning is the same.
    """
    position = Position.of(place.file, place.replay_from)
    if position.offset <= OFFSET_MAX:
        return position
    names = [name for name, _ in facts.binary_logs]
    at = names.index(position.file) + 1 if position.file in names else len(names)
    if at < len(names):
        left = facts.binary_logs[at - 1][1] - position.offset
        rotate = _ROTATE_BYTES + len(names[at].encode())
        if left in (0, rotate, rotate + _CHECKSUM_BYTES):
            return Position.of(names[at], 4)
    return position


def reading_again(pipeline: Pipeline, source_name: str, facts: SourceFacts) -> Callable[[Position], DumpRequest]:
    """Makes requests for captured log, again, from a position on. No commit waits for their replies."""
    plain = looking(dump_request(pipeline, source_name, facts, NOTHING))
    return lambda position: replace(plain, mode=DumpMode.POSITION, gtid="", position=position)


def looking(request: DumpRequest) -> DumpRequest:
    """The same request as another replica than capture. A server ends the stream of a second
    replica with the same id, and a running capture would take this for another capture of its
    source. No commit waits for its replies.
    """
    name = f"{request.replica_uuid} looks"
    return replace(
        request,
        server_id=zlib.crc32(name.encode()) | 0x80000000,
        replica_uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
        semi_sync=False,
    )


def _check_purged_gtids(facts: SourceFacts, place: BinlogPlace) -> None:
    """MariaDB says what is purged when it is asked."""
    ours = MysqlGtidSet.parse(place.gtid_executed)
    lost = MysqlGtidSet.parse(facts.gtid_purged).minus(ours)
    if lost.intervals:
        raise PositionLost(
            f"the server has purged GTIDs {lost}, which aren't captured (captured are"
            f" {place.gtid_executed or 'none'}); any table of this source may have changed in them",
            where=facts.where,
            remedy=NEW_LAKE,
        )


def _check_file(facts: SourceFacts, place: BinlogPlace) -> None:
    names = [name for name, _ in facts.binary_logs]
    if place.file not in names:
        raise PositionLost(
            f"{place} is purged; the server's first file is {names[0] if names else 'none'}; any table of"
            " this source may have changed between them",
            where=facts.where,
            remedy=NEW_LAKE,
        )
