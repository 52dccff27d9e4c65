"""A table that changed without row events for a while needs its rows once it no longer does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.event_log import Log
from tidegate.remedy import Needs
from tidegate.standing.causes import Cause
from tidegate.tables import State

ALTERS = ("ALTER TABLE shop.a ENGINE=FEDERATED", "ALTER TABLE shop.a ENGINE=InnoDB")


@pytest.mark.parametrize("together", [False, True])
def test_a_table_that_is_logged_again_waits_for_its_rows_whether_or_not_a_window_lies_between(
    together: bool, tmp_path: Path
) -> None:
    log = Log(tmp_path)
    log.level()
    log.apply()
    for sql in ALTERS:
        log.send("one", sql)
        if not together:
            log.level()
            app = log.apply()
            assert app.states["shop.a"].state is State.HELD
    log.level()
    standing = log.apply().states["shop.a"]
    assert (standing.state, standing.cause, standing.needs) == (State.HELD, Cause.NEEDS_ROWS, Needs.ROWS)
    assert standing.lacks_rows, "a snapshot reads them by itself"
