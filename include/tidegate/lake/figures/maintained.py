"""The last run of maintain, for a person's eyes.

In:  a lake: the newest file of control/maintenance.
Out: a LastMaintain: what was done, and what the next run must do; nothing is written.

A run appends its rows at its end, after it packed this table, so the newest file has its rows. If a
run was killed before that, a file has rows of several runs: a table and step that comes twice
begins an older run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.tables import MAINTENANCE

_COLUMNS: Final = [field.name for field in MAINTENANCE.schema]
_DONE: Final = "done"
_LEFT_SHOWN: Final = 20
_SUMMED: Final = ("files_before", "files_after", "bytes_before", "bytes_after", "seconds")


@dataclass(frozen=True, slots=True)
class MaintainStep:
    """A step of a run. tables: those with something done. The other fields are sums; for `forget`,
    files are rows.
    """

    step: str
    tables: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class LeftStep:
    """A step left for the next run: it failed, gave way to another writer, or was put off. detail
    says why.
    """

    table: str
    step: str
    outcome: str
    detail: str


@dataclass(frozen=True, slots=True)
class LastMaintain:
    """ended_at: when its last step ended, Unix seconds. left: the first left steps, of left_count."""

    ended_at: float
    steps: tuple[MaintainStep, ...]
    left: tuple[LeftStep, ...]
    left_count: int


def last_maintain(lake: LakeFiles) -> LastMaintain | None:
    """None before the first run. Raises LakeUnavailable, LakeRefused."""
    state = control.load(lake, MAINTENANCE)
    if state is None or not state.files:
        return None
    newest = max(state.files, key=lambda file: (file.action["modificationTime"], file.path))
    schema = pa.schema([field.with_nullable(True) for field in MAINTENANCE.schema])
    rows = control.rows_of(lake, MAINTENANCE, state, schema, files=[newest]).sort_by([("at", "descending")])
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows.to_pylist():
        if (row["table"], row["step"]) in last:
            break
        last[row["table"], row["step"]] = row
    steps: dict[str, MaintainStep] = {}
    left: list[LeftStep] = []
    for row in reversed(last.values()):
        if row["outcome"] == _DONE:
            known = steps.get(row["step"], MaintainStep(row["step"]))
            steps[row["step"]] = replace(known, tables=known.tables + 1, **_sums(known, row))
        else:
            left.append(LeftStep(row["table"], row["step"], row["outcome"], row["detail"]))
    ended_at = rows["at"][0].as_py().timestamp() if rows.num_rows else 0.0
    return LastMaintain(ended_at, tuple(steps.values()), tuple(left[:_LEFT_SHOWN]), len(left))


def _sums(known: MaintainStep, row: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(known, name) + row[name] for name in _SUMMED}
