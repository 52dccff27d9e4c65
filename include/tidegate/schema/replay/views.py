"""Effects of a statement on the names of views.

In:  the tables of one statement (Work).
Out: in the Work, versions of names without a table: dropped as tables, with the engine `view` while
     a view has the name. RENAME TABLE takes tables and views alike, and only such a version
     distinguishes them.

A name is a view's only if CREATE VIEW, or the baseline, said so. An unknown name may be a table
made without a log (sql_log_bin = 0), so its rename isn't ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tidegate.schema.ddl.tree import CreateView, DropViews, Statement, TableName
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.model.unlogged import NO_VIEW, VIEW
from tidegate.schema.replay.shape import Shape
from tidegate.schema.replay.work import Work

RENAMED: Final = "rename"


def views_of(statement: Statement) -> tuple[TableName, ...]:
    """The names that a statement makes known as no table's."""
    match statement:
        case CreateView(view):
            return (view,)
        case DropViews(views):
            return views
        case _:
            return ()


def is_view(work: Work, name: TableName) -> bool:
    """Whether a view is known to have the name."""
    return not work.lives(name) and work.knows(name) and work.shape(name).engine == VIEW


def make_view(work: Work, name: TableName) -> None:
    """A known table of that name stays: the server would have refused, so the table went where no log tells."""
    if not work.lives(name):
        _put(work, name, VIEW)


def drop_view(work: Work, name: TableName) -> None:
    """Nothing to do for a name that isn't a known view's."""
    if is_view(work, name):
        _put(work, name, NO_VIEW)


def rename_view(work: Work, old: TableName, new: TableName) -> None:
    """The kind stays that of a rename: by the same statement a table may have left the name that the view takes."""
    _put(work, old, NO_VIEW, RENAMED)
    _put(work, new, VIEW, RENAMED)


def _put(work: Work, name: TableName, engine: str, kind: str = VIEW) -> None:
    shape = work.shape(name) if work.knows(name) else Shape((), (), "", "")
    work.put(name, replace(shape, engine=engine, foreign_keys=()), kind, VersionStatus.DROPPED)
