"""All pipelines at a glance: a line each.

In:  Views.
Out: HTML.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from tidegate.capture.health import health
from tidegate.commit_ts import time_text
from tidegate.lake.verified import VerifiedTogether
from tidegate.tables import State
from tidegate.text_layout import age_text
from tidegate_airflow.page.charts import sparkline
from tidegate_airflow.page.tables_list import WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.lake.status import TableStatus
    from tidegate.pipelines import PipelineView


def overview(views: Sequence[PipelineView]) -> str:
    """Those that need a look first."""
    if not views:
        return "<p>There is no pipeline that you may see.</p>"
    shown = sorted(views, key=lambda view: (health(view.standing).is_good, view.pipeline.pipeline))
    names = ("Pipeline", "State", "Behind", "Last hour", "Rows/s", "Tables", "Verified through", "In words")
    heads = "".join(f"<th scope='col'>{name}</th>" for name in names)
    rows = "".join(map(_row, shown))
    return (
        "<div class='wide' tabindex='0' role='region' aria-label='Pipelines'><table>"
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(view: PipelineView) -> str:
    name, state = escape(view.pipeline.pipeline), health(view.standing)
    head = f"<tr><th scope='row'><a href='dags/{name}__apply'>{name}</a></th>"
    badge = f"<td><span class='badge {'good' if state.is_good else 'bad'}'>{state}</span></td>"
    if view.standing is None:
        return f"{head}{badge}<td></td><td></td><td></td><td></td><td></td><td>{escape(view.why)}</td></tr>"
    timeline = view.timeline
    line = sparkline(timeline.lag, f"Lag of {view.pipeline.pipeline} over the last hour") if timeline else ""
    rate = f"{timeline.rows_a_second:,.1f}" if timeline else ""
    cells = (escape(age_text(view.standing.lag_seconds)), line, rate, _counts(view.standing.tables), _verified(view))
    return f"{head}{badge}{''.join(f'<td>{cell}</td>' for cell in cells)}<td>{escape(view.why)}</td></tr>"


def _counts(tables: Sequence[TableStatus]) -> str:
    counts = Counter(table.state for table in tables)
    return ", ".join(f"{counts[state]:,} {WORDS[state]}" for state in State if counts[state]) or "none"


def _verified(view: PipelineView) -> str:
    """The oldest of the tables that were ever verified, and how many never were."""
    assert view.standing is not None, "the lake was read"
    alive = [table.table for table in view.standing.tables if not table.has_ended]
    together = VerifiedTogether.of(alive, view.verified)
    if together.never == len(alive):
        return "never" if alive else "-"
    different = together.outcomes.get("different", 0)
    parts = [
        escape(time_text(together.through_ts)) if together.through_ts else "-",
        *([f"{together.never:,} never"] if together.never else []),
        *([f"<span class='bad'>{different:,} different</span>"] if different else []),
    ]
    return "; ".join(parts)
