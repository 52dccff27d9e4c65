"""A Pump of a pipeline, ready to run.

In:  a pipeline, the name of a TiDB source in it, TiDB's SQL connection, the lake.
Out: a CaptureRun over it. Where the pipeline file names PD, it keeps its record there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidegate.capture.progress import CaptureProgress, CaptureResult
from tidegate.capture.run import CaptureRun
from tidegate.config import Pipeline, TidbSource
from tidegate.errors import TidegateError
from tidegate.lake.figures.status import captured_cluster
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import followed
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.pump.cluster import Clock, History, Mvcc
from tidegate.pump.etcd import cluster_of, etcd_of
from tidegate.pump.lost_ddl import LostDdl
from tidegate.pump.parked import Parked
from tidegate.pump.pulled import Pulls
from tidegate.pump.reader import PumpSettings, PumpSource
from tidegate.pump.registration import PumpAddress, Registration
from tidegate.pump.server import PumpServer, PumpServerSettings
from tidegate.pump.stored import stored_in

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PumpRun(CaptureRun):
    """pump: the source of a run, given its registration. place: None: TiDB is given the Pump's address."""

    pump: Callable[[Registration | None], PumpSource]
    place: PumpAddress | None

    def run(
        self,
        run_for_seconds: float,
        idle_seconds: float | None = None,
        stop: threading.Event | None = None,
        on_progress: Callable[[CaptureProgress], None] | None = None,
    ) -> CaptureResult:
        """stop: also set when a person asked the Pump, by PD, to pause or to close, and it is done."""
        if self.place is None:
            return CaptureRun.run(self, run_for_seconds, idle_seconds, stop, on_progress)
        stop = stop or threading.Event()
        registration = Registration(self.place, stop)
        self.source = lambda: self.pump(registration)
        landed = False
        try:
            result = CaptureRun.run(self, run_for_seconds, idle_seconds, stop, on_progress)
            landed = result.landed
        finally:
            registration.end(landed=landed)
        return result


def may_join(pipeline: Pipeline, source: str, lake: LakeFiles) -> bool:
    """Whether TiDB may write to a Pump. Where apply follows other Pumps of the cluster and doesn't
    know this one yet, silver may already be beyond its writes. Raises LakeUnavailable.
    """
    selection = followed.load(lake).selection
    if selection is None or source in selection.sources:
        return True
    return not selection.sources & set(pipeline.pumps(source))


def _place(pipeline: Pipeline, source: str, lake: LakeFiles) -> PumpAddress | None:
    entry = pipeline.sources[source]
    assert isinstance(entry, TidbSource), "whoever opens a source looks at its kind"
    if not entry.pd:
        return None
    assert entry.advertise is not None, "the pipeline file has both"
    return PumpAddress(etcd_of(entry), entry.node or source, entry.advertise, lambda: may_join(pipeline, source, lake))


def known_cluster(pipeline: Pipeline, source: str, lake: LakeFiles) -> int | None:
    """The cluster of a Pump's TiDB, as PD or another Pump of it gives it. The Pump serves without it, too: TiDB waits
    for the Pump.
    """
    try:
        for name in pipeline.pumps(source):
            entry = pipeline.sources[name]
            assert isinstance(entry, TidbSource), "a cluster's sources are Pumps"
            if (known := entry.cluster_id) is None and entry.pd:
                known = cluster_of(etcd_of(entry))
            if known is not None:
                return known
    except TidegateError as error:
        log.warning("PD doesn't say which cluster this Pump is of: %s", error)
    try:
        captured = (captured_cluster(lake, name) for name in pipeline.pumps(source) if name != source)
        return next((int(cluster) for cluster in captured if cluster), None)
    except TidegateError as error:
        log.warning("the lake can't be asked which cluster this Pump is of, so the first write decides: %s", error)
        return None


def pump_run(pipeline: Pipeline, source: str, sql: ConnectionInfo, state_dir: Path, lake: LakeFiles) -> PumpRun:
    """state_dir holds the value log unless the pipeline file names a folder."""
    entry = pipeline.sources[source]
    assert isinstance(entry, TidbSource), "whoever opens a source looks at its kind"
    serves = PumpServerSettings(
        entry.listen,
        entry.payload_bytes_max,
        entry.tls_certificate,
        entry.tls_key,
        entry.tls_ca,
        entry.cluster_id,
    )
    settings = PumpSettings(
        source,
        entry.node or source,
        pipeline.capture.segment_bytes,
        entry.fake_seconds,
        entry.orphan_seconds,
        lambda: Clock(sql),
        Mvcc(entry.status_url, History(sql)) if entry.status_url else None,
        stored_in(lake, source),
        History(sql),
        Parked(
            *(lake, pipeline.owner(source), pipeline.xa.orphans, History(sql).table_of),
            LostDdl(lake, pipeline.pumps(source), History(sql)),
        ),
        lambda: known_cluster(pipeline, source, lake),
    )

    def pump(registration: Registration | None) -> PumpSource:
        pulls = Pulls(lake, source, settings.node)
        return PumpSource(settings, lambda: PumpServer(serves, pulls), registration)

    return PumpRun(
        pipeline, source, lambda: pump(None), state_dir, lake, pump=pump, place=_place(pipeline, source, lake)
    )
