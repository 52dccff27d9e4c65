"""All pipelines at a glance: a line each.

In:  Views.
Out: HTML.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

from tidegate.capture.purging import UNREAD
from tidegate.commit_ts import time_text
from tidegate.lake.figures.verified import VerifiedTogether
from tidegate.limits import PURGE_SOON_SECONDS
from tidegate.tables import State
from tidegate.text_layout import age_text, counted, rate_text
from tidegate_airflow.page.charts import sparkline
from tidegate_airflow.page.layout import wide_table
from tidegate_airflow.page.tables_list import WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.capture.standing import CaptureStanding
    from tidegate.errors import ConfigError
    from tidegate.lake.figures.status import TableStatus
    from tidegate.pipelines import PipelineView


def broken_files(errors: Sequence[ConfigError]) -> str:
    """The pipeline files that give no DAG, each with its error; "" without any."""
    lines = "".join(f"<li>{escape(str(error))}</li>" for error in errors)
    if not lines:
        return ""
    head = counted(len(errors), "pipeline file has no DAGs, as it", "pipeline files have no DAGs, as they")
    return f"<p class='bad'>{head} can't be used:</p><ul aria-label='Pipeline files with errors'>{lines}</ul>"


def overview(views: Sequence[PipelineView]) -> str:
    """The list of pipelines; those in trouble come first."""
    if not views:
        return "<p>There is no pipeline that you may see.</p>"
    shown = sorted(views, key=lambda view: (view.health.is_good, view.pipeline.pipeline))
    names = ("Pipeline", "State", "Behind", "Last hour", "Rows/s", "Tables", "Next purge", "Verified", "In words")
    return wide_table("Pipelines", names, map(_cells, shown))


def _cells(view: PipelineView) -> tuple[str, ...]:
    name, state = escape(view.pipeline.pipeline), view.health
    head = f"<a href='dags/{name}__apply'>{name}</a>"
    badge = f"<span class='badge {'good' if state.is_good else 'bad'}'>{state}</span>"
    if view.standing is None:
        return (head, badge, "", "", "", "", "", "", escape(view.why))
    timeline = view.timeline
    line = sparkline(timeline.lag, f"Lag of {view.pipeline.pipeline} over the last hour") if timeline else ""
    rate = rate_text(timeline.rows_a_second) if timeline else ""
    behind, tables = escape(age_text(view.standing.lag_seconds)), _counts(view.standing.tables)
    purge, verified = _purge(view.standing), verification(view)
    return (head, badge, behind, line, rate, tables, purge, verified, escape(view.why))


def _counts(tables: Sequence[TableStatus]) -> str:
    counts = Counter(table.state for table in tables)
    return ", ".join(f"{counts[state]:,} {WORDS[state]}" for state in State if counts[state]) or "none"


def _purge(stands: CaptureStanding) -> str:
    """The first source to purge uncaptured binlog, if capture stops now."""
    known = [(source.purge.seconds_left, source.source) for source in stands.sources if source.purge is not None]
    first = min([(left, name) for left, name in known if left is not None], default=None)
    if first is None:
        keep = [source for source in stands.sources if source.purge is not None and source.purge.rule != UNREAD]
        return "none" if keep and len(keep) == len(stands.sources) else "not known"
    when = f"in {age_text(first[0])}" if first[0] else "at any moment"
    bad = " class='bad'" if first[0] < PURGE_SOON_SECONDS else ""
    return f"<span{bad}>{escape(when)}</span>" + (f" ({escape(first[1])})" * (len(stands.sources) > 1))


def verification(view: PipelineView) -> str:
    """The newest verification's age and outcome, the oldest moment up to which a table is proven, and the number of
    unverified tables.
    """
    assert view.standing is not None, "the lake was read"
    alive = view.standing.alive
    together = VerifiedTogether.of(alive, view.verified)
    if together.never == len(alive):
        return "<span class='bad'>never</span>" if alive else "-"
    ago = view.at - datetime.fromisoformat(together.last_at).timestamp()
    outcomes = (
        f"<span class='{'good' if outcome == 'equal' else 'bad'}'>{count:,} {escape(outcome)}</span>"
        for outcome, count in sorted(together.outcomes.items())
    )
    through = [f"through {escape(time_text(together.through_ts))}"] if together.through_ts else []
    never = [f"{together.never:,} never"] if together.never else []
    return "; ".join([f"{escape(age_text(max(0.0, ago)))} ago: {', '.join(outcomes)}", *through, *never])
