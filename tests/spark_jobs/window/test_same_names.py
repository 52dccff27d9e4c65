"""Two sources with a table of the same name, and no route: nobody knows whose row a key is."""

from __future__ import annotations

from pathlib import Path

from tests.support.event_log import Log, held
from tidegate.snapshot.progress.automatic import waiting

CREATE = "CREATE TABLE shop.a (id INT PRIMARY KEY)"  # as the source `one` has it


def test_a_table_that_two_sources_have_is_held_and_read_anew_when_one_has_it_alone(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("two", CREATE)
    log.level()
    app = log.apply()
    assert held(app) == {"shop.a"}
    assert "one and two have a table of this name each" in app.states["shop.a"].reason
    assert waiting(app.pipeline, log.lake) == {"shop.a": ()}, "rows of either aren't those of silver"
    log.send("two", "DROP TABLE shop.a", ("shop.a",))
    log.level()
    log.apply()
    assert waiting(app.pipeline, log.lake) == {"shop.a": (("one", "shop", "a"),)}


def test_a_table_that_moves_from_a_source_to_another_goes_on(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.level()
    assert held(log.apply()) == set()
    log.send("one", "DROP TABLE shop.a", ("shop.a",))
    log.send("two", CREATE, ("shop.a",))
    log.level()
    assert held(log.apply()) == set()
