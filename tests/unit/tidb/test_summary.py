"""What a segment says of its transactions is the same by compiled code and payload by payload."""

from __future__ import annotations

import pytest

from tests.kit.tidb.described import summed
from tests.unit.tidb.test_decode import GOLDEN, recorded
from tidegate.tidb.rows.summary import summary_by_payload, summary_of


@pytest.mark.parametrize("case", sorted(path.parent.name for path in GOLDEN.glob("*/binlog.bin")))
def test_recorded_segments_say_the_same_by_both(case: str) -> None:
    one, _, answers = recorded(GOLDEN / case)
    found = summed(summary_of(one))
    assert found == summed(summary_by_payload(one))
    assert set(answers) <= {*found["answered"]} | {*found["started"]} != set()
