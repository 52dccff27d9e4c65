"""One version of a row per window, by the server's own states alone: which versions there are, and from when to when.

In:  a Past whose every write of a row puts the number of its transaction into the column `w`; its moments; the states
     where parts of the log ended: of windows, and of statements that change the table.
Out: by_window(): (id, w, number of the state where it begins, that of its end or None) of each version.
     in_silver(): the same of silver. parts_at(): the state that a commit_ts is behind.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.kit.road import Road
from tests.support.past import Past
from tests.support.readers import READERS
from tidegate import tables

Version = tuple[int, int, int, int | None]


def by_window(past: Past, name: str, ends: Collection[int]) -> list[Version]:
    """ends: numbers of the states at the ends of parts. The last state ends one, too."""
    states: dict[int, dict[int, int]] = {-1: {}}
    for number, state in enumerate(past.states):
        states[number] = {row["id"]: row["w"] for row in state.get(name, [])}
    made, valid = list[Version](), dict[int, Version]()
    for after, upto in pairwise(sorted({-1, *ends, len(past.states) - 1})):
        changed: dict[int, int] = {}
        for number in range(after + 1, upto + 1):
            now, before = states[number], states[number - 1]
            changed |= {key: number for key in now.keys() | before if now.get(key) != before.get(key)}
        for key, last in changed.items():
            if key in valid:
                made.append((*valid.pop(key)[:3], last))
            if key in states[upto]:
                assert states[upto][key] == last, "every write has its number"
                valid[key] = (key, last, last, None)
    return sorted([*made, *valid.values()], key=str)


def in_silver(
    road: Road, past: Past, moments: Mapping[int, int], name: str, statements: Collection[int] = ()
) -> list[Version]:
    """statements: the states behind DDL, whose own commit_ts no state has."""
    stamps = [moments[number] for number in sorted(moments) if number >= 0]
    rows: list[dict[str, Any]] = READERS["DuckDB"](road.lake.uri(tables.silver_path(past.database, name))).to_pylist()

    def number(stamp: int) -> int:
        at = bisect_left(stamps, stamp)
        assert stamps[at] == stamp or at in statements, stamp
        return at

    made = list[Version]()
    for row in rows:
        end = row[tables.VALID_TO]
        assert row[tables.IS_CURRENT] == (end is None)
        made.append((row["id"], row["w"], number(row[tables.VALID_FROM]), None if end is None else number(end)))
    return sorted(made, key=str)


def parts_at(moments: Mapping[int, int], stamps: Sequence[int]) -> set[int]:
    """The last state at or below each of these commit_ts."""
    known = [moments[number] for number in sorted(moments) if number >= 0]
    return {bisect_right(known, stamp) - 1 for stamp in stamps}
