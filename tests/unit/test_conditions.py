"""Conditions on rows: read, said again, asked of rows.

In:  texts, random conditions, rows of each type.
Out: compared with SQLite, which has SQL's logic of three values, and with Python's own order of bytes.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import config
from tidegate.conditions.condition_text import read_condition
from tidegate.conditions.matching import check_literals, matching
from tidegate.conditions.model import All, Any, Compared, Condition, IsNull, Not, OneOf, leaves
from tidegate.errors import ConfigError

TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=3)
NUMBERS = st.decimals(-5, 5, places=1)
SIGNS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
LEAVES: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Compared, st.just("n"), SIGNS, NUMBERS),
    st.builds(Compared, st.just("odd `name`"), SIGNS, TEXTS),
    st.builds(OneOf, st.just("n"), st.lists(NUMBERS, min_size=1, max_size=3).map(tuple)),
    st.builds(OneOf, st.just("odd `name`"), st.lists(TEXTS, min_size=1, max_size=3).map(tuple)),
    st.builds(IsNull, st.sampled_from(["n", "odd `name`"])),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        parts.map(Not),
        st.lists(parts, min_size=2, max_size=3).map(lambda some: All(tuple(some))),
        st.lists(parts, min_size=2, max_size=3).map(lambda some: Any(tuple(some))),
    ),
    max_leaves=8,
)


@given(CONDITIONS)
def test_the_text_of_a_condition_reads_as_the_same_again(condition: Condition) -> None:
    assert read_condition(str(condition)) == condition


@settings(deadline=None)
@given(CONDITIONS, st.lists(st.tuples(st.none() | st.integers(-5, 5), st.none() | TEXTS), max_size=6))
def test_rows_match_as_in_sql(condition: Condition, rows: list[tuple[int | None, str | None]]) -> None:
    """SQLite compares texts by their bytes in UTF-8, too."""
    batch = pa.RecordBatch.from_arrays(
        [pa.array([n for n, _ in rows], pa.int16()), pa.array([text for _, text in rows], pa.string())],
        names=["N", "odd `name`"],
    )
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (at, n, `odd ``name```)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", [(at, *row) for at, row in enumerate(rows)])
        wanted = {at for (at,) in database.execute(f"SELECT at FROM t WHERE {condition}")}
    database.close()
    assert {at for at, matched in enumerate(matching(condition, batch).to_pylist()) if matched} == wanted


def test_precedence_words_and_quotes_are_those_of_sql() -> None:
    read = read_condition("NOT a = 1 or b IN ('x''y', '') And `or` not between -1.50 and +2 AND c is not null")
    assert str(read) == (
        "(NOT (`a` = 1)) OR ((`b` IN ('x''y', '')) AND (NOT ((`or` >= -1.50) AND (`or` <= 2))) AND (NOT (`c` IS NULL)))"
    )
    assert [leaf.column for leaf in leaves(read)] == ["a", "b", "or", "or", "c"]
    assert read_condition("a != 1") == Compared("a", "<>", Decimal(1))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a column is wanted at character 1, not 'the end'"),
        ("a = ", "a text in single quotes or a number is wanted at character 5"),
        ("a == 1", "a text in single quotes or a number is wanted at character 4"),
        ("1 = a", "a column is wanted at character 1, not '1'"),
        ("a LIKE 'x%'", "a comparison is wanted at character 3, not 'LIKE'"),
        ("(a = 1", r"\) is wanted at character 7"),
        ("a = 1; DROP TABLE t", "not understood at character 6"),
        ("a = now()", "a text in single quotes or a number is wanted at character 5, not 'now'"),
        ("a = 1e3", "not understood at character 5"),
        ('a = "x"', "not understood at character 5"),
        ("(" * 100 + "a = 1" + ")" * 100, "too many parentheses"),
    ],
)
def test_what_is_not_read_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_condition(text)
    head = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables:\n  include: ['a.*']\n"
    quoted = text.replace("'", "''")
    with pytest.raises(ConfigError, match=why):
        config.parse(f"{head}  rows: [{{match: a.t, where: '{quoted}'}}]\n", where="p.yaml")


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        ("a = 'x'", pa.int32(), "'x' is a text, and the column has numbers"),
        ("a = 1", pa.string(), "1 is a number, and the column has none: write '1'"),
        ("a < '2020-13-01'", pa.date32(), "month must be in 1..12"),
        ("a < '20200101'", pa.date32(), "is no date"),
        ("a < '2020-01-01 10:00:00+02:00'", pa.timestamp("us", tz="UTC"), "is no moment"),
        ("a IN (1, 'x')", pa.decimal128(10, 2), "'x' is a text"),
        ("a = '1'", pa.float64(), "aren't compared"),
        (f"a = 0.{'1' * 70}", pa.decimal128(38, 0), "too many digits"),
        ("a IS NULL", pa.float64(), ""),
        ("a < '2020-01-01T10:00'", pa.timestamp("us"), ""),
        (f"a = {2**64}", pa.int8(), ""),
    ],
)
def test_a_literal_is_of_its_columns_type(text: str, kind: pa.DataType, why: str) -> None:
    condition = read_condition(text)
    (leaf,) = leaves(condition)
    if why:
        with pytest.raises(ValueError, match=why):
            check_literals(leaf, kind)
    else:
        check_literals(leaf, kind)
        row = pa.RecordBatch.from_arrays([pa.nulls(1, kind)], names=["a"])
        assert matching(condition, row).to_pylist() == [text == "a IS NULL"]


def test_moments_and_dates_are_compared_by_time() -> None:
    times = [dt.datetime(2020, 1, 1, 9, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC), None]
    for kind in (pa.timestamp("us", tz="UTC"), pa.timestamp("us")):
        values = pa.array([time if kind.tz or time is None else time.replace(tzinfo=None) for time in times], kind)
        rows = pa.RecordBatch.from_arrays([values], names=["at"])
        assert matching(read_condition("at >= '2020-01-01 09:30'"), rows).to_pylist() == [False, True, False]
        assert matching(read_condition("NOT at >= '2020-01-01 09:30'"), rows).to_pylist() == [True, False, False]
