"""Persons' answers about places in a source's log that couldn't be followed (`tidegate schema
judge`).

In:  a lake.
Out: per source and place, the tables changed there; a new row of control/judgements.
"""

from __future__ import annotations

import getpass
from collections.abc import Collection, Mapping

import pyarrow.compute as pc

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import behind
from tidegate.segments.result import EventPlace
from tidegate.standing.standing import Place
from tidegate.table_names import splits

Judged = dict[EventPlace, tuple[tuple[str, str], ...]]


def read(lake: LakeFiles) -> dict[str, Judged]:
    """Source -> place -> the physical tables changed there, () for none. The last row counts."""
    judged: dict[str, Judged] = {}
    for row in control.read(lake, tables.JUDGEMENTS).sort_by("judged_at").to_pylist():
        names = tuple(pair for text in row["tables"] for pair in splits(text))
        judged.setdefault(row["source"], {})[(row["file"], row["pos"], row["commit_ts"])] = names
    return judged


def record(lake: LakeFiles, places: Mapping[Place, str], names: Collection[str], judged_by: str = "") -> str:
    """Record a person's answer: at these places (place -> the reason of its hold) these physical
    tables are changed. It comes after all earlier answers, by any clock.
    """
    who = judged_by or getpass.getuser()
    now = behind(pc.max(control.read(lake, tables.JUDGEMENTS, columns=["judged_at"])["judged_at"]).as_py())
    reasons = {(at.source, at.file, at.pos, at.at_ts): reason for at, reason in places.items()}
    rows = [
        dict(zip(("source", "file", "pos", "commit_ts"), place, strict=True))
        | {"tables": sorted(names), "reason": reason, "judged_by": who, "judged_at": now}
        for place, reason in sorted(reasons.items())
    ]
    control.append(lake, tables.JUDGEMENTS, rows)
    return who
