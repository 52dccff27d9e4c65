"""Golden cases: recorded binlog files and, as text, all that decoding them must give (tests/golden/README.md)."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.kit.decoding import DECODERS, changed_rows
from tests.reference.decode import decode_segment_reference
from tests.support.seeds import share
from tests.unit.binlog.golden import CASES, decoded
from tidegate.binlog.rows.decode import decode_segment
from tidegate.segments.result import DecodedSegment
from tidegate.tables import ORDINAL


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Decimal | dt.date | dt.datetime):
        return str(value)
    return value


def as_text(found: DecodedSegment) -> str:
    placed = []
    for change in found.changes:
        head = {"table": f"{change.database}.{change.table}", "version": change.version}
        placed += [head | {k: plain(v) for k, v in row.items()} for row in change.batch.to_pylist()]
    lines: list[Any] = sorted(placed, key=lambda row: row[ORDINAL])
    lines += [{"problem": problem.error, "message": problem.message.split(";")[0]} for problem in found.problems]
    ledger = found.ledger
    lines.append(
        {"rows": ledger.rows, "null_dates": ledger.null_dates, "ignored": dict(sorted(ledger.ignored.items()))}
    )
    lines[-1] |= {"decoded_bytes": ledger.decoded_bytes, "quarantined_bytes": ledger.quarantined_bytes}
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


@pytest.mark.parametrize("case", share(CASES), ids=lambda case: case.name)
def test_a_recorded_file_decodes_to_what_was_read_and_checked(case: Path) -> None:
    expected = case / "expected.ndjson"
    if os.environ.get("TIDEGATE_WRITE_GOLDEN") and not expected.exists():
        expected.write_text(as_text(decoded(case, decode_segment_reference)))
    for decode in DECODERS:
        assert as_text(decoded(case, decode)).splitlines() == expected.read_text().splitlines()


def test_there_are_golden_cases() -> None:
    assert len(CASES) >= 10
    assert any(changed_rows(decoded(case, decode_segment)) for case in CASES)
