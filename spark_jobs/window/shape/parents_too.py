"""Add the segments of parents that a window below the cut finds in its own DDL.

In:  a window planned for released tables, its schema histories after replay.
Out: the window with the segments of those parents as well, and the gaps among them after its own.

The segments of such a window are asked for by names, before its statements are replayed: an added
foreign key, or a parent's new name, calls for more.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from spark_jobs.window.application import Application
from spark_jobs.window.shape.cascading import ancestors
from spark_jobs.window.window import Window
from tidegate.errors import LakeUnavailable
from tidegate.lake.bronze.backlog import WantedSegments, backlog
from tidegate.table_names import Physical


def bring_parents(app: Application, window: Window) -> Window:
    """Without these segments the parents' rows would be skipped unnoticed."""
    names: dict[str, set[str]] = {}
    for owner, database, table in {physical for of in (window.catches_up or {}).values() for physical in of}:
        above = {parent.shown for parent in ancestors(app, Physical(owner, database, table))}
        for source in app.pipeline.pumps(owner) if above else ():
            names.setdefault(source, set()).update(above.difference(window.asked.get(source, ())))
    missing = {source: of for source, of in names.items() if of}
    if not missing:
        return window
    wanted = {source: WantedSegments(window.low_ts, of) for source, of in missing.items()}
    upto_ts, refs = backlog(app.lake, wanted, window.cut_ts, sys.maxsize, app.index.below)
    if upto_ts < window.cut_ts:
        raise LakeUnavailable(
            f"bronze is resolved up to {upto_ts} only, below the cut", where=app.lake.root, remedy="it is tried again"
        )
    known = {(ref.source, ref.seq) for ref in (*window.refs, *window.gaps)}
    more = [ref for ref in refs if (ref.source, ref.seq) not in known]
    asked = {source: {*window.asked.get(source, ()), *of} for source, of in missing.items()}
    every = sorted([*window.refs, *more], key=lambda ref: (ref.source, ref.seq))
    return replace(window, refs=every, asked={**window.asked, **asked})
