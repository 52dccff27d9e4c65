"""The event of the silver asset: how far silver is, and which tables are held.

In:  a lake; the newest event of the asset.
Out: the event's content, for the end of apply's run and for each minute of it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from tidegate_airflow.assets import silver_asset

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.config import Pipeline
    from tidegate.lake.files import LakeFiles
    from tidegate.standing.shown import LacksSnapshots

log = logging.getLogger(__name__)

_NAMED_MAX: Final = 5


def silver_event(lake: LakeFiles, lacks_snapshots: LacksSnapshots = lambda _: False) -> dict[str, Any]:
    """The content of the silver asset's event: {"cut_ts", "cut_at", "held": {table: reason and way out}, "text": a
    sentence}. Raises LakeUnavailable, LakeRefused.
    """
    from tidegate.commit_ts import time_text
    from tidegate.lake.figures.status import cut_ts
    from tidegate.lake.standing.held import held_tables
    from tidegate.standing.shown import line_of
    from tidegate.text_layout import counted

    newest = cut_ts(lake)
    cut_at = time_text(newest)
    held = {table: line_of(state, lacks_snapshots) for table, state in sorted(held_tables(lake).items())}
    text = f"Silver is complete up to {cut_at}"
    if held:
        more = f" and {len(held) - _NAMED_MAX} more" if len(held) > _NAMED_MAX else ""
        first = ", ".join(list(held)[:_NAMED_MAX]) + more
        text += f", but for {counted(len(held), 'held table', 'held tables')}: {first}"
    return {"cut_ts": newest, "cut_at": cut_at, "held": held, "text": f"{text}."}


def is_known(event: dict[str, Any], pipeline: Pipeline, context: Context) -> bool:
    """Whether the newest event of the asset says the same; False if Airflow doesn't answer. The task needs the asset
    among its inlets.
    """
    try:
        newest = list(context["inlet_events"][silver_asset(pipeline)].ascending(False).limit(1))
    except Exception as error:  # noqa: BLE001 - of Airflow's API; the work is done, and a second event does no harm
        log.warning("the newest event of %s__silver can't be read: %s", pipeline.pipeline, error)
        return False
    extra = (newest[0].extra or {}) if newest else {}
    return all(extra.get(key) == event[key] for key in ("cut_ts", "held"))
