"""Rules of a table that catches up, whose parent's own windows are further on."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.window.shape.cascading import rules_at
from tests.support.event_log import Log
from tidegate.cascades.values import Doubt

KEY = "CONSTRAINT fk FOREIGN KEY (id) REFERENCES {0} (id) ON DELETE CASCADE"


@pytest.mark.parametrize("later", ["ALTER TABLE a ADD n INT", "DROP TABLE a", "DROP TABLE a|CREATE TABLE a (k INT)"])
def test_a_parent_whose_version_was_let_go_is_in_doubt(later: str, tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", f"ALTER TABLE b ADD {KEY.format('a')}", ("shop.b",))
    for sql in later.split("|"):
        log.send("one", sql, ("shop.a",))
    log.level()
    app = log.apply()
    history, at_ts = app.histories["one"], app.histories["one"].versions("shop", "b")[-1].commit_ts
    history.forget(lambda *_: app.cut_ts)
    with pytest.raises(Doubt, match=r"parent shop\.a was like"):
        rules_at(app, "one", ("shop", "b"), at_ts)


def test_a_parent_that_was_made_later_had_no_rows(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", f"CREATE TABLE x (id INT PRIMARY KEY, {KEY.format('y')})")
    log.send("one", "CREATE TABLE y (id INT PRIMARY KEY)")
    log.level()
    app = log.apply()
    history = app.histories["one"]
    assert rules_at(app, "one", ("shop", "x"), history.versions("shop", "x")[0].commit_ts) == []
    assert [rule.parent for rule in rules_at(app, "one", ("shop", "x"), app.cut_ts)] == [("shop", "y")]
