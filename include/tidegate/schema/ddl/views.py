"""Statements that make and drop views.

In:  a cursor after VIEW or VIEWS.
Out: a CreateView or DropViews; None if a name can't be read. A view has no rows, so nothing waits
     for it. A RENAME of a view that isn't known is in doubt, and says so.
"""

from __future__ import annotations

from tidegate.errors import DDLError
from tidegate.schema.ddl.tokens import Cursor
from tidegate.schema.ddl.tree import CreateView, DropViews


def read_create_view(cursor: Cursor, database: str) -> CreateView | None:
    """Read the name in `CREATE ... VIEW [IF NOT EXISTS] name`, but neither the query nor its
    columns.
    """
    cursor.take("IF", "NOT", "EXISTS")
    try:
        return CreateView(cursor.table(database))
    except DDLError:
        return None


def read_drop_views(cursor: Cursor, database: str) -> DropViews | None:
    """Read the names of `DROP VIEW [IF EXISTS] name, ...`."""
    cursor.take("IF", "EXISTS")
    try:
        views = [cursor.table(database)]
        while cursor.take_mark(","):
            views.append(cursor.table(database))
    except DDLError:
        return None
    return DropViews(tuple(views))
