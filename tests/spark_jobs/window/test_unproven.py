"""Tables whose columns a statement left in doubt: they are not believed, whoever kept them meanwhile.

In:  events as servers write them, in bronze; pipeline files that keep other tables later.
Out: which tables are held, until a CREATE TABLE says what they are.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.event_log import Log, held
from tidegate import config
from tidegate.lake.figures import status
from tidegate.remedy import Needs
from tidegate.snapshot.progress.automatic import waiting
from tidegate.tables import EVERY_TABLE


@pytest.mark.parametrize(
    ("sql", "damage"),
    [
        (b"ALTER TABLE other.t DROP COLUMN nope", 0),
        (b"ALTER TABLE other.t ADD e ENUM('caf\xe9')", 0),
        (b"ALTER TABLE other.t ADD v FANCY", 0),
        (b"ALTER SOMETHING x", 0),
        (b"RENAME TABLE shop.nope TO shop.there, other.t TO other.u", 0),
        (b"ALTER TABLE other.t ADD v INT", 1),
    ],
)
def test_a_statement_that_was_not_followed_while_nobody_kept_its_table_counts_once_somebody_does(
    sql: bytes, damage: int, tmp_path: Path
) -> None:
    log = Log(tmp_path)
    for text in ("CREATE TABLE other.t (id INT PRIMARY KEY)", sql, "TRUNCATE TABLE other.t"):
        log.send("one", text, ("other.t",) if damage else (EVERY_TABLE,), damage=damage if text is sql else 0)
    log.level()
    assert "other.t" not in held(log.apply())
    log.keeps("'other.*'")
    app = log.apply()
    assert "other.t" in held(app)
    assert app.states["other.t"].needs is Needs.COLUMNS
    (told,) = [table for table in status.table_statuses(log.lake) if table.table == "other.t"]
    assert told.way_out.startswith("its older rows and columns aren't in the log")
    log.send("one", "TRUNCATE TABLE other.t", ("other.t",))
    log.level()
    assert "other.t" in held(log.apply()), "which says nothing of its columns"
    log.send("one", "DROP TABLE other.t", ("other.t",))
    log.send("one", "CREATE TABLE other.t (id INT PRIMARY KEY)", ("other.t",))
    log.level()
    assert "other.t" not in held(log.apply())


def test_a_table_that_is_left_while_a_statement_waits_is_not_believed_when_it_comes_back(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "ALTER TABLE shop.b DROP COLUMN nope", ("shop.b",))
    log.level()
    assert held(log.apply()) == {"shop.b"}
    log.keeps("'shop.*', 'crm.*', 'two.*'", "'shop.b'")
    log.send("one", "TRUNCATE TABLE shop.b", ("shop.b",))
    log.level()
    assert log.apply().states["shop.b"].state == "left"
    log.keeps("'shop.*', 'crm.*', 'two.*'")
    log.send("one", "TRUNCATE TABLE shop.b", ("shop.b",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.b"}
    assert app.states["shop.b"].needs is Needs.COLUMNS
    log.send("one", "DROP TABLE shop.b", ("shop.b",))
    log.send("one", "CREATE TABLE shop.b (id INT PRIMARY KEY, v INT)", ("shop.b",))
    log.level()
    assert held(log.apply()) == set()


def test_a_table_that_an_if_not_exists_may_have_found_there_is_not_believed_once_it_is_emptied(tmp_path: Path) -> None:
    log = Log(tmp_path, server="10.5.9-MariaDB-log")
    log.send("one", "CREATE TABLE IF NOT EXISTS shop.new (id INT PRIMARY KEY)", ("shop.new",))
    log.send("one", "TRUNCATE TABLE shop.new", ("shop.new",))
    log.level()
    app = log.apply()
    assert held(app) == {"shop.new"}
    assert app.states["shop.new"].needs is Needs.COLUMNS, "a TRUNCATE doesn't tell its columns"


@pytest.mark.parametrize("split", [False, True])
def test_what_a_statement_lacks_that_isn_t_followed_whoever_it_is_linked_with_later_lacks_too(
    split: bool, tmp_path: Path
) -> None:
    """split: whether an application that starts anew meets the second statement."""
    log = Log(tmp_path)
    log.level()
    log.apply()
    log.send("one", "ALTER TABLE shop.a DROP COLUMN nope", ("shop.a",))
    if split:
        log.level()
        log.apply()
    log.send("one", "RENAME TABLE shop.b TO shop.m, shop.a TO shop.b", ("shop.a", "shop.b", "shop.m"))
    log.level()
    app = log.apply()
    assert {name: app.states[name].needs for name in held(app)} == dict.fromkeys(
        ("shop.a", "shop.b", "shop.m"), Needs.COLUMNS
    )
    assert waiting(config.load(log.file), log.lake).keys() == held(app), "else nothing would ever bring their rows"
