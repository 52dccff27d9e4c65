"""A verification's results as rows of control/verification.

In:  a Report.
Out: per compared table a row for each range of its key, and one for the table.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.tables.snapshot_tables import VERIFICATION
from tidegate.verify.report import Report, TableResult


def record(lake: LakeFiles, report: Report) -> None:
    """Raises LakeUnavailable, LakeRefused."""
    shared = {
        "verification": uuid.uuid4().hex,
        "pipeline": report.pipeline,
        "cut_ts": report.cut_ts,
        "recorded_at": datetime.now(UTC),
    }
    control.append(lake, VERIFICATION, [shared | row for result in report.tables for row in _rows(result)])


def _rows(result: TableResult) -> Iterator[dict[str, Any]]:
    database, table = result.pair
    names = {"source": result.source, "database": database, "table": table, "silver": result.silver}
    counts = {"seemed": 0, "different": 0, "unsettled": 0, "verified_through": result.verified_through}
    for number, compared in enumerate(result.ranges, 1):
        yield (
            names
            | counts
            | {
                "chunk": number,
                "key_after": _key(compared.after),
                "key_upto": _key(compared.upto),
                "source_rows": compared.source_rows,
                "silver_rows": compared.silver_rows,
                "source_hash": compared.source_hash,
                "silver_hash": compared.silver_hash,
                "outcome": "",
                "reason": "",
            }
        )
    yield (
        names
        | counts
        | {
            "chunk": 0,
            "key_after": None,
            "key_upto": None,
            "source_rows": result.source_rows,
            "silver_rows": result.silver_rows,
            "source_hash": result.source_hash,
            "silver_hash": result.silver_hash,
            "outcome": str(result.outcome),
            "seemed": result.seemed,
            "different": result.different,
            "unsettled": result.unsettled,
            "reason": result.reason,
        }
    )


def _key(literals: tuple[str, ...] | None) -> str | None:
    return None if literals is None else json.dumps(list(literals), ensure_ascii=False)
