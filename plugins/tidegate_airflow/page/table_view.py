"""One table: where it stands, what a person may do, its verification, and each DDL with its effect on the columns.

In:  a PipelineView, a table's name, its SchemaChanges, its TableActions.
Out: HTML.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from tidegate.commit_ts import time_text
from tidegate.text_layout import age_text
from tidegate_airflow.page.act_view import NO_ACTIONS, TableActions, act_buttons, act_history, banner, before_act
from tidegate_airflow.page.layout import wide_table
from tidegate_airflow.page.snapshots_list import progress_words
from tidegate_airflow.page.tables_list import WORDS, rows_text, size_texts, verified_text, why_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.lake.figures.status import TableStatus
    from tidegate.lake.schema_history.schema_changes import SchemaChange
    from tidegate.pipelines import PipelineView

_SHOWN: Final = 50
_HEADS: Final = ("When", "What changed", "Statement", "Place")
_DDL_CHARS: Final = 2000


def table_view(
    view: PipelineView,
    name: str,
    changes: Sequence[SchemaChange] | None,
    actions: TableActions = NO_ACTIONS,
    *,
    answer: str = "",
) -> str:
    """The page of one table; a sentence if there is no such table. changes: None if the lake doesn't answer. answer:
    the way to the question about it.
    """
    dag_id = f"{view.pipeline.pipeline}__apply"
    back = f"<p><a href='../{dag_id}'>All tables of {escape(view.pipeline.pipeline)}</a></p>"
    tables = view.standing.tables if view.standing is not None else ()
    status = next((table for table in tables if table.table == name), None)
    if status is None:
        nothing = "Nothing is known of this table."
        return f"{back}<h2>{escape(name)}</h2><p>{escape(view.why if view.standing is None else nothing)}</p>"
    parts = (
        f"<p class='said bad' role='status'>{escape(view.why)}</p>" if view.is_old else "",
        banner(actions, is_late=changes is None),
        before_act(view),
        _facts(view, status),
        f"<p>{answer}</p>" if answer else "",
        act_buttons(name, dag_id, actions),
        act_history(actions),
        _timeline(changes),
    )
    return f"{back}<h2>{escape(name)}</h2>{''.join(parts)}"


def _facts(view: PipelineView, table: TableStatus) -> str:
    assert view.standing is not None, "it has the table"
    known = view.verified.get(table.table)
    facts = [
        ("State", f"<span class='state {table.state.value}'>{WORDS[table.state]}</span>"),
        ("Complete through", escape(time_text(table.applied_ts))),
        ("Behind", "-" if table.has_ended else escape(age_text(view.standing.seconds_behind(table)))),
        *zip(("Rows", "Files", "Size"), size_texts(table), strict=True),
        ("Verified", verified_text(known)),
        ("Rows when verified", rows_text(known)),
    ]
    logical = view.pipeline.tables.logical
    going = [progress for progress in view.snapshots if logical(*progress.name).name == table.table]
    facts += [("Snapshot", escape(progress_words(progress, view.at))) for progress in going]
    if table.reason:
        facts.append(("Why", why_text(table)))
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in facts)}</dl>"


def _timeline(changes: Sequence[SchemaChange] | None) -> str:
    head = "<section aria-labelledby='schema'><h3 id='schema'>Schema</h3>"
    if changes is None:
        return (
            f"{head}<p>The lake hasn't answered yet: its versions, and what you can do, come once it has.</p></section>"
        )
    if not changes:
        return f"{head}<p>No version of its columns is known.</p></section>"
    shown = wide_table("Versions of the table", _HEADS, map(_cells, changes[:_SHOWN]))
    more = f"<p>and {len(changes) - _SHOWN:,} older ones</p>" if len(changes) > _SHOWN else ""
    return f"{head}{shown}{more}</section>"


def _cells(change: SchemaChange) -> tuple[str, ...]:
    version = change.version
    effect, statement = what_changed(change)
    place = escape(f"{version.name} of {version.source}")
    if version.file:  # not of a snapshot's end
        place += f", <code>{escape(f'{version.file}:{version.pos}')}</code>"
    when = escape(time_text(version.commit_ts))
    return (when, effect, statement, place)


def what_changed(change: SchemaChange) -> tuple[str, str]:
    """(the effect of a version, its statement)."""
    version = change.version
    nothing = "its columns stay" if version.columns else "no column, no key"
    nothing = f"its rows go, {nothing}" if version.kind == "truncate" else nothing
    effect = "<br>".join(map(escape, change.effect)) or nothing
    ddl = version.ddl if len(version.ddl) <= _DDL_CHARS else version.ddl[:_DDL_CHARS] + " ..."
    return effect, f"<code>{escape(ddl)}</code>" if ddl else escape(version.kind)
