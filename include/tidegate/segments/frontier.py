"""How far a cut may go.

In:  how far each source is resolved.
Out: the largest commit_ts at which nothing is missing of any source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def cut_frontier(resolved: Mapping[str, int], sources: Collection[str]) -> int:
    """The smallest resolved_ts of the sources; 0 while one of them has sent nothing, or when there is none."""
    return min((resolved.get(source, 0) for source in sources), default=0)
