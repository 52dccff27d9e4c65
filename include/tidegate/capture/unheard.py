"""Pumps of a pipeline that have fallen silent.

In:  a pipeline, its sources in bronze, the time.
Out: per Pump a text with the DAG of its capture, since a DAG a new release adds begins paused.

A running Pump writes a timestamp every few seconds, however quiet its TiDB is. A stopped Pump holds
the cut back, and nothing else shows it: TiDB goes on committing through the other Pumps.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.config import Pipeline
from tidegate.lake.figures.status import SourceStatus
from tidegate.limits import PUMP_UNHEARD_SECONDS
from tidegate.text_layout import age_text


def unheard(pipeline: Pipeline, captured: Mapping[str, SourceStatus], now: float) -> dict[str, str]:
    """Pump's name -> text. Empty for a pipeline without captured log. now: Unix time."""
    silent = {}
    for name, entry in pipeline.sources.items():
        if (pushed_seconds := entry.traits.pushed_seconds) is None or not captured:
            continue
        seconds = now - captured[name].heard_at if name in captured else None
        spare = 3 * max(pipeline.capture.heartbeat_seconds, pushed_seconds, pipeline.land_seconds)
        if seconds is not None and seconds <= max(PUMP_UNHEARD_SECONDS, spare):
            continue
        what = "nothing came from this Pump yet" if seconds is None else f"nothing came from it for {age_text(seconds)}"
        silent[name] = (
            f"{what}, and the cut may wait for it: is its capture running? In Airflow that is"
            f" {pipeline.capture_dag(name)}; a DAG that a release adds begins paused: unpause it"
        )
    return silent
