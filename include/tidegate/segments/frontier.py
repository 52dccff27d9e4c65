"""How far a cut may go.

In:  how far each source is resolved.
Out: the largest commit_ts up to which no source lacks a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def cut_frontier(resolved: Mapping[str, int], sources: Collection[str]) -> int:
    """The smallest resolved_ts of the sources; 0 if one has sent nothing, or if there is none."""
    return min((resolved.get(source, 0) for source in sources), default=0)
