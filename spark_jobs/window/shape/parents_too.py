"""Segments of parents that a window below the cut learns of by its own DDL.

In:  a window that was planned for released tables, its schema histories after replay.
Out: window.refs with the segments that name those parents as well; the gaps among them.

Which segments such a window has is asked for by names, before its statements are replayed: a foreign key that one of
them adds, or a parent's new name, calls for more.
"""

from __future__ import annotations

import sys

from spark_jobs.window.application import Application
from spark_jobs.window.shape.cascading import ancestors
from spark_jobs.window.window import Window
from tidegate.errors import LakeUnavailable
from tidegate.lake.bronze.backlog import Wanted, backlog
from tidegate.segments.window import SegmentRef
from tidegate.table_names import Physical
from tidegate.tables import SegmentFlag


def bring_parents(app: Application, window: Window) -> list[SegmentRef]:
    """Without them their rows would be passed over, and nothing would tell."""
    names: dict[str, set[str]] = {}
    for owner, database, table in {one for of in (window.catches_up or {}).values() for one in of}:
        above = {one.shown for one in ancestors(app, Physical(owner, database, table))}
        for source in app.pipeline.pumps(owner) if above else ():
            names.setdefault(source, set()).update(above - window.asked.get(source, set()))
    missing = {source: of for source, of in names.items() if of}
    if not missing:
        return []
    wanted = {source: Wanted(window.low_ts, of) for source, of in missing.items()}
    upto_ts, refs = backlog(app.lake, wanted, window.cut_ts, sys.maxsize, app.index.below)
    if upto_ts < window.cut_ts:
        raise LakeUnavailable(
            f"bronze is resolved up to {upto_ts} only, below the cut", where=app.lake.root, remedy="it is tried again"
        )
    known = {(ref.source, ref.seq) for ref in (*window.refs, *window.gaps)}
    more = [ref for ref in refs if (ref.source, ref.seq) not in known]
    gaps = [ref for ref in more if ref.flags & SegmentFlag.GAP]
    whole = [ref for ref in more if not ref.flags & SegmentFlag.GAP]
    window.gaps += gaps
    window.refs = sorted([*window.refs, *whole], key=lambda ref: (ref.source, ref.seq))
    for source, of in missing.items():
        window.asked.setdefault(source, set()).update(of)
    return gaps
