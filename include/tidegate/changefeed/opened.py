"""A changefeed of a pipeline, ready to run.

In:  a pipeline, the name of a TiCDC source in it, its store's options, the lake.
Out: a CaptureRun over it.
"""

from __future__ import annotations

from pathlib import Path

from tidegate.capture.run import CaptureRun
from tidegate.changefeed.reader import ChangefeedSettings, ChangefeedSource
from tidegate.config import Pipeline, TicdcSource
from tidegate.lake.files import LakeFiles
from tidegate.ticdc.pieces import Form


def changefeed_run(
    pipeline: Pipeline, source: str, options: dict[str, str], state_dir: Path, lake: LakeFiles
) -> CaptureRun:
    """state_dir holds the value log unless the pipeline file names a folder."""
    entry = pipeline.sources[source]
    assert isinstance(entry, TicdcSource), "whoever opens a source looks at its kind"
    settings = ChangefeedSettings(
        source,
        entry.path.rstrip("/"),
        options,
        Form.of(entry),
        pipeline.capture.segment_bytes,
        entry.look_seconds,
        pipeline.capture.heartbeat_seconds,
        entry.expiration_days,
    )
    return CaptureRun(pipeline, source, lambda: ChangefeedSource(settings), state_dir, lake)
