"""Two sources with a table of the same name, and no route: nobody knows whose row a key is."""

from __future__ import annotations

from pathlib import Path

from tests.support.event_log import Log, held
from tidegate.snapshot.progress.automatic import waiting
from tidegate.standing.causes import Cause

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


def _routed(folder: Path) -> Log:
    log = Log(folder)
    log.file.write_text(
        log.file.read_text().replace("tables: {", "tables: {routes: [{match: 'shop.a_\\d', to: shop.a}], ")
    )
    return log


def test_a_table_whose_name_is_a_route_s_target_is_held_with_its_shards(tmp_path: Path) -> None:
    """Whichever comes first; what silver had of one of them alone is right, and needs no new reading."""
    log = _routed(tmp_path)
    log.level()
    assert held(log.apply()) == set()
    log.send("one", "CREATE TABLE shop.a_1 (id INT PRIMARY KEY)", ("shop.a_1",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.a"}
    standing = app.states["shop.a"]
    assert (standing.cause, standing.lacks_rows) == (Cause.SAME_NAME, False)
    assert "a route brings shop.a_1 of one into the name of shop.a of one" in standing.reason
    assert waiting(app.pipeline, log.lake) == {}


def test_a_table_that_is_renamed_into_a_route_s_target_is_held_there(tmp_path: Path) -> None:
    log = _routed(tmp_path)
    log.send("one", "DROP TABLE shop.a", ("shop.a",))
    log.send("one", "CREATE TABLE shop.a_1 (id INT PRIMARY KEY)", ("shop.a_1",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.a"}, "both had rows in this window"
    log.keeps("'shop.*', 'crm.*', 'two.*'", "'shop.a'")
    log.file.write_text(
        log.file.read_text().replace("tables: {", "tables: {routes: [{match: 'shop.a_\\d', to: shop.a}], ")
    )
    log.run("release", str(log.file), "shop.a")
    assert held(log.apply()) == set()


def test_a_route_that_mixes_them_later_holds_the_table_at_its_next_change(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "CREATE TABLE shop.a_1 (id INT PRIMARY KEY)")
    log.level()
    assert held(log.apply()) == set()
    log.file.write_text(
        log.file.read_text().replace("tables: {", "tables: {routes: [{match: 'shop.a_\\d', to: shop.a}], ")
    )
    log.send("one", "ALTER TABLE shop.a ADD v INT", ("shop.a",))
    log.level()
    app = log.apply()
    assert app.states["shop.a"].cause is Cause.SAME_NAME
    assert waiting(app.pipeline, log.lake) == {"shop.a": ()}, "nobody reads what can't be told apart"
