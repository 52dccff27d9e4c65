"""Expressions of tables.computed: what is read, what is refused, and values with their types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tidegate.computed.computed_values import arrow_type, computed
from tidegate.computed.row_expressions import ComputedColumn, check_type, read_expression
from tidegate.config import parse
from tidegate.errors import ConfigError, UnsupportedValue


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A + b * 2", {"a", "b"}),
        ("CASE WHEN a > 1 THEN 'x' ELSE b END", {"a", "b"}),
        ("CAST(a AS DATE) -- the day", {"a"}),
        ("TRY(a::INT)", {"a"}),
        ("\"odd name\" ->> '$.a'", {"odd name"}),
        ("a BETWEEN 1 AND 2 AND b IS NOT DISTINCT FROM c", {"a", "b", "c"}),
        ("date_trunc('month', a)", {"a"}),
    ],
)
def test_the_columns_of_an_expression_are_known(text: str, names: set[str]) -> None:
    assert read_expression(text) == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 + 1", "it names no column"),
        ("a +", "syntax error"),
        ("a) , (b", "syntax error"),
        ("a, b", "more than one expression"),
        ("a AS b", "more than one expression"),
        ("a FROM t", "more than an expression"),
        ("a WHERE b", "more than an expression"),
        ("a ORDER BY a", "more than an expression"),
        ("a GROUP BY a", "more than an expression"),
        ("a QUALIFY a", "more than an expression"),
        ("a; SELECT b", "more than an expression"),
        ("DISTINCT a", "more than an expression"),
        ("(SELECT a)", "subquery isn't computed from one row"),
        ("EXISTS (FROM t)", "subquery isn't computed from one row"),
        ("row_number() OVER (ORDER BY a)", "row_number isn't computed from one row"),
        ("*", "star isn't computed from one row"),
        ("a + $1", "parameter isn't computed from one row"),
        ("t.a", "name a column alone"),
        ("sum(a)", "sum is no function of one row's values"),
        ("read_text(a)", "read_text is no function of one row's values"),
        ("a + random()", "random isn't the same each time"),
        ("a < now()", "now isn't the same each time"),
        ("a < CURRENT_DATE", "current_date isn't the same each time"),
        ("a < localtimestamp", "localtimestamp isn't the same each time"),
        ("age(a)", "age isn't the same each time"),
        ("a || current_setting('TimeZone')", "current_setting isn't the same each time"),
        ("nextval(a)", "nextval isn't the same each time"),
        ("json_serialize_plan('SELECT now(), ' || a, optimize := true)", "json_serialize_plan isn't the same"),
        ("vector_type(a)", "vector_type isn't the same each time"),
        ("a;", "syntax error"),
        ("a, ", "syntax error"),
        ("ALL a", "syntax error"),
        ("a WINDOW w AS (PARTITION BY a)", "syntax error"),
        ("a\0b", "syntax error"),
    ],
)
def test_what_hangs_on_more_than_its_row_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_expression(text)


def test_values_have_the_rules_types() -> None:
    rows = pa.record_batch({
        "_tg_op": pa.array([1, 3], pa.int8()),
        "Made": pa.array([datetime(2020, 1, 1, 23, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
        "price": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
    })  # fmt: skip
    kinds = {"date": "CAST(made AS DATE)", "timestamp": "date_trunc('day', made)", "timestamp_ntz": "made"}
    kinds |= {"decimal(20,3)": "price * 2", "string": "price || 'x'", "double": "price / 2", "boolean": "price > 1"}
    kinds |= {"int": "price", "bigint": "price"}
    columns = [ComputedColumn(f"c{at}", kind, text) for at, (kind, text) in enumerate(kinds.items())]
    made = computed(columns, rows)
    assert made.schema.names == [*rows.schema.names, *(column.name for column in columns)]
    assert [field.type for field in made.schema][len(rows.schema.names) :] == [
        arrow_type(column.type) for column in columns
    ]
    day = datetime(2020, 1, 1)  # noqa: DTZ001 - a DATETIME
    values = [date(2020, 1, 1), day.replace(tzinfo=UTC), day.replace(hour=23), Decimal("2.500"), "1.25x", 0.625, True]
    assert [made.column(column.name).to_pylist() for column in columns] == [[value, None] for value in [*values, 1, 1]]
    assert computed(columns, rows.slice(0, 0)).num_rows == 0


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "a::INT"),
        ("date", "CASE WHEN a = 'x' THEN 'infinity'::DATE END"),
        ("int", "CASE a WHEN 'x' THEN 1e10 END"),
    ],
)
def test_a_value_that_can_not_be_had_is_an_error_without_it(kind: str, text: str) -> None:
    with pytest.raises(UnsupportedValue, match=r"tables\.computed") as caught:
        computed([ComputedColumn("c", kind, text)], pa.record_batch({"a": ["x"]}))
    assert "'x'" not in str(caught.value)


def test_types_are_silvers() -> None:
    assert check_type(" Decimal( 38 , 38) ") == "decimal(38,38)"
    for kind in ("decimal(39,0)", "decimal(2,3)", "decimal", "float", "int)", ""):
        with pytest.raises(ValueError, match="not one of boolean"):
            check_type(kind)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("name: b, type: int, expression: now()", "now isn't the same each time"),
        ("name: b, type: text, expression: a", "not one of boolean"),
        ("name: _tg_b, type: int, expression: a", "name"),
        ("name: b, type: int", "expression"),
    ],
)
def test_a_bad_rule_is_an_error_of_its_file(rule: str, why: str) -> None:
    text = f"""
pipeline: p
sources: {{one: {{conn_id: c, flavour: mysql}}}}
tables: {{include: ["a.*"], computed: [{{match: "a.t", {rule}}}]}}
lake: {{path: /tmp/lake}}
"""
    with pytest.raises(ConfigError, match=why):
        parse(text, where="p.yaml")
