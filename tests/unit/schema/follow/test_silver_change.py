"""What silver does about a new version: actions by column id, and no value kept that the source rewrote."""

from __future__ import annotations

import pytest

from tests.unit.schema.replay.test_history import Session
from tidegate.errors import UnsupportedValue
from tidegate.schema.follow.silver_change import (
    AddSilverColumn,
    ChangeType,
    DropSilverColumn,
    KeyChange,
    RenameSilverColumn,
    SilverAction,
    ValuesRewritten,
    diff,
)


def _actions(create: str, alter: str, *apart: str) -> list[SilverAction]:
    """apart: names of columns before and after the statement."""
    s = Session()
    s.run(f"CREATE TABLE t ({create})", f"ALTER TABLE t {alter}")
    versions = s.history.versions("db", "t")
    ids = {column.id for version in versions for column in version.columns if column.name in apart}
    return diff(versions[-2], versions[-1], apart=ids) if len(versions) > 1 else []


def test_drop_rename_and_add_come_in_an_order_that_can_be_done() -> None:
    found = _actions("a INT, b INT, c INT", "DROP a, RENAME COLUMN b TO a, ADD b INT NOT NULL DEFAULT 7")
    assert found[:2] == [DropSilverColumn("a"), RenameSilverColumn("b", "a")]
    added = found[2]
    assert isinstance(added, AddSilverColumn)
    assert (added.column.name, added.value) == ("b", 7)


def test_another_order_of_columns_is_nothing_to_silver() -> None:
    assert _actions("a INT, b INT", "MODIFY b INT FIRST") == []


def test_an_expression_written_otherwise_or_with_a_renamed_column_changes_no_value() -> None:
    table = "a INT, b INT, g INT AS (a + b * 2) STORED"
    assert _actions(table, "MODIFY g INT AS ((`A` + (b*2))) STORED COMMENT 'as before'") == []
    assert _actions(table, "RENAME COLUMN a TO c") == [RenameSilverColumn("a", "c")]
    assert _actions(table, "RENAME COLUMN a TO b, RENAME COLUMN b TO a") == [
        RenameSilverColumn("a", "b"),
        RenameSilverColumn("b", "a"),
    ]
    (found,) = _actions(table, "MODIFY g INT AS ((a + b) * 2) STORED")
    assert isinstance(found, ValuesRewritten)
    assert found.recast is None


_OF_SESSION = "id INT PRIMARY KEY, n INT, at TIMESTAMP NULL, dt DATETIME, h INT AS (HOUR(at)) STORED"


@pytest.mark.parametrize(
    "alter",
    ["MODIFY n BIGINT", "MODIFY h BIGINT AS (HOUR(at)) STORED", "ADD m INT, ALGORITHM=COPY"],
)
def test_a_stored_value_of_the_session_is_another_one_where_the_table_is_copied(alter: str) -> None:
    (found,) = (one for one in _actions(_OF_SESSION, alter) if isinstance(one, ValuesRewritten))
    assert (found.column.name, found.recast) == ("h", None)


def test_a_stored_value_stays_where_the_table_isnt_copied_or_it_is_everybodys() -> None:
    assert not any(isinstance(one, ValuesRewritten) for one in _actions(_OF_SESSION, "ADD m INT, RENAME COLUMN n TO k"))
    assert _actions(_OF_SESSION.replace("(at)", "(dt)"), "MODIFY n BIGINT") == [ChangeType("n", "int", "bigint")]


def test_what_is_computed_from_a_left_out_column_changes_with_what_that_one_is_computed_from() -> None:
    table = "a VARCHAR(9) CHARACTER SET latin1, g INT AS (LENGTH(a)) STORED, g2 INT AS (g * 2) STORED"
    changed = [one for one in _actions(table, "MODIFY a VARCHAR(9) CHARACTER SET utf8mb4", "g") if one]
    assert [one.column.name for one in changed if isinstance(one, ValuesRewritten)] == ["g2"]


@pytest.mark.parametrize(
    "alter",
    [
        "DROP p",
        "RENAME COLUMN p TO q",
        "MODIFY p DATE",
        "MODIFY p INT NOT NULL FIRST",
        "ADD q INT AS (a + 1) STORED",
        "ADD q VARCHAR(40) DEFAULT (UUID())",
    ],
)
def test_columns_that_silver_does_not_have_are_nothing_to_it(alter: str) -> None:
    assert _actions("a INT, p VARCHAR(9)", alter, "p", "q") == []


@pytest.mark.parametrize(
    ("table", "alter", "anew"),
    [
        ("p VARCHAR(9), g INT AS (LENGTH(p)) STORED", "MODIFY p VARCHAR(3)", "p"),
        ("p VARCHAR(9), g INT AS (LENGTH(p)) STORED", "MODIFY p VARCHAR(12)", ""),
        ("p INT, q INT AS (p) STORED, g INT AS (q) STORED", "MODIFY p TINYINT", "q"),
        ("a INT, q INT AS (a) STORED, g INT AS (q) STORED", "MODIFY q INT AS (a + 1) STORED", "q"),
    ],
)
def test_a_column_that_is_computed_from_one_that_silver_does_not_have_follows_it(
    table: str, alter: str, anew: str
) -> None:
    found = _actions(table, alter, "p", "q")
    reasons = [action.reason for action in found if isinstance(action, ValuesRewritten)]
    assert reasons == ([f"it is computed from {anew}, which changed"] if anew else [])
    assert len(found) == len(reasons)


def test_a_key_change_is_told() -> None:
    assert _actions("a INT NOT NULL, b INT", "ADD PRIMARY KEY (a)") == [KeyChange((), ("a",))]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("VARCHAR(10)", "VARCHAR(20)"),
        ("VARCHAR(10) CHARACTER SET latin1", "VARCHAR(10) CHARACTER SET utf8mb4"),
        ("VARCHAR(255)", "TEXT"),
        ("TEXT", "LONGTEXT"),
        ("ENUM('a','b')", "ENUM('b','a','c')"),
        ("SET('a','b')", "SET('a','b','c')"),
        ("DATETIME", "DATETIME(6)"),
        ("MEDIUMINT", "INT"),
        ("VARBINARY(5)", "BLOB"),
        ("INT", "INT NULL COMMENT 'x'"),
    ],
)
def test_a_change_that_keeps_every_value_and_the_delta_type_is_no_action(old: str, new: str) -> None:
    assert _actions(f"a {old}", f"MODIFY a {new}") == []


@pytest.mark.parametrize(
    ("old", "new", "types"),
    [
        ("INT", "BIGINT", ("int", "bigint")),
        ("INT UNSIGNED", "BIGINT", ("bigint", "bigint")),
        ("TINYINT UNSIGNED", "BIGINT UNSIGNED", ("smallint", "decimal(20,0)")),
        ("DECIMAL(5,2)", "DECIMAL(10,3)", ("decimal(5,2)", "decimal(10,3)")),
        ("FLOAT", "DOUBLE", ("float", "double")),
    ],
)
def test_a_wider_type_keeps_every_value(old: str, new: str, types: tuple[str, str]) -> None:
    found = _actions(f"a {old}", f"MODIFY a {new}")
    assert found == ([ChangeType("a", *types)] if types[0] != types[1] else [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("VARCHAR(20)", "VARCHAR(10)"),
        ("VARCHAR(20)", "INT"),
        ("VARCHAR(20)", "CHAR(20)"),
        ("VARCHAR(20) CHARACTER SET utf8mb4", "VARCHAR(20) CHARACTER SET latin1"),
        ("TEXT CHARACTER SET latin1", "TEXT CHARACTER SET utf8mb4"),
        ("VARCHAR(20)", "VARBINARY(80)"),
        ("BIGINT", "INT"),
        ("INT", "INT UNSIGNED"),
        ("BIGINT UNSIGNED", "BIGINT"),
        ("DECIMAL(5,2)", "DECIMAL(5,3)"),
        ("DECIMAL(5,2)", "DECIMAL(5,1)"),
        ("DOUBLE", "FLOAT"),
        ("DATETIME(6)", "DATETIME"),
        ("TIME", "TIME(3)"),
        ("DATETIME", "TIMESTAMP"),
        ("ENUM('a','b')", "ENUM('a')"),
        ("SET('a','b')", "SET('b','a')"),
        ("BIT(1)", "BIT(2)"),
        ("BINARY(2)", "BINARY(3)"),
        ("INT", "INT NOT NULL"),
        ("INT", "INT AS (1) STORED"),
    ],
)
def test_a_change_that_may_convert_values_says_so(old: str, new: str) -> None:
    (found,) = _actions(f"a {old}, b INT", f"MODIFY a {new}")
    assert isinstance(found, ValuesRewritten)
    assert found.reason


def test_an_added_column_whose_value_nobody_can_know_is_refused() -> None:
    for definition in ("b INT AS (a + 1) STORED", "b VARCHAR(36) DEFAULT (uuid())", "b INT AUTO_INCREMENT UNIQUE"):
        with pytest.raises(UnsupportedValue, match="added column b"):
            _actions("a INT", f"ADD {definition}")


def test_what_is_computed_from_a_changed_column_is_computed_anew() -> None:
    text = "a DECIMAL(9,2), g VARCHAR(20) AS (CONCAT(a)) STORED"
    (_, computed) = _actions(text, "MODIFY a DECIMAL(12,3)")
    assert isinstance(computed, ValuesRewritten)
    assert (computed.column.name, computed.recast) == ("g", None)
    assert _actions("a INT, g INT AS (a + 1) STORED", "MODIFY a BIGINT") == [ChangeType("a", "int", "bigint")]


def test_a_default_of_more_digits_than_python_counts_by_itself_is_known() -> None:
    found = _actions(
        "a INT", "ADD b DECIMAL(65,30) NOT NULL DEFAULT 1.5, ADD c DECIMAL(38,10) DEFAULT -123456789012345678901234567"
    )
    values = [action.value for action in found if isinstance(action, AddSilverColumn)]
    assert [f"{value}" for value in values] == ["1.5" + "0" * 29, "-123456789012345678901234567.0000000000"]


def test_what_reads_a_default_is_computed_anew_where_the_default_changes() -> None:
    table = "a INT DEFAULT 3, b INT DEFAULT 3, g INT AS (DEFAULT(a) + b) VIRTUAL"
    for alter in ("ALTER a SET DEFAULT 7", "MODIFY a INT DEFAULT 7", "ALTER a DROP DEFAULT", "MODIFY a INT"):
        (found,) = _actions(table, alter)
        assert isinstance(found, ValuesRewritten)
        assert (found.column.name, found.recast) == ("g", None)
    assert _actions(table, "MODIFY a INT DEFAULT 3 COMMENT 'as before'") == []
    assert _actions("a INT DEFAULT 3, `default` INT, g INT AS (a + `default`)", "ALTER a SET DEFAULT 7") == []
