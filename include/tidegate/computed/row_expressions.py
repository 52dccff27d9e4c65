"""Silver's columns beside the source's: computed from the other columns of their row.

In:  an expression in DuckDB's SQL, or the name of a function in Python with its columns (row_functions.py); a type.
Out: ComputedColumn; DuckDB's SQL of its value (computed_values.py has the values).

The value depends on the row alone, so repeated rows and repairs give the same value. Silver itself
shows whether it is right: `verify` computes it again from silver's other columns.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from tidegate.computed.row_functions import installed

if TYPE_CHECKING:
    import duckdb

# In a column's metadata in Delta's schema: the identity of a computed column.
COMPUTED_METADATA: Final = "tidegate.computed"
# Spark SQL's name of a type, and DuckDB's. Decimals aside.
_TYPES: Final[Mapping[str, str]] = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}
_DECIMAL: Final = re.compile(r"decimal\(([1-9]|[12]\d|3[0-8]),(\d|[12]\d|3[0-8])\)")
# A row's value by itself; subqueries, aggregates, windows and parameters aren't.
_CLASSES: Final = frozenset(
    {
        "BETWEEN",
        "CASE",
        "CAST",
        "COLLATE",
        "COLUMN_REF",
        "COMPARISON",
        "CONJUNCTION",
        "CONSTANT",
        "FUNCTION",
        "OPERATOR",
    }
)
# Functions that DuckDB calls constant although they depend on more than their arguments: the day, a
# setting, the release, other SQL, rows in memory.
_ASK_ELSEWHERE: Final = frozenset(
    {"age", "current_setting", "getenv", "getvariable", "json_serialize_plan", "vector_type", "version"}
)
# Called without parentheses they look like columns.
_MOMENTS: Final = frozenset(
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
    | {"current_user", "session_user", "user", "current_role", "current_catalog", "current_schema"}
)
_CONFIG: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "threads": "1",
}


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """type: a Spark SQL type, one of TYPES or decimal(p,s). expression: as read_expression takes it; "" of a function.
    function: the name of its entry point. columns: its arguments, in order.
    """

    name: str
    type: str
    expression: str = ""
    function: str = ""
    columns: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """Equal for columns with the same values. Raises ValueError without its function."""
        if not self.function:
            return json.dumps([self.type, self.expression], ensure_ascii=False)
        by = installed(self.function)
        rule = {"function": by.name, "columns": self.columns, "of": by.distribution, "version": by.version}
        return json.dumps([self.type, rule], ensure_ascii=False)

    @property
    def shown(self) -> str:
        """Its rule for people. Raises as identity."""
        if not self.function:
            return self.expression
        by = installed(self.function)
        return f"{by.name}({', '.join(self.columns)}) of {by.distribution} {by.version}"

    @property
    def lacks(self) -> str:
        """The reason against its function here; "" if it can be called."""
        try:
            _ = self.identity
        except ValueError as error:
            return str(error)
        return ""

    @property
    def needs(self) -> frozenset[str]:
        """Its input columns, in lower case."""
        return frozenset(map(str.lower, self.columns)) if self.function else read_expression(self.expression)

    @property
    def sql(self) -> str:
        """DuckDB's SQL of its value."""
        assert not self.function, "it has no SQL"
        return f"CAST((\n{self.expression}\n) AS {_duckdb_type(self.type)})"


def identities(fields: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The identity of each computed column among a Delta schema's fields, by name."""
    known: dict[str, str] = {}
    for item in fields:
        if identity := (item.get("metadata") or {}).get(COMPUTED_METADATA):
            known[str(item["name"])] = identity
    return known


def check_type(kind: str) -> str:
    """The type, in silver's form. Raises ValueError for one without computed columns."""
    kind = re.sub(r"\s+", "", kind).lower()
    decimal = _DECIMAL.fullmatch(kind)
    if kind not in _TYPES and (decimal is None or int(decimal[2]) > int(decimal[1])):
        raise ValueError(f"{kind}: not one of {', '.join(_TYPES)} or decimal(p,s)")
    return kind


@lru_cache(maxsize=1024)
def read_expression(text: str) -> frozenset[str]:
    """The columns of an expression, in lower case. Raises ValueError if it isn't one, or if its
    value depends on more than its row.
    """
    parsed = _parsed(text)
    _parsed(f"(\n{text}\n)")  # it is part of another: without a comma or a semicolon after it
    names = set[str]()
    for part in _parts(parsed):
        if part["class"] not in _CLASSES:
            raise ValueError(f"{_called(part)} isn't computed from one row")
        if part["class"] == "COLUMN_REF":
            names.add(_column(part["column_names"]))
        elif part["class"] == "FUNCTION":
            _check_function(str(part["function_name"]).lower())
    if not names:
        raise ValueError("it names no column")
    return frozenset(names)


def needs_of(columns: Sequence[ComputedColumn]) -> frozenset[str]:
    """All their input columns, in lower case."""
    return frozenset[str]().union(*map(attrgetter("needs"), columns))


def _duckdb_type(kind: str) -> str:
    return _TYPES.get(kind, kind.upper())


_local = threading.local()


def database() -> duckdb.DuckDBPyConnection:
    """This thread's: threads that decode don't wait for one another."""
    import duckdb

    own: duckdb.DuckDBPyConnection | None = getattr(_local, "database", None)
    if own is None:
        _local.database = own = duckdb.connect(":memory:", config=dict(_CONFIG))
        own.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")
    return own


def _parsed(text: str) -> Any:
    with database().cursor() as cursor:
        answer = cursor.execute("SELECT json_serialize_sql(?)", [f"SELECT {text}\n"]).fetchone()
    assert answer is not None, "a SELECT without FROM has one row"
    tree = json.loads(answer[0])
    if tree["error"]:
        raise ValueError(str(tree["error_message"]).splitlines()[0])
    node = tree["statements"][0]["node"]
    plain = node["type"] == "SELECT_NODE" and node["from_table"]["type"] == "EMPTY" and not node["modifiers"]
    others = ("where_clause", "having", "qualify", "sample")
    if len(tree["statements"]) > 1 or not plain or any(map(node.get, others)) or node["group_expressions"]:
        raise ValueError("it is more than an expression")
    if node["cte_map"]["map"] or len(node["select_list"]) != 1 or node["select_list"][0]["alias"]:
        raise ValueError("it is more than one expression")
    return node["select_list"]


def _parts(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Each part of a parsed expression."""
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        for value in tree.values():
            yield from _parts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _parts(value)


def _called(part: Mapping[str, Any]) -> str:
    return str(part.get("function_name") or part["class"]).lower()


def _column(names: Sequence[str]) -> str:
    if len(names) > 1:
        raise ValueError(f"{'.'.join(names)}: name a column alone")
    name = names[0].lower()
    if name in _MOMENTS:
        raise ValueError(f"{name} isn't the same each time")
    return name


def _check_function(name: str) -> None:
    stable = _functions().get(name)
    if stable is None:
        raise ValueError(f"{name} is no function of one row's values")
    if not stable or name in _ASK_ELSEWHERE or name.startswith("current_"):
        raise ValueError(f"{name} isn't the same each time")


@lru_cache(maxsize=1)
def _functions() -> Mapping[str, bool]:
    """DuckDB's functions of a row's values: whether each is the same for the same arguments."""
    with database().cursor() as cursor:
        rows = cursor.execute(
            "SELECT lower(function_name), bool_and(stability = 'CONSISTENT') FROM duckdb_functions()"
            " WHERE function_type = 'scalar' GROUP BY ALL"
        ).fetchall()
    return dict(rows)
