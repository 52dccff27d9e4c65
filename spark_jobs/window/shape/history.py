"""Tables with their history: the reasons to hold one, by name.

In:  a table's share of a window, its plan.
Out: SchemaMismatch where its versions couldn't be right.
"""

from __future__ import annotations

from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.plan import TablePlan
from spark_jobs.window.window import TableWindow
from tidegate.errors import SchemaMismatch
from tidegate.schema.model.columns import TableVersion

_REMEDY: Final = "leave it out of tables.history"


def check_history(app: Application, entry: TableWindow, plan: TablePlan) -> None:
    """Raise SchemaMismatch for a table whose history isn't kept."""
    if app.pipeline.tables.keeps_deleted(entry.database, entry.table):
        why = "tables.history and tables.soft_delete both keep its deleted rows"
        raise SchemaMismatch(why, where=entry.name, remedy="take it out of one of them")
    if entry.routed:
        why = "the history of a table that routes make of several isn't kept"
        raise SchemaMismatch(why, where=entry.name, remedy=_REMEDY)
    for version in (version for planned in plan.phases for version in planned.versions):
        if why := _unfit(version):
            raise SchemaMismatch(why, where=version.where, remedy=_REMEDY)


def _unfit(version: TableVersion) -> str:
    """Why the versions of its rows can't be told."""
    if not version.key:
        return "the history of a table without a key isn't kept: nothing says which rows are one"
    if any(key.acts_unseen for key in version.foreign_keys):
        return "foreign keys change its rows below the log, and its history would lack these changes"
    return ""
