"""An account that may not look at prepared transactions: that is said where there are some, and else by check alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pymysql
import pytest

from tests.kit.decoding import segment
from tidegate.mysql.capturing.prepared_watch import PreparedWatch
from tidegate.tables import SegmentFlag


class Refusing:
    """A cursor whose account lacks the right."""

    def execute(self, *_: Any) -> None:
        raise pymysql.err.OperationalError(1401, "XAER_RMERR")


@pytest.mark.parametrize("used", [False, True])
def test_a_refusal_is_said_only_where_the_source_prepares_transactions(
    caplog: pytest.LogCaptureFixture, used: bool
) -> None:
    watch = PreparedWatch(0.0, "there")
    flags = SegmentFlag.HAS_PREWRITE if used else SegmentFlag(0)
    watch.note([replace(segment(b"", b""), flags=flags)])
    watch.look(lambda ask: ask(Refusing()))
    assert ("XA RECOVER is refused (XAER_RMERR); GRANT XA_RECOVER_ADMIN" in caplog.text) == used
    assert watch.reply is None
