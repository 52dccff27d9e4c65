"""Whether a server would compute stored generated columns now as it did when their rows were
written.

In:  a table version, some of its generated columns.
Out: True if no stored one among them, or among the columns they depend on, depends on a session's
     variable.

A virtual column is computed by its reader (session_values.py). A stored one keeps its writer's
value. The digits of a division depend on a variable of the session, and so may the rounding of
times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tidegate.errors import DDLError
from tidegate.schema.ddl.expressions import read_expression
from tidegate.schema.follow.computed import reached
from tidegate.schema.follow.todays_date import takes_todays_date
from tidegate.schema.model.columns import Column, Generated, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical

# Functions and operators whose value depends only on their arguments. Not LIKE: a mode changes its escape character.
_STEADY: Final = frozenset(
    [
        *("text", "number", "list", "case", "if", "in", "between", "is", "isnull", "and", "or", "not", "+", "-", "*"),
        *("div", "%", "&", "|", "^", "~", "=", "<>", "<", ">", "<=", ">=", "<=>", "ifnull", "nullif", "coalesce"),
        *("greatest", "least", "abs", "concat", "concat_ws", "upper", "ucase", "lower", "lcase", "substr", "substring"),
        *("left", "right", "trim", "ltrim", "rtrim", "replace", "reverse", "char_length", "length", "octet_length"),
        *("instr", "locate", "hex", "md5", "sha1", "sha2", "crc32", "json_value", "json_extract", "json_unquote"),
        *("json_length", "json_valid", "year", "quarter", "month", "day", "dayofmonth", "dayofyear"),
    ]
)
_DATED: Final = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP, Kind.TIME})


def computed_alike(version: TableVersion, computed: Iterable[Column]) -> bool:
    """Whether this is true of all of them."""
    timestamps = {column.name.lower() for column in version.columns if canonical(column).kind is Kind.TIMESTAMP}
    stored = [column for column in reached(version, computed) if column.generated is Generated.STORED]
    behind = (column for column in reached(version, stored) if column.generated is not Generated.NO)
    return all(canonical(column).kind not in _DATED and _is_steady(column, version, timestamps) for column in behind)


def _is_steady(column: Column, version: TableVersion, timestamps: set[str]) -> bool:
    try:
        tree = read_expression(column.generation_expression)
    except DDLError:
        return False
    return _all_steady(tree, timestamps) and not takes_todays_date(tree, column, version)


def _all_steady(tree: Any, timestamps: set[str]) -> bool:
    if not isinstance(tree, tuple):
        return isinstance(tree, str)  # a literal, or a word such as WHEN
    name, *arguments = tree
    if name == "column":
        return arguments[0] not in timestamps
    return name in _STEADY and all(_all_steady(part, timestamps) for part in arguments)
