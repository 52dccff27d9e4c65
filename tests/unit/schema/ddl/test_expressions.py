"""Expressions: one spelling whatever the sql_mode, and which of them are the same."""

from __future__ import annotations

import pytest

from tidegate.schema.ddl.expressions import renamed, same_expression, spelled
from tidegate.schema.ddl.tokens import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, PIPES_AS_CONCAT
from tidegate.schema.model.server import ServerVersion

SERVER = ServerVersion(mariadb=True, number=110405)

# As written, as MariaDB 11.4 shows it, as MySQL 9.7 shows it.
SHOWN = [
    ("a+b*2", "`a` + `b` * 2", "(`a` + (`b` * 2))"),
    ("(a + b) * 2", "(`a` + `b`) * 2", "((`a` + `b`) * 2)"),
    ("CONCAT(a, 'x')", "concat(`a`,'x')", "concat(`a`,_utf8mb4'x')"),
    ("a IN (1)", "`a` = 1", "(`a` = 1)"),
    ("a in (1, 2)", "`a` in (1,2)", "(`a` in (1,2))"),
    ("a or b", "`a` <> 0 or `b` <> 0", "((0 <> `a`) or (0 <> `b`))"),
    ("length(b)", "octet_length(`b`)", "length(`b`)"),
    ("DATE_ADD(a, INTERVAL 30 DAY)", "`a` + interval 30 day", "(`a` + interval 30 day)"),
    ("IF(a>1,1,0)", "if(`a` > 1,1,0)", "if((`a` > 1),1,0)"),
    ("a between 1 and b", "`a` between 1 and `b`", "(`a` between 1 and `b`)"),
    ("a - (b - 1)", "`a` - (`b` - 1)", "(`a` - (`b` - 1))"),
    ("case when a = 1 then 'x' else b end", "case when `a` = 1 then 'x' else `b` end",
     "(case when (`a` = 1) then _utf8mb4'x' else `b` end)"),
    ("b ->> '$.x'", "json_unquote(json_extract(`b`,'$.x'))", "json_unquote(json_extract(`b`,_utf8mb4'$.x'))"),
    ("a mod 3 = 1", "`a` MOD 3 = 1", "((`a` % 3) = 1)"),
    ("cast(a as char(5))", "cast(`a` as char(5))", "cast(`a` as char(5))"),
    ("a is not null", "`a` is not null", "(`a` is not null)"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "mariadb", "mysql"), SHOWN)
def test_what_a_server_shows_is_what_was_written(written: str, mariadb: str, mysql: str) -> None:
    own = spelled(written, 0, SERVER)
    assert same_expression(own, mariadb, {})
    assert same_expression(mysql, own, {})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(a + b) * 2", "a + b * 2"), ("a - b - 1", "a - (b - 1)"), ("a + 1", "a + 2"), ("a + 1", "b + 1"),
        ("'a'", "'A'"), ("'a'", "a"), ("concat(a, b)", "concat(b, a)"), ("a in (1, 2)", "a in (1, 3)"),
        ("a and b or a", "a and (b or a)"), ("cast(a as char(5))", "cast(a as char(6))"), ("not a = b", "(not a) = b"),
        ("case when a then b end", "case when b then a end"), ("a between 1 and 2", "a between 1 and 3"),
        ("frobnicate a b", "frobnicate b a"), ("a <> 0", "a <> 1"), ("a = 1", "a <> 1"), ("a not in (1)", "a in (1)"),
        ("x'41'", "'41'"), ("f(a, b)", "f(a)"), ("a || b", "a or b"), ("-a + b", "-(a + b)"), ("a % b", "a / b"),
        ("extract(day from a)", "extract(month from a)"), ("_binary'a'", "'a'"), ("a like 'x'", "a like 'y'"),
    ],
)  # fmt: skip
def test_expressions_that_differ_are_told_apart(one: str, other: str) -> None:
    assert not same_expression(one, other, {})
    assert same_expression(one, one, {})


def test_a_renamed_column_leaves_an_expression_what_it_was() -> None:
    assert same_expression("`a` + `b`", "`c` + `b`", {"a": "c"})
    assert not same_expression("`a` + `b`", "`a` + `b` ", {"a": "c"})
    assert same_expression("`a` + `b`", "`b` + `a`", {"a": "b", "b": "a"})


def test_one_spelling_stands_for_each_modes_own() -> None:
    assert spelled('"a" || "b"', ANSI_QUOTES | PIPES_AS_CONCAT, SERVER) == "`a` || `b`"
    assert spelled('"a"||b', 0, SERVER) == "'a' or b"
    assert spelled(r"'\n'", NO_BACKSLASH_ESCAPES, SERVER) == r"'\\n'"
    assert spelled("db.t.a + `t`.`b c`", 0, SERVER) == "a + `b c`"
    assert spelled("'it''s' /* or not */ + 1", 0, SERVER) == "'it''s' + 1"
    assert spelled("'never ends", 0, SERVER) == "'never ends"


def test_names_of_columns_become_those_of_now_and_words_stay() -> None:
    names = {"a": "A", "day": "d", "end": "e", "upper": "u", "and": "x"}
    assert renamed("a + `day` AND upper(a)", names) == "`A` + `d` AND upper(`A`)"
    assert renamed("date_add(a, interval 1 day)", names) == "date_add(`A`, interval 1 day)"
    assert renamed("case when a then 1 end", names) == "case when `A` then 1 end"
    assert renamed("'a' + `end` + a1 + @a", names) == "'a' + `e` + a1 + @a"


def test_depth_has_a_bound() -> None:
    deep = "(" * 5000 + "1" + ")" * 5000
    assert same_expression(deep, deep + " ", {}) is False
