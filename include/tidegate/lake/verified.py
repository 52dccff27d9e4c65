"""What the last verification said of each table of silver.

In:  a lake: control/verification.
Out: by logical name a Verified; nothing is written.
"""

from __future__ import annotations

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
