"""Functions in Python for tables.computed: what is called and refused, what errors say; and the page's example."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from tests.kit.decoding import version
from tests.support.functions import Distributions
from tidegate import tables
from tidegate.computed.computed_values import computed
from tidegate.computed.row_expressions import ComputedColumn
from tidegate.computed.row_functions import installed
from tidegate.config import parse
from tidegate.errors import ConfigError, SchemaMismatch, SilverReadError, UnsupportedValue
from tidegate.merge.computed import check_computed
from tidegate.schema.model.columns import Column
from tidegate.verify.silver_side import Silver, SilverSide

PAGE = Path(__file__).parents[3] / "docs" / "computed-functions.md"
FILE = """
pipeline: p
lake: {{path: /tmp/l}}
sources: {{one: {{conn_id: c, flavour: mysql}}}}
tables: {{include: [a.b], computed: [{{match: a.b, name: b, type: {rule}}}]}}
"""
TEXT = """
import pyarrow as pa
import pyarrow.compute as pc

def doubled(a):
    return pc.multiply(a, 2)

def odd(a):
    if 13 in a.to_pylist():
        raise ValueError(f"a secret {a}")
    return a

def together(a):
    if len(a) > 1:
        raise KeyError("never two")
    return a

def short(a):
    return a.slice(1)

def text(a):
    return a.cast(pa.string())

def listed(a):
    return a.to_pylist()

number = 7
"""
POINTS = "\n".join(f"{name} = acme_rows:{name}" for name in ("doubled", "odd", "together", "short", "text", "listed"))


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Distributions]:
    folder = tmp_path / "site"
    folder.mkdir()
    made = Distributions(folder)
    made.install("acme-rows", "1.0", "acme_rows", TEXT, f"{POINTS}\nnumber = acme_rows:number\ngone = acme_gone:f")
    yield made
    made.close()


def rows(*values: int | None) -> pa.RecordBatch:
    count = len(values)
    stamps = {tables.COMMIT_TS: range(100, 100 + count), tables.SEQ: [4] * count, tables.ORDINAL: range(count)}
    return pa.record_batch(
        {"A": pa.array(values, pa.int64()), **{name: pa.array(of, pa.int64()) for name, of in stamps.items()}}
    )


def column(function: str, kind: str = "bigint") -> ComputedColumn:
    return ComputedColumn("b", kind, function=function, columns=("a",))


def test_a_function_gives_a_value_for_each_row_beside_expressions(acme: Distributions) -> None:
    both = [ComputedColumn("c", "int", "a + 1"), column("doubled"), ComputedColumn("d", "string", "a || '!'")]
    made = computed(both, rows(1, None, 3))
    assert made.schema.names[-3:] == ["c", "b", "d"]
    assert [made.column(name).to_pylist() for name in "cbd"] == [[2, None, 4], [2, None, 6], ["1!", None, "3!"]]
    assert computed(both, rows()).num_rows == 0


@pytest.mark.parametrize(
    ("function", "kind", "why"),
    [
        (
            "odd",
            "bigint",
            "for the row at commit_ts 102 (segment 4, change 2): function odd of acme-rows 1.0 raises ValueError",
        ),
        (
            "together",
            "bigint",
            "for 2 rows from the row at commit_ts 100 (segment 4, change 0) on: function together of acme-rows",
        ),
        (
            "short",
            "bigint",
            "for 4 rows from the row at commit_ts 100 (segment 4, change 0) on: function short of acme-rows",
        ),
        ("text", "bigint", "gives values of type string, and the rule's type is int64"),
        ("doubled", "int", "gives values of type int64, and the rule's type is int32"),
        ("listed", "bigint", "gives a list, and no pyarrow.Array"),
    ],
)
def test_what_is_no_value_is_one_error_without_values(acme: Distributions, function: str, kind: str, why: str) -> None:
    with pytest.raises(UnsupportedValue) as caught:
        computed([column(function, kind)], rows(1, 2, 13, 4))
    assert why in str(caught.value)
    assert "tables.computed: column b" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("nosuch", r"no function nosuch is installed here \(entry points in the group tidegate.functions: .*doubled"),
        ("gone", "function gone of acme-rows 1.0 can't be loaded: ModuleNotFoundError"),
        ("number", "function number of acme-rows 1.0 isn't a function"),
    ],
)
def test_a_function_that_can_not_be_had_holds_its_table(acme: Distributions, function: str, why: str) -> None:
    known = version("shop", "t", [Column(1, "id", "bigint", nullable=False), Column(2, "a", "bigint")], ["id"])
    with pytest.raises(SchemaMismatch, match=why):
        check_computed([column(function)], known)
    check_computed([column("doubled")], known)


def test_two_distributions_of_one_function_are_refused(acme: Distributions) -> None:
    acme.install("other-rows", "1.0", "other_rows", "def doubled(a):\n    return a\n", "doubled = other_rows:doubled")
    with pytest.raises(ValueError, match="in several distributions: acme-rows, other-rows"):
        installed("doubled")


def test_another_version_is_another_rule(acme: Distributions) -> None:
    before = column("doubled")
    first, shown = before.identity, before.shown
    assert shown == "doubled(a) of acme-rows 1.0"
    assert json.loads(first)[1]["version"] == "1.0"
    acme.install("acme-rows", "1.1", "acme_rows", TEXT, POINTS)
    assert before.identity != first
    assert before.needs == {"a"}
    plain = ComputedColumn("b", "int", "a + 1")
    assert plain.identity == '["int", "a + 1"]', "silver of former releases has it so"


def test_verify_calls_the_function_again(acme: Distributions, tmp_path: Path) -> None:
    held = {"A": [1, 2, None, 13], "B": [2, 5, None, 26]}
    write_deltalake(tmp_path / "t", pa.table(held, schema=pa.schema({"A": pa.int64(), "B": pa.int64()})))
    side, silver = SilverSide(), Silver(str(tmp_path / "t"), 0, ())
    assert side.otherwise(silver, [column("doubled"), ComputedColumn("A", "bigint", "A")]) == {"b": 1, "A": 0}
    assert side.otherwise(silver, [column("odd")]) == {"b": 3}, "one has no value, and two have others"
    with pytest.raises(SilverReadError, match="no function nosuch"):
        side.otherwise(silver, [column("nosuch")])
    side.close()


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("function: f", "a function takes columns"),
        ("expression: a, columns: [a]", "columns are those of a function"),
        ("expression: a, function: f, columns: [a]", "give an expression, or a function"),
        ("columns: [a]", "give an expression, or a function"),
        ("function: 'f(a)', columns: [a]", "pattern"),
    ],
)
def test_a_rule_has_one_way_to_its_values(rule: str, why: str) -> None:
    text = FILE.format(rule=f"int, {rule}")
    with pytest.raises(ConfigError, match=re.escape(why)):
        parse(text, where="p.yaml")


def test_a_parser_of_pipeline_files_loads_no_function() -> None:
    """Nor Arrow, nor DuckDB: Airflow's DAG processor reads files so."""
    text = FILE.format(rule="int, function: nosuch, columns: [a]")
    code = (
        "import sys; from tidegate.config import parse\n"
        f"kept = parse({text!r}, where='p').tables.columns_of('a', 'b')\n"
        "assert kept.computed[0].function == 'nosuch'\n"
        "assert not {'pyarrow', 'duckdb'} & {*sys.modules}, 'loaded'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_pages_example_does_what_it_says(acme: Distributions) -> None:
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL))
    project = tomllib.loads(blocks["toml"])["project"]
    ((name, point),) = project["entry-points"]["tidegate.functions"].items()
    module = point.partition(":")[0]
    acme.install(project["name"], project["version"], module, blocks["python"], f"{name} = {point}")
    file = yaml.safe_load(blocks["yaml"]) | {"pipeline": "p", "lake": {"path": "/tmp/l"}}
    file["sources"] = {"one": {"conn_id": "c", "flavour": "mysql"}}
    rules = parse(yaml.safe_dump(file), where="p.yaml").tables.columns_of("shop", "customers").computed
    made = computed(rules, pa.record_batch({"phone": ["+49 30 1", "+86-10", "x", None]}))
    assert made.column("country").to_pylist() == ["DE", "CN", None, None]
