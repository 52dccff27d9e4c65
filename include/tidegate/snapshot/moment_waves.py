"""Waves of a TiDB's tables without a key; they outlast the run of their beginning.

In:  tables to be read, control/snapshots, bronze/chunks.
Out: the wave a run begins or continues; events `view`, each before the first chunks of its table
     are landed.

A killed run leaves `view` events and chunks of one token. The next run reads the missing rows at
the same timestamp, and then writes the mark of all chunks. A wave can't be continued if its mark is
written (apply would count two marks of one token as one), or if garbage collection has passed its
timestamp. Then its chunks don't count, and another wave begins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tidegate.errors import TidegateError
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.pump.at_timestamp import is_collected
from tidegate.snapshot.chunks.chunk import Chunk
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, chunk_refs
from tidegate.snapshot.marks.timestamp_marks import TimestampMarks
from tidegate.snapshot.moment_reading import MomentReading, MomentWay
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, TableProgress, View
from tidegate.snapshot.progress.requests import Told
from tidegate.snapshot.reading.table_reader import WaveOf
from tidegate.snapshot.watermark import MarkKind
from tidegate.snapshot.wave_reading import TableWork

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Tell:
    """Callbacks of a reader. event: makes an event about a table. record: writes events. report: takes a line for
    people.
    """

    event: Callable[[TableProgress, EventKind], SnapshotEvent]
    record: Callable[[Sequence[SnapshotEvent]], None]
    report: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class MomentWave:
    """A wave, and its tables. view: as an earlier run began it; landed: that run's chunks."""

    wave: WaveOf
    tables: tuple[TableProgress, ...]
    view: View | None = None
    landed: tuple[Chunk, ...] = ()


class MomentWaves:
    """Those of one source."""

    def __init__(self, info: ConnectionInfo, lake: LakeFiles, events: Told, tell: Tell) -> None:
        self._info, self._lake, self._told, self._tell = info, lake, events, tell
        self._past: set[str] = set()  # tokens of waves whose timestamp garbage collection has passed

    def begin(
        self, todo: Sequence[TableProgress], fresh: WaveOf, marks: TimestampMarks, writer: ChunkWriter
    ) -> MomentWave:
        """The wave begun by an earlier run; else a wave of all tables. fresh: has no timestamp yet.

        Raises SourceRefused, SourceUnavailable, LakeUnavailable, LakeRefused, Overtaken.
        """
        views = (table.view for table in todo if table.view is not None and table.view.token not in self._past)
        view = next((seen for seen in views if not self._told.is_marked(seen.token)), None)
        if view is None:
            marks.write(fresh.mark(MarkKind.LOW))
            return MomentWave(replace(fresh, at_ts=marks.at_ts), tuple(todo))
        writer.fence()  # what lies there from now on is all that there will be of the earlier run
        marks.go_on(view.at_ts)
        landed = tuple(ref.chunk for ref in chunk_refs(self._lake, fresh.source, [view.token]))
        wave = replace(fresh, wave=view.wave, token=view.token, at_ts=view.at_ts)
        return MomentWave(wave, tuple(table for table in todo if table.view == view), view, landed)

    def read(
        self, moment: MomentWave, work: Sequence[TableWork], writer: ChunkWriter, way: MomentWay, parallel: int
    ) -> bool:
        """Read the rest; False when it was stopped. Raises as MomentReading.run."""
        by_name = {table.name: table for table in moment.tables}
        recorded = set(by_name) if moment.view is not None else set()

        def land(chunks: Sequence[Chunk], names: Collection[Name]) -> None:
            fresh = [self._tell.event(by_name[name], EventKind.VIEW) for name in sorted(set(names) - recorded)]
            wave = moment.wave
            self._tell.record([replace(event, wave=wave.wave, token=wave.token, low_ts=wave.at_ts) for event in fresh])
            recorded.update(names)
            writer.append(chunks)
            failpoint("snapshot_after_landing")

        return MomentReading(self._info, moment.wave, work, moment.landed, way, land).run(parallel)

    def is_past(self, moment: MomentWave, error: TidegateError) -> bool:
        """Whether garbage collection has passed the timestamp of an earlier run's wave. Then the next wave is a new
        one.
        """
        if moment.view is None or not is_collected(error):
            return False
        self._past.add(moment.wave.token)
        self._tell.report(
            f"{moment.wave.source}: garbage collection has passed the timestamp {moment.wave.at_ts}, at which tables"
            " without a key were read; they are read anew at another one"
        )
        return True

    def counted(self, moment: MomentWave, work: Sequence[TableWork]) -> list[TableWork]:
        """The work without tables that only came too late for the timestamp."""
        late = [table for table in work if table.trouble is not None and is_collected(table.trouble)]
        if not late or late[0].trouble is None or not self.is_past(moment, late[0].trouble):
            return list(work)
        return [table for table in work if table not in late]
