"""Tables of one name that several sources bring, and that no route brings together.

In:  what the sources' histories know, the tables of a window.
Out: why a table is none of them; such tables are held.

Silver would have the rows of all of them under one key, and a snapshot of the one would take the others' for its own.
"""

from __future__ import annotations

from spark_jobs.window.application import Application
from spark_jobs.window.standing.standings import hold
from spark_jobs.window.window import Window
from tidegate.schema.model.columns import VersionStatus
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused
from tidegate.table_names import Physical


def several_sources(app: Application, name: str) -> str:
    """What is wrong with a logical table that more than one source has and no route names; "" when nothing is."""
    there = sorted(one for one in app.names.flows().get(name, ()) if _is_there(app, one))
    if len({source for source, *_ in there}) < 2 or app.names.logical(*there[0].pair).routed:
        return ""
    sources = " and ".join(dict.fromkeys(source for source, *_ in there))
    way = "bring them together with tables.routes, or drop it at all but one; or use a pipeline for each source"
    return f"{name}: {sources} have a table of this name each, and silver has one for them; {way}"


def hold_same_names(app: Application, window: Window) -> None:
    """It comes behind the replay of DDL, and before anything of the window is decoded."""
    for name in list(window.tables):
        if name in window.tables and (what := several_sources(app, name)):
            hold(app, window, name, Refused(Cause.NEEDS_ROWS, what))


def _is_there(app: Application, physical: Physical) -> bool:
    last = app.histories[physical.source].last(physical.pair)
    return last is not None and last.status is not VersionStatus.DROPPED
