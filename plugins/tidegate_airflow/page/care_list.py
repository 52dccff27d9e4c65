"""Prepared transactions without an answer, and the last maintenance, as parts of the page.

In:  a PipelineView: prepared transactions without an answer, the last run of maintain.
Out: HTML.
"""

from __future__ import annotations

import shlex
from html import escape
from typing import TYPE_CHECKING, Final

from tidegate.actions.parked import in_full, tables_of
from tidegate.commit_ts import physical_ms, time_text
from tidegate.config import Orphans
from tidegate.tables.prewrites_table import PrewriteState
from tidegate.text_layout import age_text, counted, size_text
from tidegate_airflow.page.layout import wide_table

if TYPE_CHECKING:
    from tidegate.lake.figures.maintained import LastMaintain, MaintainStep
    from tidegate.pipelines import PipelineView
    from tidegate.segments.prewrites import Prewrite

_SHOWN: Final = 20
_TABLES_NAMED: Final = 5
# Seconds between two runs of schedules with a name. After twice that time a run is late.
_EVERY_SECONDS: Final = {"@hourly": 3600, "@daily": 86_400, "@weekly": 7 * 86_400, "@monthly": 31 * 86_400}


def prewrites_list(view: PipelineView) -> str:
    """Prepared transactions without an answer, those of a person first; "" without any."""
    if not view.prewrites:
        return ""
    shown = sorted(view.prewrites, key=lambda each: (each.state is PrewriteState.OPEN, each.start_ts))[:_SHOWN]
    left = len(view.prewrites) - len(shown)
    more = f"<p>and {left:,} more: <code>tidegate prewrites {escape(view.pipeline.pipeline)}</code></p>" if left else ""
    heads = ("Transaction", "Prepared", "Tables", "Waits for")
    rows = [_prewrite(each, view) for each in shown]
    return (
        "<section aria-labelledby='prewrites'><h3 id='prewrites'>Prepared transactions</h3>"
        f"{wide_table('List of prepared transactions', heads, rows)}{more}</section>"
    )


def _prewrite(prewrite: Prewrite, view: PipelineView) -> tuple[str, ...]:
    age = age_text(max(0.0, view.at - physical_ms(prewrite.start_ts) / 1000))
    names = tables_of(view.pipeline, *[prewrite])
    named = ", ".join(names[:_TABLES_NAMED]) + (", ..." if len(names) > _TABLES_NAMED else "")
    name = view.pipeline.pipeline
    if prewrite.state is PrewriteState.OPEN:
        waits = "its answer at the source: <code>XA COMMIT</code> or <code>XA ROLLBACK</code>"
    else:
        command = f"tidegate prewrites {name} --commit {_quoted(in_full(prewrite))}"
        asked = f"under Required Actions of <code>{escape(name)}__approve</code>, or "
        waits = (
            f"your answer, {asked * (view.pipeline.xa.orphans is Orphans.ASK)}by <code>{escape(command)}</code>,"
            " or <code>--rollback</code> in its place"
        )
    prepared = f"{escape(age)} ago<br>{escape(time_text(prewrite.start_ts))}"
    return f"<code>{escape(prewrite.id)}</code> of {escape(prewrite.source)}", prepared, escape(named or "-"), waits


def _quoted(word: str) -> str:
    """For a shell; a branch's name has single quotes."""
    return shlex.quote(word) if set(word) & set('"$`\\!') else f'"{word}"'


def maintenance(view: PipelineView) -> str:
    """The last run of maintain, and what the next one has to do."""
    last, schedule = view.maintained, view.pipeline.maintain.schedule
    dag = f"<code>{escape(view.pipeline.pipeline)}__maintain</code>"
    when = f"By the schedule {dag} runs <code>{escape(schedule)}</code>." if schedule else f"{dag} runs by hand alone."
    if last is None:
        said = f"<p>No run has done anything yet. {when} A paused DAG doesn't run.</p>"
        return f"<section aria-labelledby='upkeep'><h3 id='upkeep'>Maintenance</h3>{said}</section>"
    ago = max(0.0, view.at - last.ended_at)
    late = ago > 2 * _EVERY_SECONDS.get(schedule, float("inf"))
    asks = f" <span class='bad'>It is late: is {dag} paused?</span>" * late
    return (
        "<section aria-labelledby='upkeep'><h3 id='upkeep'>Maintenance</h3>"
        f"<p>The last run ended {escape(age_text(ago))} ago. {when}{asks}</p>{_done(last)}{_left(last)}</section>"
    )


def _done(last: LastMaintain) -> str:
    rows = (tuple(map(escape, _step(each))) for each in last.steps)
    heads = ("Step", "Done for", "Files", "Bytes", "Took")
    return wide_table("What the last run did", heads, rows) if last.steps else "<p>There was nothing to do.</p>"


def _step(each: MaintainStep) -> tuple[str, ...]:
    unit = " rows" if each.step == "forget" else ""
    files = f"{each.files_before:,} to {each.files_after:,}{unit}" if each.files_before or each.files_after else "-"
    size = f"{size_text(each.bytes_before)} to {size_text(each.bytes_after)}" if each.bytes_before else "-"
    return each.step, counted(each.tables, "table", "tables"), files, size, age_text(each.seconds)


def _left(last: LastMaintain) -> str:
    if not last.left:
        return ""
    rows = (tuple(map(escape, (each.table, each.step, each.outcome, each.detail))) for each in last.left)
    count = counted(last.left_count, "step is", "steps are")
    more = f"<p>and {last.left_count - len(last.left):,} more</p>" if last.left_count > len(last.left) else ""
    return (
        f"<p class='bad'>{count} left for the next run.</p>"
        f"{wide_table('What is left for the next run', ('Table', 'Step', 'Outcome', 'Why'), rows)}{more}"
    )
