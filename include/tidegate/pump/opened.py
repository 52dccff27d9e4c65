"""A Pump of a pipeline, ready to run.

In:  a pipeline, the name of a TiDB source in it, TiDB's SQL connection, the lake.
Out: a CaptureRun over it.
"""

from __future__ import annotations

from pathlib import Path

from tidegate.capture.run import CaptureRun
from tidegate.config import Pipeline, TidbSource
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connection import ConnectionInfo
from tidegate.pump.cluster import Clock, History, Mvcc
from tidegate.pump.reader import PumpSettings, PumpSource
from tidegate.pump.server import PumpServer, ServerSettings
from tidegate.pump.stored import stored_in


def pump_run(pipeline: Pipeline, source: str, sql: ConnectionInfo, state_dir: Path, lake: LakeFiles) -> CaptureRun:
    """state_dir holds the value log unless the pipeline file names a folder."""
    entry = pipeline.sources[source]
    assert isinstance(entry, TidbSource), "whoever opens a source looks at its kind"
    serves = ServerSettings(
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
    )
    return CaptureRun(pipeline, source, lambda: PumpSource(settings, lambda: PumpServer(serves)), state_dir, lake)
