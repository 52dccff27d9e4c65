"""A MySQL or MariaDB server as capture's source: one connection for the stream, a second for its
facts and its clock.

In:  a pipeline, the name of a source in it, its connection.
Out: a BinlogSource, whose readers keep the promises of capture/source.py; binlog_run(), which gives
     it to a run.

How it keeps them: the stream gives events in the order of the log, by GTID or by position, and the
cutter takes each byte once (mysql/stream/cutter.py). Bytes from before the checkpoint are walked
and dropped. They come if a transaction is half captured, or if the server chose the place by GTID.
Before the stream opens, two things are checked: the server still has the next events, and they are
the right ones (mysql/history/continuity.py, mysql/start/position.py).

A heartbeat event of the server says: nothing waits to be sent. It proves the second connection's
reading of the clock, if the stream was quiet at the reading and the heartbeat left the server after
it (mysql/stream/quiet.py): every commit before the reading would have been sent before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from tidegate.capture.captured import Captured
from tidegate.capture.run import CaptureRun
from tidegate.capture.source import ClockState, Retention
from tidegate.commit_ts import physical_ms
from tidegate.config import DumpMode, Flavour, Pipeline
from tidegate.errors import LogTorn, PositionLost, SourceUnavailable, StreamCorrupt
from tidegate.home import home
from tidegate.lake.files import LakeFiles, lake_files
from tidegate.mysql.capturing.prepared_watch import PreparedWatch
from tidegate.mysql.capturing.second_connection import SecondConnection
from tidegate.mysql.connecting.connection import ConnectionInfo, answer_seconds
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.history.log_end import LogEndWatch
from tidegate.mysql.servers.fence import FenceWatch
from tidegate.mysql.servers.hosts import Hosts
from tidegate.mysql.servers.same_server import check_apart
from tidegate.mysql.start.position import check_sends, dump_request, first_checkpoint, going_on
from tidegate.mysql.start.recorded import recorded_start
from tidegate.mysql.stream.cutter import Cutter
from tidegate.mysql.stream.cutter_settings import CutterSettings
from tidegate.mysql.stream.dump_stream import DumpStream
from tidegate.mysql.stream.place import NOTHING, BinlogCheckpoint, check_continues, without_open
from tidegate.mysql.stream.quiet import Quiet
from tidegate.mysql.stream.source_clock import SourceClock
from tidegate.position import Position
from tidegate.schema.ddl.reader import tables_named
from tidegate.schema.model.server_settings import ServerSettings
from tidegate.segments.segment import Segment

log = logging.getLogger(__name__)

# Called with a source's facts and the place before its first segment.
FirstStart = Callable[[SourceFacts, Position], None]


def binlog_run(
    pipeline: Pipeline,
    source_name: str,
    connection: ConnectionInfo,
    state_dir: Path,
    *,
    storage_options: dict[str, str] | None = None,
    on_first_start: FirstStart | None = None,
) -> CaptureRun:
    """A run over a server's binlog. state_dir: for the value log, unless the pipeline file names a
    folder.

    on_first_start: called before the first segment of a source. Without it, the schema baseline is
    recorded there. It may raise SourceUnavailable (a DDL ran meanwhile): then the start is tried
    again.
    """
    lake = lake_files(pipeline.lake.path, home(), storage_options or {})

    def source() -> BinlogSource:
        return BinlogSource(pipeline, source_name, connection, lake, on_first_start)

    return CaptureRun(pipeline, source_name, source, state_dir, lake)


class BinlogSource:
    """A server, over several connections of a run."""

    nothing = NOTHING

    def __init__(
        self,
        pipeline: Pipeline,
        source_name: str,
        connection: ConnectionInfo,
        lake: LakeFiles,
        on_first_start: FirstStart | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.source_name = source_name
        self.hosts = connection
        self.connection = connection.each[0]  # of them the one at hand
        self.lake = lake
        self.on_first_start = on_first_start
        self.server_clock = SourceClock(connection.where)
        # An event in which a file of the server's ends, and the last segment before it.
        self.torn: LogTorn | None = None
        self.torn_behind = -1

    @property
    def promises(self) -> bool:
        return self.pipeline.server(self.source_name).semi_sync

    @property
    def clock(self) -> ClockState:
        clock = self.server_clock
        return ClockState(clock.ahead_seconds, clock.doubted, clock.lowered)

    def has_begun(self) -> bool:
        """Whether capture of the source has begun, judged by its baseline.

        The record of another on_first_start isn't known here.
        """
        return self.on_first_start is not None or recorded_start(self.lake, self.source_name) is not None

    def connect(self) -> BinlogReader:
        """The first host that can be captured from. Raises SourceRefused, SourceUnavailable."""
        hosts = Hosts(self.hosts, self.connection)
        self.connection, second = hosts.first(self.opened)
        return BinlogReader(self, second, hosts)

    def opened(self, host: ConnectionInfo) -> SecondConnection:
        """A host's second connection. Raises SourceRefused, SourceUnavailable."""
        patience = answer_seconds(self.pipeline.capture.heartbeat_seconds)
        return SecondConnection.open(host, self.pipeline, self.source_name, self.server_clock, patience)

    def check_continues(self, before: Segment, after: Segment) -> None:
        """Check that a segment continues the one before it. Raises StreamCorrupt."""
        check_continues(before, after)


class BinlogReader:
    """One connection to a server; see SourceReader."""

    def __init__(self, source: BinlogSource, second: SecondConnection, hosts: Hosts) -> None:
        self._source = source
        self._second = second
        self._hosts = hosts
        self._stream: DumpStream
        self._cutter: Cutter
        self._open = False
        self._torn: LogTorn | None = None
        self._quiet = Quiet(source.pipeline.capture.heartbeat_seconds)
        self._came: float | None = None  # when bytes came that heartbeat() hasn't asked about
        self.sends_on = False
        self._prepared = PreparedWatch(source.pipeline.xa.orphan_timeout_seconds, source.connection.where)
        self._fence = FenceWatch(source.hosts, source.connection, second.facts)
        self._log_end = LogEndWatch(source.connection, second.facts)

    # --- before the stream --------------------------------------------------------------------------------

    def first_checkpoint(self, captured: Captured) -> BinlogCheckpoint:
        """The place where capture of the source begins.

        Raises PositionLost, SourceRefused, SourceUnavailable, LakeUnavailable.
        """
        source, facts = self._source, self._second.facts
        check_apart(source.lake, source.pipeline, source.source_name, facts)
        checkpoint = first_checkpoint(source, facts, captured)
        check_apart(source.lake, source.pipeline, source.source_name, facts)
        return checkpoint

    def resume(self, checkpoint: BinlogCheckpoint, captured: Captured, *, patient: bool) -> BinlogCheckpoint:
        """Continue at the first host able to.

        Raises PositionLost, SourceBehind, SourceUnavailable, SourceRefused.
        """
        source = self._source

        def goes_on(host: ConnectionInfo, second: SecondConnection) -> BinlogCheckpoint:
            source.connection = host
            try:
                point = going_on(source, second.facts, captured, checkpoint, patient=patient)
            except PositionLost:
                # The facts are older than the captured log: another capture of this source, which ends only now, may
                # have gone further meanwhile.
                second.look_again()
                point = going_on(source, second.facts, captured, checkpoint, patient=patient)
            if source.hosts.others:  # what is purged MariaDB says only when it is asked: another host may have it
                check_sends(source, second.facts, point)
            return point

        at = source.connection, self._second
        source.connection, self._second, resumed = self._hosts.first_that(at, source.opened, checkpoint.server, goes_on)
        self._prepared = PreparedWatch(source.pipeline.xa.orphan_timeout_seconds, source.connection.where)
        self._fence = FenceWatch(source.hosts, source.connection, self._second.facts)
        self._log_end = LogEndWatch(source.connection, self._second.facts)
        facts = self._second.facts
        if checkpoint.server[0] and (facts.server_id, facts.server_uuid) != checkpoint.server:
            log.warning("source %s is read from another server now: %s", source.source_name, facts.where)
        return resumed

    def open(self, checkpoint: BinlogCheckpoint) -> None:
        """Open the stream after a checkpoint. Raises PositionLost, SourceRefused, SourceUnavailable."""
        source, facts = self._source, self._second.facts
        entry = source.pipeline.server(source.source_name)
        folds = ServerSettings.of(facts.variables).folds_names
        if checkpoint.seq == source.torn_behind:  # by GTID the server finds the file that goes on after it
            checkpoint = without_open(checkpoint)
        self._second.clock_ms()  # before the stream: a dead second connection must not look like a new stream

        def ddl_tables(sql: str, database: str, sql_mode: int) -> list[str]:
            return tables_named(sql, database, sql_mode=sql_mode, server_version=facts.version, folds_names=folds)

        settings = CutterSettings(
            source.source_name,
            facts.flavour,
            entry.dump,
            source.pipeline.capture.segment_bytes,
            ddl_tables,
            entry.semi_sync,
            facts.utc_since,
        )
        self._cutter = Cutter(settings, checkpoint, facts.server_id, facts.server_uuid)
        request = dump_request(source.pipeline, source.source_name, facts, checkpoint)
        self._stream = DumpStream.open(source.connection, request)
        self._open = True

    # --- the stream ---------------------------------------------------------------------------------------

    @property
    def checkpoint(self) -> BinlogCheckpoint:
        return self._cutter.checkpoint

    @property
    def in_transaction(self) -> bool:
        return self._cutter.open

    @property
    def waiting_bytes(self) -> int:
        return self._cutter.waiting_bytes

    @property
    def resolved_ts(self) -> int:
        return self._cutter.resolved_ts

    @property
    def reply_due(self) -> bool:
        return self._cutter.asked_at is not None

    @property
    def source_ms(self) -> float:
        return self._second.source_ms

    def receive(self, timeout_seconds: float) -> list[Segment]:
        """Wait for events, and give full segments.

        Raises StreamCorrupt, SourceUnavailable, or the server's refusal.
        """
        cutter = self._cutter
        if self._torn is not None:
            raise SourceUnavailable(
                "a file of the server's log ends inside an event, as a crash leaves it",
                where=self._torn.where,
                remedy="what follows is asked for by GTID",
            ) from self._torn
        timeout_seconds = min(timeout_seconds, self._quiet.wait_seconds(time.monotonic()))
        if self._stream.receive(cutter.state, timeout_seconds):
            self._came = time.monotonic()
        elif not cutter.waiting_bytes and self._quiet.wants_clock(time.monotonic()):
            # The later it is read, the more it proves.
            self._quiet.read(self._second.clock_ms(), time.monotonic())
        given: list[Segment] = []
        try:
            for segment in cutter.advance(self._stream, self._second.source_ms):
                given.append(segment)  # noqa: PERF402 - what came before an error counts
        except StreamCorrupt as error:
            given += self._ends_torn(error)
        self._prepared.note(given)
        if self._prepared.reply is not None and (said := cutter.prepared(*self._prepared.reply)):
            self._prepared.reply = None
            given += said
        return self._given(given)

    def _ends_torn(self, error: StreamCorrupt) -> list[Segment]:
        """The log before an event in which a file ends. Raises any other error; LogTorn the second
        time.

        MariaDB writes a transaction whole before it commits. If it dies inside one, it keeps the
        half, and begins a new file. That file's GTID_LIST names the last whole transaction, and the
        server sends the file to a reader with everything up to there. A server without some bytes
        of committed transactions comes to the same event again.
        """
        source, cutter = self._source, self._cutter
        if source.torn is not None and cutter.checkpoint.seq == source.torn_behind and not cutter.waiting_bytes:
            raise source.torn from error
        by_gtid = source.pipeline.server(source.source_name).dump is DumpMode.GTID
        if not isinstance(error, LogTorn) or not by_gtid or self._second.facts.flavour is not Flavour.MARIADB:
            raise error
        if (synced := self._second.facts.variables.get("sync_binlog", "1")) != "1":
            log.warning(
                "source %s: a file of its log ends inside an event, and sync_binlog is %s: if its machine"
                " died, not the server alone, committed changes may be in no log; `tidegate verify` finds"
                " such rows",
                source.source_name,
                synced,
            )
        last = cutter.cut_now()
        source.torn, source.torn_behind, self._torn = error, cutter.checkpoint.seq, error
        return last

    def cut_soon(self) -> list[Segment]:
        last = self._cutter.cut_soon()
        return self._given([last] if last else [])

    def cut_now(self) -> list[Segment]:
        return self._given(self._cutter.cut_now())

    def heartbeat(self) -> Segment | None:
        """A segment without events, which moves resolved_ts to a reading of the server's clock; None if
        nothing proves the reading. The proof: the server was idle after it, so no earlier commit can come.
        """
        at_end = self._cutter.log_end.take(int(self._cutter.state["position"]))
        came, self._came = self._came, None
        self.sends_on = at_end is False  # a long file of events that are captured already is passed over in silence
        if came is None:
            return None
        if at_end is None:
            self._quiet.came(came)
            return None
        proved = self._quiet.heartbeat(came, at_end=at_end)
        # Asked after the clock was read: who is promoted later commits later.
        is_proof = proved is not None and self._fence.has_all(self._second.ask)
        segment = self._cutter.heartbeat(proved) if proved is not None and is_proof else None
        self._given([segment] if segment else [])
        return segment

    def acknowledge(self) -> None:
        """Reply to a semi-synchronous server: its events are durable. Raises SourceUnavailable."""
        asked_at, self._cutter.asked_at = self._cutter.asked_at, None
        if asked_at is not None:
            self._stream.acknowledge(asked_at)

    def keep_time(self) -> None:
        """Ask what is due beside the stream: the clock, branches, the host. Raises SourceUnavailable."""
        self._second.keep_time()
        self._prepared.look(self._second.ask)
        self._fence.look(self._second.ask)
        self._log_end.look(self._second.ask, self._cutter.reached, self.checkpoint.place.gtid_executed)

    def retention(self) -> Retention | None:
        """The time until the source purges uncaptured log. Raises SourceUnavailable."""
        return self._second.retention(self.checkpoint.place.file, physical_ms(self.resolved_ts))

    def close(self) -> None:
        try:
            if self._open:
                self._stream.close()
        finally:
            self._second.close()

    def _given(self, segments: list[Segment]) -> list[Segment]:
        self._source.server_clock.note(segments)
        return segments
