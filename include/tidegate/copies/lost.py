"""Published silver tables whose log is gone from the lake: a backup can't have them.

In:  a lake, the paths that a backup has or names.
Out: the other paths. A table that came since the backup has a log, and isn't among them.
"""

from __future__ import annotations

from collections.abc import Collection

from tidegate.delta.object_names import LOG
from tidegate.errors import Terminal
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import said_of_all
from tidegate.lake.standing.held import last_states
from tidegate.standing.silver import NO_SILVER
from tidegate.table_names import splits
from tidegate.tables import State, silver_path


def lost_tables(lake: LakeFiles, known: Collection[str]) -> list[str]:
    """Raises LakeUnavailable, LakeRefused."""
    states = last_states(lake)
    lost = []
    for name, said in sorted(said_of_all(lake).items()):
        standing = states.get(name)
        if said.version == NO_SILVER or (standing is not None and standing.state in (State.DROPPED, State.LEFT)):
            continue
        paths = [silver_path(*pair) for pair in splits(name)]
        if {*known}.isdisjoint(paths) and not any(_has_log(lake, path) for path in paths):
            lost.append(paths[0])
    return lost


def _has_log(lake: LakeFiles, path: str) -> bool:
    try:
        return bool(lake.store(f"{path}/{LOG}").names())
    except Terminal:  # something else lies in its place
        return False
