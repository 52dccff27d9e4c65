"""The soak's reader of the log follows statements as the servers do: rows, old versions and deleted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.soak.modes.pasts import Moment, Past, follow
from tests.soak.modes.tables import Table
from tests.soak.witness import Wrong


def table(name: str, *keys: int) -> Past:
    """Rows that are there from second 0."""
    past = Past(Table("notes", "history", name))
    for key in keys:
        past.change(None, {"id": key, "t": name})
    past.end_transaction({(key,) for key in keys}, Moment(0, 0))
    return past


def spans(past: Past, key: int) -> list[tuple[dict[str, Any], int, int | None]]:
    return [(it.row, it.begin.second, it.end.second if it.end else None) for it in past.versions[key,]]


def said(pasts: Sequence[Past], *statements: str) -> None:
    """One a second, from 1."""
    for second, text in enumerate(statements, 1):
        follow({past.table.name: past for past in pasts}, text, Moment(second, second))


def test_a_swap_of_names_ends_versions_and_begins_those_of_the_other_table() -> None:
    one, two = table("one", 1, 2), table("two", 2)
    said(
        (one, two),
        "ALTER TABLE two ADD COLUMN c1 INT NULL DEFAULT 7 FIRST, MODIFY COLUMN t LONGTEXT",
        "RENAME TABLE one TO swapped, two TO one, swapped TO two",
        "ALTER TABLE one RENAME COLUMN c1 TO c3",
    )
    assert one.rows == {(2,): {"id": 2, "t": "two", "c3": "7"}}
    assert two.rows == {(1,): {"id": 1, "t": "one"}, (2,): {"id": 2, "t": "one"}}
    assert spans(one, 1) == [({"id": 1, "t": "one", "c3": None}, 0, 2)]
    assert spans(one, 2) == [({"id": 2, "t": "one", "c3": None}, 0, 2), (one.rows[2,], 2, None)]
    assert spans(two, 2) == [({"id": 2, "t": "two"}, 0, 2), (two.rows[2,], 2, None)]
    assert one.gone[1,] == {"id": 1, "t": "one", "c3": None}


def test_a_table_that_is_renamed_away_is_empty_and_keeps_its_past() -> None:
    one, two = table("one", 1), table("two")
    said((one, two), "RENAME TABLE one TO two", "RENAME TABLE two TO one")
    assert one.rows == {(1,): {"id": 1, "t": "one"}}
    assert spans(one, 1) == [(one.rows[1,], 0, 1), (one.rows[1,], 2, None)]
    assert spans(two, 1) == [(one.rows[1,], 1, 2)]


def test_a_partition_that_is_emptied_takes_its_own_rows() -> None:
    one = table("one", 99, 100, 199, 200)
    said((one,), "ALTER TABLE one TRUNCATE PARTITION p1")
    assert [*one.rows] == [(99,), (200,)]
    assert one.gone.keys() == {(100,), (199,)}
    said((one,), "ALTER TABLE one DROP PARTITION p2", "ALTER TABLE one ADD PARTITION (PARTITION p2 VALUES LESS THAN 9)")
    assert [*one.rows] == [(99,)]


def test_an_erased_row_has_no_past() -> None:
    one = table("one", 1, 2)
    said((one,), "TRUNCATE TABLE `one`")
    one.forget((1,))
    assert one.versions.keys() == one.gone.keys() == {(2,)}


def test_a_statement_that_it_does_not_know_stops_it() -> None:
    for text in ("OPTIMIZE TABLE one", "ALTER TABLE one DROP PRIMARY KEY"):
        with pytest.raises(Wrong, match="doesn't know this"):
            said((table("one"),), text)
