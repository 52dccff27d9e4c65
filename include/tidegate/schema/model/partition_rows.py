"""Which rows lie in a partition, as a condition on silver's columns.

In:  a table's columns and partitioning, names of partitions.
Out: Spark SQL, true for exactly the server's rows there, and a doubt: SQL, true for uncertain rows. Raises
     UnsupportedValue for what can't be told at all.

NULL lies in RANGE's first partition; by HASH it doesn't lie where 0 does. Dates that no calendar has are null in
silver, so a null date is a doubt. Texts compare by their collation: only those are known of which every value is
plain, where all these collations agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, NoReturn

from tidegate.errors import UnsupportedValue
from tidegate.remedy import REFILL
from tidegate.schema.model.columns import Column
from tidegate.schema.model.partitions import COLUMN, DEFAULT, MAX, SYSTEM_TIME, TEXT, Node, Partition, Partitioning
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical
from tidegate.spark_sql import literal, quote

_DATES: Final = {
    "year": "year({})",
    "month": "month({})",
    "day": "day({})",
    "dayofmonth": "day({})",
    "dayofyear": "dayofyear({})",
    "dayofweek": "dayofweek({})",
    "weekday": "weekday({})",
    "quarter": "quarter({})",
    "to_days": "(datediff(CAST({} AS DATE), DATE'1970-01-01') + 719528)",
}
_TIME: Final = "(hour({0}) * 3600 + minute({0}) * 60 + second({0}))"
_TIMES: Final = {"hour": "hour({})", "minute": "minute({})", "second": "second({})", "time_to_sec": _TIME}
_TO_DAYS_OF_YEAR_ONE: Final = 365  # TO_DAYS('0000-12-31'); Python's ordinals begin a day later
_DATE: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d{1,6})?))?")
# Plain texts: here these collations order letters and digits alike and have no case, the others go by code.
_PLAIN: Final = r"[0-9A-Za-z]*"
_PRINTED: Final = r"[!-~]*"
_NO_CASE: Final = re.compile(
    r"(utf8mb4|utf8mb3|utf8)_(general_ci|unicode_ci|unicode_520_ci|general_nopad_ci|unicode_nopad_ci"
    r"|unicode_520_nopad_ci|0900_ai_ci|uca1400_ai_ci|uca1400_nopad_ai_ci)|latin1_swedish_ci|ascii_general_ci"
)
_BY_CODE: Final = re.compile(r"(utf8mb4|utf8mb3|utf8|ascii|latin1)_(bin|nopad_bin|0900_bin)")
_BIGINT_MAX: Final = 2**63 - 1
_NULL_HASHED: Final = 2**63  # both servers take NULL for the least BIGINT (part_val_int in sql_partition.cc)
_NEVER: Final = "false"


@dataclass(frozen=True, slots=True)
class RowsWhere:
    """condition, doubt: Spark SQL over silver's columns, never NULL."""

    condition: str
    doubt: str


def rows_where(columns: Iterable[Column], partitioning: Partitioning | None, names: Sequence[str]) -> RowsWhere:
    """The rows of these partitions."""
    if partitioning is None:
        _refuse("the table isn't known to have partitions")
    if partitioning.unknown:
        _refuse(partitioning.unknown)
    if partitioning.method == SYSTEM_TIME:
        return _history(partitioning, names)
    positions = []
    for name in names:
        at = partitioning.find(name)
        if at is None:
            _refuse(f"partition {name} isn't known" + (" (a subpartition?)" if partitioning.sub else ""))
        positions.append(at)
    rule = _Rule(columns, partitioning)
    condition = " OR ".join(f"coalesce({rule.of(at)}, false)" for at in positions)
    doubt = " OR ".join(f"coalesce({doubt}, false)" for doubt in sorted(rule.doubts))
    return RowsWhere(f"({condition or _NEVER})", f"({doubt or _NEVER})")


def _history(partitioning: Partitioning, names: Sequence[str]) -> RowsWhere:
    """Silver has current rows alone; they lie in the last partition."""
    current = partitioning.partitions[-1].name.lower() if partitioning.partitions else ""
    if any(name.lower() == current for name in names):
        return RowsWhere("(true)", "(false)")
    return RowsWhere("(false)", "(false)")


def _refuse(what: str) -> NoReturn:
    raise UnsupportedValue(what, remedy=REFILL)


class _Rule:
    """SQL of one partitioning. doubts: SQL of what its conditions aren't certain of."""

    def __init__(self, columns: Iterable[Column], partitioning: Partitioning) -> None:
        self._columns = {column.name.lower(): column for column in columns}
        self._partitioning = partitioning
        self.doubts: set[str] = set()

    def of(self, at: int) -> str:
        match self._partitioning.method:
            case "range" | "range columns":
                return self._range(at)
            case "list" | "list columns":
                return self._list(at)
            case "hash":
                return self._hash(at)
            case method:
                _refuse(f"where a row lies by {method.upper()} isn't known here")

    def _hash(self, at: int) -> str:
        count = len(self._partitioning.partitions)
        expression = self._partitioning.expressions[0]
        text = self._number(expression)
        self.doubts.add(f"{text} > {_BIGINT_MAX}")
        if expression[0] != COLUMN:
            self.doubts.add(f"{text} IS NULL")  # the servers take whatever number a function of NULL leaves behind
        return f"coalesce(abs({text} % {count}), {_NULL_HASHED % count}) = {at}"

    # --- RANGE and LIST ------------------------------------------------------------------------------

    def _range(self, at: int) -> str:
        partitions = self._partitioning.partitions
        below = f"coalesce({self._less(partitions[at])}, false)"
        return f"{below} AND NOT coalesce({self._less(partitions[at - 1])}, false)" if at else below

    def _less(self, partition: Partition) -> str:
        """Whether the expressions are below the partition's bound, one after the other."""
        expressions = self._partitioning.expressions
        if len(partition.values) != 1 or len(partition.values[0]) != len(expressions):
            _refuse(f"the bound of partition {partition.name} isn't known")
        text = _NEVER
        for expression, value in reversed(list(zip(expressions, partition.values[0], strict=True))):
            if value == MAX:
                text = "true"
                continue
            left, bound = self._pair(expression, value)
            if bound == "NULL":
                _refuse(f"the bound of partition {partition.name} is NULL")
            less = f"{left} IS NULL OR {left} < {bound}"
            text = f"({less})" if text == _NEVER else f"({less} OR ({left} = {bound} AND {text}))"
        return text

    def _list(self, at: int) -> str:
        partition = self._partitioning.partitions[at]
        if partition.values == ((DEFAULT,),):
            rest = [n for n, other in enumerate(self._partitioning.partitions) if n != at]
            return " AND ".join(f"NOT coalesce({self._list(n)}, false)" for n in rest) or "true"
        expressions, tuples = self._partitioning.expressions, []
        for value in partition.values:
            if len(value) != len(expressions):
                _refuse(f"the values of partition {partition.name} aren't known")
            pairs = [self._pair(expression, item) for expression, item in zip(expressions, value, strict=True)]
            tuples.append(" AND ".join(f"{left} <=> {right}" for left, right in pairs))
        if not tuples:
            _refuse(f"the values of partition {partition.name} aren't known")
        return "(" + " OR ".join(f"({text})" for text in tuples) + ")"

    def _pair(self, expression: Node, value: Node) -> tuple[str, str]:
        """An expression and a constant as two texts that compare as the server compares them."""
        if not (isinstance(expression, tuple) and expression[0] == COLUMN):
            return self._number(expression), _number_text(value)
        column = self._column(expression)
        kind = canonical(column).kind
        if kind in (Kind.INT, Kind.UNSIGNED_BIGINT, Kind.YEAR):
            return quote(column.silver), _number_text(value)
        if "columns" not in self._partitioning.method:
            _refuse(f"column {column.name} ({column.type}) isn't a whole number")
        if kind in (Kind.DATE, Kind.DATETIME):
            return self._dated(column), _moment_text(value, is_date=kind is Kind.DATE)
        if kind is Kind.TEXT:
            return self._text(column, value)
        _refuse(f"how column {column.name} ({column.type}) compares isn't known here")

    def _column(self, node: Node) -> Column:
        column = self._columns.get(str(node[1]).lower())
        if column is None:
            _refuse(f"its column {node[1]} isn't known")
        return column

    def _dated(self, column: Column) -> str:
        name = quote(column.silver)
        self.doubts.add(f"{name} IS NULL OR year({name}) < 1")
        return name

    def _text(self, column: Column, value: Node) -> tuple[str, str]:
        name = quote(column.silver)
        if _NO_CASE.fullmatch(column.collation):
            left, plain = f"upper({name})", _PLAIN
        elif _BY_CODE.fullmatch(column.collation):
            left, plain = name, _PRINTED
        else:
            _refuse(f"how texts compare under {column.collation or column.charset} isn't known here")
        self.doubts.add(f"NOT {name} RLIKE {literal(f'^{plain}' + chr(92) + 'z')}")
        if value is None:
            return left, "NULL"
        if not (isinstance(value, tuple) and value[0] == TEXT and re.fullmatch(plain, value[1])):
            _refuse(f"how column {column.name} compares with {_shown(value)} isn't known here")
        text = str(value[1])
        return left, literal(text.upper() if plain == _PLAIN else text)

    # --- expressions ---------------------------------------------------------------------------------

    def _number(self, node: Node) -> str:
        """An expression that is a whole number."""
        if isinstance(node, int):
            return str(node)
        if not isinstance(node, tuple):
            _refuse("its expression isn't known here")
        if node[0] == COLUMN:
            return self._integer(node)
        name, arguments = node[0], node[1:]
        if name in _DATES or name in _TIMES or name in ("to_seconds", "unix_timestamp", "datediff"):
            return self._function(name, arguments)
        if any(canonical(column).text.unsigned for column in self._columns_in(node)):
            self._refuse_signs(node)
        parts = [f"CAST({self._number(argument)} AS DECIMAL(20,0))" for argument in arguments]
        match name, parts:
            case "+" | "-" | "*", [left, right]:
                return f"CAST({left} {name} {right} AS DECIMAL(38,0))"
            case "mod", [left, right]:
                return f"({left} % nullif({right}, 0))"
            case "div", [left, right]:
                return f"({left} div nullif({right}, 0))"
            case "negative", [inner]:
                return f"(- {inner})"
            case "abs", [inner]:
                return f"abs({inner})"
            case "floor" | "ceiling" | "ceil", [inner]:
                return inner
        _refuse(f"{str(name).upper()} isn't known here")

    def _integer(self, node: Node) -> str:
        column = self._column(node)
        if canonical(column).kind not in (Kind.INT, Kind.UNSIGNED_BIGINT, Kind.YEAR):
            _refuse(f"column {column.name} ({column.type}) isn't a whole number")
        return quote(column.silver)

    def _columns_in(self, node: Node) -> list[Column]:
        if not isinstance(node, tuple):
            return []
        if node[0] == COLUMN:
            return [self._column(node)]
        return [column for argument in node[1:] for column in self._columns_in(argument)]

    def _refuse_signs(self, node: Node) -> None:
        """Without signs a sum is what it is everywhere; with them it hangs on sql_mode."""
        mixed = any(not canonical(column).text.unsigned for column in self._columns_in(node))
        if mixed or _signed(node):
            _refuse("signed and unsigned numbers meet in its expression")

    def _function(self, name: str, arguments: Sequence[Node]) -> str:
        columns = [
            self._column(argument) for argument in arguments if isinstance(argument, tuple) and argument[0] == COLUMN
        ]
        kinds = [canonical(column).kind for column in columns]
        if len(columns) != len(arguments) or not all(kind in _MOMENTS for kind in kinds):
            _refuse(f"{name.upper()} of anything but a date's column isn't known here")
        texts = [self._dated(column) for column in columns]
        if name == "unix_timestamp" and kinds == [Kind.TIMESTAMP]:
            return f"unix_seconds({texts[0]})"
        if Kind.TIMESTAMP in kinds:
            _refuse(f"{name.upper()} of a TIMESTAMP hangs on the session's time zone")
        if name == "datediff" and len(kinds) == 2:
            return f"datediff(CAST({texts[0]} AS DATE), CAST({texts[1]} AS DATE))"
        if len(kinds) == 1 and name in _DATES:
            return _DATES[name].format(texts[0])
        if name == "to_seconds" and len(kinds) == 1:
            days = f"CAST({_DATES['to_days'].format(texts[0])} AS BIGINT) * 86400"
            return f"({days} + {_TIME.format(texts[0])})" if kinds == [Kind.DATETIME] else f"({days})"
        if name in _TIMES and kinds == [Kind.DATETIME]:
            return _TIMES[name].format(texts[0])
        _refuse(f"{name.upper()} of such columns isn't known here")


_MOMENTS: Final = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})


def _signed(node: Node) -> bool:
    if isinstance(node, tuple):
        return node[0] in ("-", "negative") or any(map(_signed, node[1:]))
    return isinstance(node, int) and node < 0


# --- constants --------------------------------------------------------------------------------------


def _number_text(value: Node) -> str:
    number = _constant(value)
    return "NULL" if number is None else str(number)


def _constant(node: Node) -> int | None:
    """A number that a statement writes as an expression: TO_DAYS('2020-01-01'), 10 * 2."""
    if node is None or isinstance(node, int):
        return node
    name, arguments = node[0], node[1:]
    if name in ("to_days", "year", "to_seconds") and len(arguments) == 1:
        moment = _moment(arguments[0])
        days = moment.toordinal() + _TO_DAYS_OF_YEAR_ONE
        of_day = moment.hour * 3600 + moment.minute * 60 + moment.second
        return {"to_days": days, "year": moment.year, "to_seconds": days * 86400 + of_day}[name]
    if name == "unix_timestamp":
        _refuse("its bounds hang on the session's time zone")
    numbers = [_constant(argument) for argument in arguments] if name not in (TEXT, COLUMN) else [None]
    match name, numbers:
        case "+", [int(left), int(right)]:
            return left + right
        case "-", [int(left), int(right)]:
            return left - right
        case "*", [int(left), int(right)]:
            return left * right
        case "negative", [int(inner)]:
            return -inner
    _refuse(f"{_shown(node)} isn't a number that is known here")


def _moment(node: Node) -> datetime:
    match = _DATE.fullmatch(node[1]) if isinstance(node, tuple) and node[0] == TEXT else None
    try:
        if match:
            day = date.fromisoformat(match[1])
            return datetime.fromisoformat(f"{day.isoformat()} {match[2] or '00:00:00'}")
    except ValueError:
        pass
    _refuse(f"{_shown(node)} isn't a date that is known here")


def _moment_text(node: Node, *, is_date: bool) -> str:
    if node is None:
        return "NULL"
    moment = _moment(node)
    if not is_date:
        return f"TIMESTAMP_NTZ'{moment.isoformat(sep=' ')}'"
    if moment.time() != datetime.min.time():
        _refuse(f"{_shown(node)} isn't a date")
    return f"DATE'{moment.date().isoformat()}'"


def _shown(node: Node) -> str:
    if isinstance(node, tuple) and len(node) == 2 and node[0] in (TEXT, COLUMN):
        return repr(node[1])
    return "NULL" if node is None else repr(node) if isinstance(node, int) else str(node[0]).upper()
