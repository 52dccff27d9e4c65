"""What the last verification said of each table of silver.

In:  a lake: control/verification.
Out: by logical name a Verified, and what they say together; nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.tables_snapshot import VERIFICATION


@dataclass(frozen=True, slots=True)
class Verified:
    """outcome: the last run's word. through_ts: no fault from at or below it is left. at: ISO, UTC."""

    outcome: str
    through_ts: int
    at: str


@dataclass(frozen=True, slots=True)
class VerifiedTogether:
    """outcomes: how many tables have each. through_ts: no table that was ever verified has a fault from at or below it;
    0 when none is known. never: tables that never were.
    """

    outcomes: Mapping[str, int]
    through_ts: int
    never: int

    @classmethod
    def of(cls, names: Collection[str], by_name: Mapping[str, Verified]) -> VerifiedTogether:
        """The sum over some tables."""
        known = [by_name[name] for name in names if name in by_name]
        through_ts = min((each.through_ts for each in known if each.through_ts), default=0)
        return cls(Counter(each.outcome for each in known), through_ts, len(names) - len(known))


def verified(lake: LakeFiles) -> dict[str, Verified]:
    """Of a table with several shards the weakest: the smallest through_ts, and an outcome that isn't `equal` if any."""
    by = ["source", "database", "table", "silver"]
    columns = [*by, "outcome", "verified_through", "recorded_at"]
    rows = control.newest(
        lake, VERIFICATION, by=by, order=["recorded_at"], columns=columns, filters=[("chunk", "=", 0)]
    )
    weakest: dict[str, Verified] = {}
    for row in rows.to_pylist():
        at = row["recorded_at"].isoformat(timespec="seconds")
        this = Verified(row["outcome"], row["verified_through"], at)
        before = weakest.get(row["silver"])
        weakest[row["silver"]] = this if before is None else _weaker(before, this)
    return weakest


def _weaker(a: Verified, b: Verified) -> Verified:
    outcome = b.outcome if a.outcome == "equal" else a.outcome
    return Verified(outcome, min(a.through_ts, b.through_ts), min(a.at, b.at))
