"""The last verification's verdict on each table of silver.

In:  a lake: control/verification, and the pipeline's sources (control/followed).
Out: a Verified for each logical name, and all of them together; nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter
from typing import Any, Final

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import followed
from tidegate.tables.snapshot_tables import VERIFICATION

# The last verdict comes last, though a clock was put back: a cut never is. Runs at one cut have their own times.
VERIFIED_ORDER: Final = ("cut_ts", "recorded_at")
_COUNTED: Final = ("equal", "different", "unsettled")


@dataclass(frozen=True, slots=True)
class Verified:
    """outcome: of the last run. through_ts: what was equal has no fault from at or below it; 0:
    nothing was. at: ISO, UTC. rows: of silver, as the run counted them; None if it compared
    nothing.
    """

    outcome: str
    through_ts: int
    at: str
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class VerifiedTogether:
    """outcomes: outcome -> number of tables. through_ts: the smallest of the tables' own; tables
    with 0 don't count. never: number of tables never verified. last_at: of the newest
    verification, ISO, UTC; "" for none.
    """

    outcomes: Mapping[str, int]
    through_ts: int
    never: int
    last_at: str = ""

    @classmethod
    def of(cls, names: Collection[str], by_name: Mapping[str, Verified]) -> VerifiedTogether:
        """The sum over the tables with these names."""
        known = [by_name[name] for name in names if name in by_name]
        through_ts = min((each.through_ts for each in known if each.through_ts), default=0)
        last_at = max((each.at for each in known), default="")
        outcomes = dict(Counter(each.outcome for each in known))  # asdict() of Python 3.11 takes no Counter
        return cls(outcomes, through_ts, len(names) - len(known), last_at)


def verified(lake: LakeFiles) -> dict[str, Verified]:
    """The last verdict per table of silver. A table with several shards gets the weakest: the
    smallest through_ts, and an outcome other than `equal` if one has it.

    A verdict without a source says that no source had the table. It replaces all earlier verdicts,
    until a source has the table again. Verdicts of sources that left the pipeline don't count.
    """
    by = ["source", "database", "table", "silver"]
    columns = [*by, "outcome", "verified_through", *VERIFIED_ORDER, "silver_rows"]
    rows = control.newest(
        lake, VERIFICATION, by=by, order=VERIFIED_ORDER, columns=columns, filters=[("chunk", "=", 0)]
    ).to_pylist()
    selection = followed.load(lake).selection if rows else None
    by_silver: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if selection is None or not row["source"] or row["source"] in selection.sources:
            by_silver.setdefault(row["silver"], []).append(row)
    return {name: reduce(_weaker, map(_verdict, _counting(of))) for name, of in by_silver.items()}


def _counting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The verdicts of one silver table that count today."""
    sourceless = [row for row in rows if not row["source"]]
    if not sourceless:
        return rows
    at = itemgetter(*VERIFIED_ORDER)
    gone = max(sourceless, key=at)
    since = [row for row in rows if row["source"] and at(row) > at(gone)]
    return since or [gone]


def _verdict(row: Mapping[str, Any]) -> Verified:
    rows = row["silver_rows"] if row["outcome"] in _COUNTED else None
    return Verified(row["outcome"], row["verified_through"], row["recorded_at"].isoformat(timespec="seconds"), rows)


def _weaker(a: Verified, b: Verified) -> Verified:
    outcome = b.outcome if a.outcome == "equal" else a.outcome
    rows = None if a.rows is None or b.rows is None else a.rows + b.rows
    return Verified(outcome, min(a.through_ts, b.through_ts), min(a.at, b.at), rows)
