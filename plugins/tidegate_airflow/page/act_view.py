"""Actions of people on the page of a table: the buttons, the question before each, and what was done.

In:  Offers, a Standing, SchemaChanges, Recorded actions.
Out: HTML. A button leads to a page that says what it will do; only the form there changes anything.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from tidegate.commit_ts import time_text
from tidegate.tables.actions_table import Act, ActionOutcome
from tidegate_airflow.page.layout import wide_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.actions.offers import Offer
    from tidegate.lake.people.audit import Recorded
    from tidegate.lake.schema_history.schema_changes import SchemaChange
    from tidegate.pipelines import PipelineView
    from tidegate.standing.standing import Standing

_SHOWN: Final = 20
_HEADS: Final = ("When", "Who", "Action", "Outcome", "Result")


@dataclass(frozen=True, slots=True)
class TableActions:
    """offered: () if the user may not edit the DAG. past: earlier actions on the table, the newest first. done: id of
    the action that the user comes from.
    """

    offered: Sequence[Offer] = ()
    past: Sequence[Recorded] = ()
    done: str = ""


NO_ACTIONS: Final = TableActions()


def banner(actions: TableActions, *, is_late: bool = False) -> str:
    """The outcome of the action that the user comes from. is_late: the lake hasn't said yet what was done."""
    known = next((each for each in actions.past if actions.done and each.action.id == actions.done), None)
    if known is None and actions.done and is_late:
        return "<p class='said' role='status'><b>Sent.</b> The outcome comes here once the lake answers.</p>"
    if known is None:
        return ""
    good = "good" if known.outcome is ActionOutcome.DONE else "bad"
    return f"<p class='said {good}' role='status'><b>{_words(known)}</b> {escape(known.detail)}</p>"


def before_act(view: PipelineView) -> str:
    """A line on a look from before an action: without it the action seems to have done nothing. "" on a newer one."""
    if not view.is_before_act:
        return ""
    return (
        f"<p class='said' role='status'>This is of {view.clock}, from before the last action: the lake is being read"
        " again, and then this page shows the new state.</p>"
    )


def _words(known: Recorded) -> str:
    if known.outcome is ActionOutcome.BEGUN:
        return "Begun. If it stays so, it was killed, and may have been done: look at the table's state, and act again."
    return f"{str(known.outcome).capitalize()}."


def act_buttons(name: str, dag_id: str, actions: TableActions) -> str:
    """A link for each offer, which looks like a button; "" without any."""
    if not actions.offered:
        return ""
    links = []
    for offer in actions.offered:
        where = escape(f"../{dag_id}/act?" + urlencode({"name": name, "action": offer.act}))
        links.append(f"<li><a class='button' href='{where}'>{escape(offer.label)} ...</a></li>")
    return (
        "<section aria-labelledby='acts'><h3 id='acts'>What you can do</h3>"
        f"<ul class='acts'>{''.join(links)}</ul></section>"
    )


def act_history(actions: TableActions) -> str:
    """A table of past actions: who, when, what; "" without any."""
    if not actions.past:
        return ""
    shown = wide_table("Actions of people", _HEADS, map(_cells, actions.past[:_SHOWN]))
    return f"<section aria-labelledby='done'><h3 id='done'>Who did what</h3>{shown}</section>"


def _cells(known: Recorded) -> tuple[str, ...]:
    action = known.action
    who = f"{action.author.user} ({action.author.place})"
    cells = (who, str(action.act), str(known.outcome), known.detail or action.subject)
    when = f"{known.at:%Y-%m-%d %H:%M:%S} UTC"
    return (when, *map(escape, cells))


def question(
    name: str,
    offer: Offer,
    standing: Standing | None,
    changes: Sequence[SchemaChange],
    judged: Sequence[str] = (),
    shown: str = "",
) -> str:
    """The page that asks first. changes: versions of the table. judged: tables at the source held at the same place.
    shown: the digest that the form sends back.
    """
    seen = standing.since.isoformat() if standing is not None and standing.since is not None else ""
    hidden = {"name": name, "action": str(offer.act), "id": uuid.uuid4().hex, "seen": seen, "shown": shown}
    fields = "".join(f"<input type='hidden' name='{key}' value='{escape(value)}'>" for key, value in hidden.items())
    facts = _facts(standing, changes) if standing is not None else ""
    back = escape("table?" + urlencode({"name": name}))
    return (
        f"<h2>{escape(offer.label)}: {escape(name)}</h2>{facts}<p>{escape(offer.effect)}</p>"
        f"<form method='post' action='act' class='ask'>{fields}{_answers(offer.act, judged)}"
        f"<p><button class='button'>{escape(offer.label)}</button> <a href='{back}'>Do nothing</a></p></form>"
    )


def _facts(standing: Standing, changes: Sequence[SchemaChange]) -> str:
    facts = [("Why it waits", escape(standing.reason))] if standing.reason else []
    if (at := standing.place) is not None and at.ddl:
        facts.append(("Statement", f"<code>{escape(at.ddl)}</code>"))
        same = [each for each in changes if (each.version.file, each.version.pos) == (at.file, at.pos)]
        effect = "<br>".join(escape(line) for change in same[:1] for line in change.effect)
        facts.append(("What it changes", effect or "not known from the versions of the table"))
    if (event := standing.event) is not None:
        where = f"<code>{escape(f'{event.file}:{event.pos}')}</code> of {escape(event.source)}"
        facts.append(("Place", f"{where}, {escape(time_text(event.at_ts))}"))
    return f"<dl>{''.join(f'<dt>{term}</dt><dd>{text}</dd>' for term, text in facts)}</dl>" if facts else ""


def _answers(act: Act, judged: Sequence[str]) -> str:
    """The fields of an action that needs more than a confirmation."""
    if act is Act.REFRESH:
        return (
            "<p><label>Columns that were renamed, a line OLD=NEW each<br><textarea name='renamed' rows='2'></textarea>"
            "</label></p><p><label>Columns that were dropped, a line each<br><textarea name='dropped' rows='2'>"
            "</textarea></label></p>"
        )
    if act is not Act.JUDGE:
        return ""
    boxes = "".join(
        f"<br><label><input type='checkbox' name='changes' value='{name}'> {name}</label>"
        for name in map(escape, judged)
    )
    return (
        "<fieldset><legend>What does it change?</legend>"
        "<label><input type='radio' name='word' value='nothing' required>"
        " No table's rows or columns</label><br>"
        "<label><input type='radio' name='word' value='tables'> These tables:</label>"
        "<div class='under' role='group' aria-label='The tables that it changes'>"
        f"{boxes.removeprefix('<br>')}</div>"
        "</fieldset>"
    )


def not_known(name: str) -> str:
    """The page for an action that goes on: the lake hasn't answered in time."""
    back = escape("table?" + urlencode({"name": name}))
    return (
        f"<h2>{escape(name)}</h2><p class='said bad' role='alert'><b>Not known.</b> The lake hasn't answered in time."
        " It may still be done: the table's page says so once the lake answers.</p>"
        f"<p><a href='{back}'>Back to the table</a></p>"
    )


def nothing_done(name: str, why: str) -> str:
    """The page for an action that met an error."""
    back = escape("table?" + urlencode({"name": name}))
    return (
        f"<h2>{escape(name)}</h2><p class='said bad' role='alert'><b>Not done.</b> {escape(why)}</p>"
        f"<p><a href='{back}'>Back to the table</a></p>"
    )
