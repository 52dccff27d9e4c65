"""How far snapshots are, as a part of the page.

In:  TableProgress of the tables whose snapshot isn't over.
Out: HTML.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from tidegate.text_layout import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.snapshot.progress.events import TableProgress

_SHOWN: Final = 50


def snapshots_list(going: Sequence[TableProgress]) -> str:
    """A row per table, those of which something is read first; "" without any."""
    if not going:
        return ""
    shown = sorted(going, key=lambda table: (not table.waves, table.source, table.name))[:_SHOWN]
    rows = "".join(map(_row, shown))
    more = f"<p>and {len(going) - len(shown):,} more</p>" if len(going) > len(shown) else ""
    heads = "".join(f"<th scope='col'>{name}</th>" for name in ("Snapshot of", "State", "Rows read", "Left"))
    return (
        "<section aria-labelledby='snapshots'><h3 id='snapshots'>Snapshots</h3>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{more}</section>"
    )


def _row(table: TableProgress) -> str:
    left = counted(len(table.left), "key range", "key ranges") if table.left else "all read, being applied"
    if table.left and table.estimate:
        left = f"about {max(1, 100 - 100 * table.rows // table.estimate)} %"
    cells = (f"{'.'.join(table.name)} of {table.source}", str(table.state), f"{table.rows:,}", left)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
