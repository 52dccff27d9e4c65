"""Where to ask the server to begin, and whether it still has what comes next.

In:  the facts of a source, its entry in the pipeline file, the checkpoint (or none: first start).
Out: a DumpRequest; or PositionLost, which names what is missing and what to do.
"""

from __future__ import annotations

import uuid
import zlib

from tidegate.capture.checkpoint import Checkpoint
from tidegate.config import DumpMode, Flavour, Pipeline, Source, Start
from tidegate.errors import PositionLost, SourceRefused
from tidegate.position import MariadbGtidPosition, MysqlGtidSet, Position
from tidegate.wire.dump_stream import DumpRequest
from tidegate.wire.source import SourceFacts

_NEW_LAKE = "take a new snapshot: capture into a new lake path"


def first_checkpoint(facts: SourceFacts, source: Source) -> Checkpoint:
    """Before the first segment: the end of the binlog now, or its beginning. Raises PositionLost, SourceRefused."""
    if facts.position is None or not facts.binary_logs:
        raise SourceRefused(
            "the server shows no binlog position", where=facts.where, remedy="check log_bin and the grants"
        )
    if source.start is Start.NOW:
        if source.dump is DumpMode.GTID:
            return Checkpoint.start(gtid_executed=facts.gtid_executed)
        return Checkpoint.start(
            file=facts.position.file, offset=facts.position.offset, gtid_executed=facts.gtid_executed
        )
    first = facts.binary_logs[0][0]
    if facts.gtid_purged or Position.of(first, 4).number > 1:
        missing = f"GTIDs {facts.gtid_purged}" if facts.gtid_purged else f"everything before {first}"
        raise PositionLost(
            f"start: earliest isn't possible, the server has purged {missing}",
            where=facts.where,
            remedy="set start: now",
        )
    return Checkpoint.start(file=first if source.dump is DumpMode.POSITION else "")


def first_position(facts: SourceFacts, source: Source) -> Position:
    """The position that a schema baseline of the first start belongs to."""
    if source.start is Start.NOW and facts.position is not None:
        return facts.position
    return Position.of(facts.binary_logs[0][0], 4)


def check_server(facts: SourceFacts, source: Source, checkpoint: Checkpoint) -> None:
    """Refuse a server that isn't, or no longer has, what the checkpoint continues. Raises PositionLost."""
    if checkpoint.seq == 0:
        return
    same = (facts.server_id, facts.server_uuid) == (checkpoint.server_id, checkpoint.server_uuid)
    if not same and (source.dump is DumpMode.POSITION or checkpoint.open):
        why = "a transaction is half captured" if checkpoint.open else "positions of one server mean nothing on another"
        raise PositionLost(
            f"this is server {facts.server_id} {facts.server_uuid}, captured was {checkpoint.server_id} "
            f"{checkpoint.server_uuid}: {why}",
            where=facts.where,
            remedy="connect to that server again, or " + _NEW_LAKE,
        )
    if source.dump is DumpMode.GTID:
        _check_gtids(facts, checkpoint)
    if same and (source.dump is DumpMode.POSITION or checkpoint.open):
        _check_position(facts, checkpoint)


def dump_request(pipeline: Pipeline, source_name: str, facts: SourceFacts, checkpoint: Checkpoint) -> DumpRequest:
    """What to ask for. A half captured transaction is read again by position, whatever the mode."""
    source = pipeline.sources[source_name]
    name = f"tidegate/{pipeline.pipeline}/{source_name}"
    mode = DumpMode.POSITION if checkpoint.open else source.dump
    return DumpRequest(
        flavour=facts.flavour,
        mode=mode,
        # Upper half of the numbers: people number their servers from 1.
        server_id=source.server_id or zlib.crc32(name.encode()) | 0x80000000,
        replica_uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
        heartbeat_seconds=pipeline.capture.heartbeat_seconds,
        gtid=checkpoint.gtid_executed if mode is DumpMode.GTID else "",
        position=Position.of(checkpoint.file, checkpoint.replay_from) if mode is DumpMode.POSITION else None,
        semi_sync=source.semi_sync,
    )


def _check_gtids(facts: SourceFacts, checkpoint: Checkpoint) -> None:
    if facts.flavour is Flavour.MARIADB:
        there, ours = (
            MariadbGtidPosition.parse(facts.gtid_executed),
            MariadbGtidPosition.parse(checkpoint.gtid_executed),
        )
        if not there.covers(ours):
            raise _lost_commits(facts, facts.gtid_executed, checkpoint)
        return  # what is purged, the server says when asked
    executed, ours_set = MysqlGtidSet.parse(facts.gtid_executed), MysqlGtidSet.parse(checkpoint.gtid_executed)
    if not executed.covers(ours_set):
        raise _lost_commits(facts, facts.gtid_executed, checkpoint)
    lost = MysqlGtidSet.parse(facts.gtid_purged).minus(ours_set)
    if lost.intervals:
        raise PositionLost(
            f"the server has purged GTIDs {lost}, which aren't captured (captured are"
            f" {checkpoint.gtid_executed or 'none'}); any table of this source may have changed in them",
            where=facts.where,
            remedy=_NEW_LAKE,
        )


def _check_position(facts: SourceFacts, checkpoint: Checkpoint) -> None:
    sizes = dict(facts.binary_logs)
    if checkpoint.file not in sizes:
        first = facts.binary_logs[0][0] if facts.binary_logs else "none"
        raise PositionLost(
            f"{checkpoint.position} is purged; the server's first file is {first}; any table of this source may have"
            " changed between them",
            where=facts.where,
            remedy=_NEW_LAKE,
        )
    if sizes[checkpoint.file] < checkpoint.offset:
        raise _lost_commits(facts, f"{checkpoint.file}:{sizes[checkpoint.file]}", checkpoint)


def _lost_commits(facts: SourceFacts, there: str, checkpoint: Checkpoint) -> PositionLost:
    return PositionLost(
        f"the server is at {there or 'the beginning'}, behind what was captured "
        f"({checkpoint.position}, GTID {checkpoint.gtid_executed or 'none'}): it lost transactions that it had sent",
        where=facts.where,
        remedy="was it restored or did it crash? " + _NEW_LAKE,
    )
