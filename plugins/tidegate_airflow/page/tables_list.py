"""The tables of a pipeline: filtered, sorted and paged by the server, so that 10,000 of them are one short page.

In:  a PipelineView, what was asked for (TablesAsked).
Out: HTML: a form without a script, a table, links to the pages beside.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from tidegate.commit_ts import time_text
from tidegate.tables import State
from tidegate.text_layout import age_text, size_text
from tidegate.verify.report import Outcome
from tidegate_airflow.page.layout import wide_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.capture.standing import CaptureStanding
    from tidegate.lake.figures.status import TableStatus
    from tidegate.lake.figures.verified import Verified
    from tidegate.pipelines import PipelineView

PAGE_ROWS: Final = 100
_HEAD_CHARS: Final = 140  # of a reason in the list: its beginning names the trouble, its end the rule
_TAIL_CHARS: Final = 80
_HEADS: Final = (
    *("Table", "State", "Complete through", "Behind", "Rows", "Files", "Size"),
    *("Verified", "Why, and what ends it"),
)
SORTS: Final = {
    "trouble": "trouble first",
    "name": "name",
    "lag": "furthest behind",
    "verified": "verified longest ago",
    "rows": "most rows",
    "files": "most files",
    "bytes": "largest",
}
_ORDER: Final = (State.HELD, State.RELEASED, State.SNAPSHOT, State.ACTIVE, State.LEFT, State.DROPPED)
WORDS: Final = {
    State.ACTIVE: "active",
    State.HELD: "held",
    State.RELEASED: "catching up",
    State.DROPPED: "dropped",
    State.LEFT: "left out",
    State.SNAPSHOT: "being filled",
}


@dataclass(frozen=True, slots=True)
class TablesAsked:
    """words: parts of the name. state: "" for all. sort: a key of SORTS. page: from 1. span: a key
    of reading.RANGES.
    """

    words: str = ""
    state: str = ""
    sort: str = "trouble"
    page: int = 1
    span: str = "hour"

    def link(self, **other: object) -> str:
        """The query of a link with the same settings, except for these."""
        asked = replace(self, **other)  # type: ignore[arg-type]
        pairs = {"q": asked.words, "state": asked.state, "sort": asked.sort, "page": asked.page, "span": asked.span}
        return "?" + urlencode({name: value for name, value in pairs.items() if value})


def tables_list(view: PipelineView, asked: TablesAsked, *, can_act: bool = False) -> str:
    """The list; "" for a pipeline without tables. can_act: a held table gets a link to its buttons."""
    stands = view.standing
    if stands is None or not stands.tables:
        return ""
    chosen = [table for table in stands.tables if _is_asked(table, asked)]
    chosen.sort(key=lambda table: _key(table, stands, view, asked))
    pages = max(1, -(-len(chosen) // PAGE_ROWS))
    page = min(asked.page, pages)
    shown = chosen[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    rows = [_cells(table, view, stands, can_act=can_act) for table in shown]
    return (
        f"<section aria-labelledby='tables'><h3 id='tables'>Tables</h3>{_form(stands.tables, asked)}"
        f"<p role='status'>{len(chosen):,} of {len(stands.tables):,} tables"
        f"{f', page {page} of {pages}' if pages > 1 else ''}</p>"
        f"{wide_table('List of tables', _HEADS, rows)}{_pages(asked, page, pages)}</section>"
    )


def _is_asked(table: TableStatus, asked: TablesAsked) -> bool:
    return asked.words.lower() in table.table.lower() and asked.state in ("", table.state.value)


def _key(table: TableStatus, stands: CaptureStanding, view: PipelineView, asked: TablesAsked) -> tuple[float, str]:
    match asked.sort:
        case "rows" | "files" | "bytes":
            size = getattr(table.size, asked.sort, None)
            return 1.0 if size is None else -float(size), table.table
        case "lag":
            return -(stands.seconds_behind(table) or 0.0), table.table
        case "verified":
            return float(known.through_ts if (known := view.verified.get(table.table)) else 0), table.table
        case "name":
            return 0.0, table.table
        case _:
            return float(_ORDER.index(table.state)), table.table


def _form(tables: Sequence[TableStatus], asked: TablesAsked) -> str:
    counts = Counter(table.state for table in tables)
    states = [("", "all"), *((state.value, f"{WORDS[state]} ({counts[state]:,})") for state in _ORDER if counts[state])]
    return (
        "<form method='get' role='search'>"
        f"<label>Name <input type='search' name='q' value='{escape(asked.words, quote=True)}'></label>"
        f"<label>State {_select('state', states, asked.state)}</label>"
        f"<label>Sort by {_select('sort', list(SORTS.items()), asked.sort)}</label>"
        f"<input type='hidden' name='span' value='{escape(asked.span, quote=True)}'><button>Show</button></form>"
    )


def _select(name: str, choices: Sequence[tuple[str, str]], chosen: str) -> str:
    options = "".join(
        f"<option value='{escape(value, quote=True)}'{' selected' if value == chosen else ''}>{escape(text)}</option>"
        for value, text in choices
    )
    return f"<select name='{name}'>{options}</select>"


def _cells(table: TableStatus, view: PipelineView, stands: CaptureStanding, *, can_act: bool) -> tuple[str, ...]:
    known = view.verified.get(table.table)
    buttons = f"<br>{buttons_link(view, table)}" * (can_act and table.state is State.HELD)
    return (
        f"<a href='{escape(table_page(view, table.table))}'>{escape(table.table)}</a>",
        f"<span class='state {table.state.value}'>{WORDS[table.state]}</span>",
        escape(time_text(table.applied_ts)) if table.applied_ts else "-",
        "-" if table.has_ended else escape(age_text(stands.seconds_behind(table))),
        *size_texts(table),
        verified_text(known),
        f"{why_text(table, short=True)}{buttons}",
    )


def buttons_link(view: PipelineView, table: TableStatus) -> str:
    """The way to the buttons of a held table; "" for another one."""
    page = f"{escape(table_page(view, table.table))}#acts"
    return f" <a href='{page}'>What you can do</a>" if table.state is State.HELD else ""


def table_page(view: PipelineView, name: str) -> str:
    """The way from the pipeline's page to a table's."""
    return f"{view.pipeline.pipeline}__apply/table?" + urlencode({"name": name})


def verified_text(known: Verified | None) -> str:
    if known is None:
        return "never"
    through = f", through {escape(time_text(known.through_ts))}" if known.through_ts else ""
    # The verification has its own word for the table's state at that time.
    outcome = Outcome(known.outcome)
    said = outcome if outcome.is_verdict else f"not compared ({outcome})"
    look = {Outcome.EQUAL: "good", Outcome.DROPPED: "soft"}.get(outcome, "bad")
    return f"<span class='{look}'>{escape(said)}</span>{through}"


def rows_text(known: Verified | None) -> str:
    """The rows of silver at its verification."""
    return f"{known.rows:,}" if known is not None and known.rows is not None else "-"


def size_texts(table: TableStatus) -> tuple[str, str, str]:
    """Rows, files and bytes of its published silver; "-" where they aren't known."""
    if (size := table.size) is None:
        return "-", "-", "-"
    return (
        "-" if size.rows is None else f"{size.rows:,}",
        f"{size.files:,}",
        size_text(size.bytes).replace(" ", "&nbsp;"),
    )


def why_text(table: TableStatus, *, short: bool = False) -> str:
    """Why the table waits, since when, and the way out. short: a long reason loses its middle, which is usually a
    statement.
    """
    if not table.reason and not table.way_out:
        return ""
    begun = table.since.replace("T", " ").replace("+00:00", " UTC")  # as all other times of the page
    since = f"<br><b>Since</b> {escape(begun)}" if begun else ""
    ends = f"<br><b>What ends it:</b> {escape(table.way_out)}" if table.way_out else ""
    reason = table.reason
    if short and len(reason) > _HEAD_CHARS + _TAIL_CHARS:
        tail = reason[-_TAIL_CHARS:]
        reason = f"{reason[:_HEAD_CHARS].rstrip()} ... {tail.partition(' ')[2] or tail}"  # no half word
    return f"{escape(reason)}{since}{ends}"


def _pages(asked: TablesAsked, page: int, pages: int) -> str:
    if pages == 1:
        return ""
    before = f"<a href='{escape(asked.link(page=page - 1))}' rel='prev'>Previous page</a>" if page > 1 else ""
    after = f"<a href='{escape(asked.link(page=page + 1))}' rel='next'>Next page</a>" if page < pages else ""
    return f"<nav aria-label='Pages of tables'>{before} {after}</nav>"
