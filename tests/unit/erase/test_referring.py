"""Which rows refer to a person's: the condition on a child, of one foreign key and of several."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.kit.decoding import version
from tidegate.conditions.condition_text import read_condition
from tidegate.conditions.model import OneOf
from tidegate.erase.referring import Link, References, ReferringTables
from tidegate.erase.subject import Subject
from tidegate.errors import UsageError
from tidegate.schema.model.columns import Column, TableVersion

CHILD, PARENT, OTHER = ("shop", "line"), ("shop", "orders"), ("shop", "customer")


def side(*key: str, **types: str) -> TableVersion:
    """A column of text has the collation behind its type."""
    columns = list[Column]()
    for number, (name, text) in enumerate(types.items(), 1):
        kind, _, collation = text.partition(" ")
        columns.append(Column(number, name, kind, True, charset="utf8mb4" if collation else "", collation=collation))
    return version("shop", "any", columns, key)


def child(**types: str) -> TableVersion:
    return replace(side(**types), database=CHILD[0], table=CHILD[1])


def parent(*key: str, **types: str) -> TableVersion:
    return side(*key, **({"id": "int", "shop": "int", "mail": "int"} | types))


def link(of: tuple[str, str], *columns: str, to: tuple[str, ...]) -> Link:
    return Link("fk", CHILD, of, columns, to)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (4711, "`c` IN (4711)"),
        (Decimal("1.50"), "`c` IN (1.50)"),
        ("it's", "`c` IN ('it''s')"),
        (date(2026, 1, 2), "`c` IN ('2026-01-02')"),
        (datetime.fromisoformat("0999-12-31"), "`c` IN ('0999-12-31 00:00:00.000000')"),
        (datetime.fromisoformat("2026-01-02 03:04:05.000006"), "`c` IN ('2026-01-02 03:04:05.000006')"),
    ],
)
def test_a_key_is_a_literal(key: object, text: str) -> None:
    exact = "varchar(20) utf8mb4_0900_bin" if isinstance(key, str) else "int"
    made = link(PARENT, "c", to=("ID",)).references(child(c=exact), parent("id", id=exact), {(key,)})
    assert (str(made.condition), made.alike) == (text, {"c"} if isinstance(key, str) else set())
    assert read_condition(text) == made.condition


def test_columns_refer_by_their_order() -> None:
    rows = child(a="int", b="int")
    made = link(PARENT, "a", "b", to=("shop", "id")).references(rows, parent("id", "shop"), {(1, 2), (3, 4)})
    assert str(made.condition) == "((`a` = 2) AND (`b` = 1)) OR ((`a` = 4) AND (`b` = 3))"


def test_a_reference_without_columns_is_one_to_the_key() -> None:
    """MySQL 9: FOREIGN KEY (a, b) REFERENCES orders."""
    rows = child(a="int", b="int")
    made = link(PARENT, "a", "b", to=()).references(rows, parent("id", "shop"), {(1, 2)})
    assert str(made.condition) == "(`a` = 1) AND (`b` = 2)"
    with pytest.raises(UsageError, match="doesn't refer to the key of"):
        link(PARENT, "a", to=()).references(rows, parent("id", "shop"), {(1, 2)})


@pytest.mark.parametrize("to", [(), ("mail",), ("id",), ("id", "shop", "mail")])
def test_other_columns_than_the_key_are_refused(to: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="doesn't refer to the key of"):
        link(PARENT, *to, to=to).references(child(), parent("id", "shop"), {(1, 2)})
    with pytest.raises(UsageError, match="is binary"):
        link(PARENT, "c", to=("id",)).references(child(c="int"), parent("id"), {(b"\xff",)})


def test_rows_belong_by_any_of_their_parents() -> None:
    links = [link(PARENT, "o", to=("id",)), link(OTHER, "gift_for", to=("id",))]
    follow = ReferringTables((OTHER, PARENT, CHILD), {CHILD: links})
    of, rows = parent("id"), child(o="int", gift_for="int")
    both = {PARENT: (of, {(1,)}), OTHER: (of, {(2,)})}
    asked = [follow.references(rows, parents) for parents in (both, {OTHER: both[OTHER], PARENT: (of, set())}, {})]
    assert [each and str(each.condition) for each in asked] == [
        "(`o` IN (1)) OR (`gift_for` IN (2))",
        "`gift_for` IN (2)",
        None,
    ]


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_0900_ai_ci", "utf8mb4_bin"])
def test_texts_refer_by_their_collation(collation: str) -> None:
    text = f"varchar(20) {collation}"
    made = link(PARENT, "C", to=("mail",)).references(child(c=text), parent("mail", mail=text), {("Ann@X ",)})
    assert made == References(OneOf("C", ("Ann@X ",)), frozenset({"c"}))


@pytest.mark.parametrize(
    ("then", "today", "same"),
    [
        ("utf8mb4_general_ci", "utf8mb4_bin", [True, True, False]),
        ("utf8mb4_bin", "utf8mb4_general_ci", [True, False, False]),
        ("utf8mb4_0900_ai_ci", "utf8mb4_bin", [True, False, False]),
    ],
)
def test_old_rows_refer_by_the_collation_of_their_time(then: str, today: str, same: list[bool]) -> None:
    old, newest, of = (side("c", c=f"varchar(20) {name}") for name in (then, today, today))
    made = link(PARENT, "c", to=("c",)).references(newest, of, {("Ann",)})
    rows = pa.RecordBatch.from_pydict({"c": ["Ann", "ann ", "Bob"]})
    assert Subject(made.condition, newest, made.alike).true_of(rows, old).tolist() == same


@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        ("enum('b','a')", "enum('a','b')"),  # a server compares their numbers: b refers to a
        ("decimal(10,1)", "decimal(10,2)"),
        ("datetime", "datetime(6)"),
        ("int", "bigint"),
    ],
)
def test_values_of_another_type_are_refused(own: str, theirs: str) -> None:
    with pytest.raises(UsageError, match="another type"):
        link(PARENT, "c", to=("id",)).references(child(c=own), parent("id", id=theirs), {("a",)})
    made = link(PARENT, "c", to=("id",)).references(child(c=theirs), parent("id", id=theirs), {("a",)})
    assert made.condition == OneOf("c", ("a",))


@pytest.mark.parametrize(
    ("own", "theirs", "key", "why"),
    [
        ("utf8mb4_general_ci", "utf8mb4_general_ci", "zoë", "isn't plain ASCII"),
        ("utf8mb4_general_ci", "utf8mb4_bin", "zoe", "in another collation"),
        ("utf8mb4_czech_ci", "utf8mb4_czech_ci", "zoe", "which isn't known here"),
    ],
)
def test_texts_that_a_collation_may_compare_otherwise_are_refused(own: str, theirs: str, key: str, why: str) -> None:
    rows, of = child(c=f"varchar(20) {own}"), parent("mail", mail=f"varchar(20) {theirs}")
    with pytest.raises(UsageError, match=why) as refused:
        link(PARENT, "c", to=("mail",)).references(rows, of, {(key,)})
    assert "zoë" not in str(refused.value), "a value of the person"
