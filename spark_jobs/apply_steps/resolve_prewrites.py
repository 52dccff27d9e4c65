"""Prewrites with an answer in this window: rows that were logged before their transaction was committed.

In:  the window's segments; control/prewrites; the window's pairs of TiDB's prewrites and commits;
     schema_history with this window's DDL.
Out: Committed: the segments of these rows with the commit_ts of each answer. Their tables take part
     in the window. Tables are held where an answer's rows aren't known.

A prewrite's rows count only in the window of its answer, however far back they lie. Decoding skips
them at their own place; this step reads them by pointer. A prewrite that is rolled back, or never
answered, is never read. A server's XA branches have their prewrites in control/prewrites until they
are answered (window/pairing/committed_branches.py); TiDB's are paired from bronze alone, in each
window (window/pairing/pairs.py, committed_rows.py).

It comes after the waves of snapshots, as they may let a table begin below the window: commits in
between are taken again. Shards left out of the window then stay so: the rows come with their
snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.window.application import Application
from spark_jobs.window.made import Committed
from spark_jobs.window.pairing.committed_branches import committed_branches
from spark_jobs.window.pairing.committed_rows import committed_rows
from spark_jobs.window.pairing.pairs import Pairs
from spark_jobs.window.window import Window


def resolve_prewrites(app: Application, window: Window, paired: Iterable[Pairs]) -> Committed:
    """The segments of each kind are in order of (source, seq). Raises StreamCorrupt, UnknownEvent."""
    branches = committed_branches(app, window)
    rows = committed_rows(app, window, paired)
    return Committed([*branches, *rows.segments], rows.ledger)
