"""A person says what became of columns: what can't be so is refused, and never passed over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.binlog.rows.heal import REFRESHED
from tidegate.errors import SchemaMismatch, UsageError
from tidegate.mysql.start.refresh import ColumnAnswers, StoppedAt, _joined
from tidegate.schema.model.columns import Column, TableVersion

STOP = StoppedAt("log.000001", 4, 9)


def version(*names: str, first: int = 1) -> TableVersion:
    columns = tuple(Column(number, name, "int(11)") for number, name in enumerate(names, first))
    return TableVersion("s", "d", "t", 1, 1, "log.000001", 4, "", "create", columns, (first,), "utf8mb4")


def ids(before: str, now: str, renamed: list[str], dropped: list[str]) -> dict[str, int]:
    """The ids that the server's columns have then; before they had 1, 2, ..., and new ones have 11, 12, ..."""
    answers = ColumnAnswers.of(renamed, dropped, "shop")
    joined = _joined(version(*before.split()), version(*now.split(), first=11), STOP, answers)
    return {column.name: column.id for column in joined.columns}


@pytest.mark.parametrize(
    ("before", "now", "renamed", "dropped", "told"),
    [
        # Both had the id of a: silver would have had one of them twice.
        ("id a", "id a b", ["a=b"], [], "the server's table still has the column a"),
        # Its values would have left silver, though it was said to live on.
        ("id a", "id", ["a=b"], [], "the server's table has no column b"),
        ("id a", "id b", ["x=b"], [], "the table had no column x"),
        ("id a", "id b", ["a=b"], ["x"], "the table had no column x"),
        ("id a", "id a", [], ["a"], "the server's table still has the column a"),
        ("id a b", "id c", ["a=c", "a=b"], [], "column a is named twice"),
        ("id a", "id b", ["a=b"], ["A"], "column a is named twice"),
        ("id a b", "id c", ["a=c", "b=C"], [], "two columns were renamed to c"),
        ("id a", "id b", ["a=b=c"], [], "a=b=c isn't OLD=NEW"),
        ("id a", "id b", ["=b"], [], "=b isn't OLD=NEW"),
        ("id a", "id b", ["a"], [], "a isn't OLD=NEW"),
    ],
)
def test_an_answer_that_cant_be_so_is_refused(
    before: str, now: str, renamed: list[str], dropped: list[str], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        ids(before, now, renamed, dropped)


@pytest.mark.parametrize(
    ("before", "now", "renamed", "dropped", "then"),
    [
        ("id a", "id B", ["A = b"], [], {"id": 1, "B": 2}),
        ("id a b", "id a b", ["a=b", "b=a"], [], {"id": 1, "a": 3, "b": 2}),
        ("id a b", "id b", ["a=b"], ["b"], {"id": 1, "b": 2}),
        ("id a", "id b", [], ["a"], {"id": 1, "b": 12}),
    ],
)
def test_what_can_be_so_is_done(
    before: str, now: str, renamed: list[str], dropped: list[str], then: dict[str, int]
) -> None:
    assert ids(before, now, renamed, dropped) == then


def test_without_an_answer_a_rename_is_asked_for() -> None:
    with pytest.raises(SchemaMismatch, match="column a disappeared and b appeared"):
        ids("id a", "id b", [], [])


@pytest.mark.parametrize(
    ("before", "now", "renamed", "dropped"),
    [("id a c", "id b", ["a=b"], ["c"]), ("id a b", "id a b", ["a=b", "b=a"], []), ("id a b", "id b", ["a=b"], ["b"])],
)
def test_the_same_answers_are_taken_once_after_a_kill_behind_them(
    before: str, now: str, renamed: list[str], dropped: list[str]
) -> None:
    """The version is recorded, and the table doesn't go on yet."""
    answers = ColumnAnswers.of(renamed, dropped, "shop")
    made = _joined(version(*before.split()), version(*now.split(), first=11), STOP, answers)
    assert (made.kind, made.commit_ts) == (REFRESHED, STOP.at_ts)
    again = _joined(made, version(*now.split(), first=21), STOP, answers)
    assert again == replace(made, version=made.version + 1)


def test_answers_to_what_came_after_a_kill_count() -> None:
    made = _joined(version("id", "a"), version("id", "b", first=11), STOP, ColumnAnswers.of(["a=b"], [], "shop"))
    later = _joined(made, version("id", "c", first=21), STOP, ColumnAnswers.of(["b=c"], [], "shop"))
    assert [column.id for column in later.columns] == [1, 2]
