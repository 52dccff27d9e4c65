"""Whether a server adds the date of the day to a TIME, wherever it computes an expression.

In:  an expression as read_expression() gives it; a table version, and the column that has it.
Out: True where a TIME becomes a date: in a function of dates, beside a date, or as the value of a column of dates.

CAST(t AS DATETIME) of 10:00 is ten o'clock of today. No server refuses this in a generated column.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Final

from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical


class _Is(Enum):
    TIME = auto()
    DATE = auto()  # with a time or without
    OTHER = auto()


_DATES: Final = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})
_GIVES_TIME: Final = frozenset({"time", "maketime", "sec_to_time", "timediff"})
_GIVES_DATE: Final = frozenset(
    [
        *("date", "timestamp", "adddate", "subdate", "convert_tz", "last_day", "add_months", "from_days"),
        *("from_unixtime", "makedate"),
    ]
)
# Their value is one of their arguments, or they compare these.
_JOINS: Final = frozenset(
    [
        *("if", "ifnull", "nvl", "nvl2", "nullif", "coalesce", "case", "decode", "decode_oracle", "greatest", "least"),
        *("=", "<>", "<", ">", "<=", ">=", "<=>", "between", "in", "list", "field"),
    ]
)
_FROM_FIRST: Final = frozenset(  # they make a date of their first argument
    [
        *("date", "to_days", "to_seconds", "year", "yearweek", "quarter", "month", "monthname", "week", "weekofyear"),
        *("weekday", "dayofweek", "dayofmonth", "dayofyear", "dayname", "last_day", "unix_timestamp", "date_format"),
        *("to_char", "add_months", "adddate", "subdate", "convert_tz", "timestamp"),
    ]
)
_FROM_ALL: Final = frozenset({"datediff", "timestampdiff", "months_between"})  # the same day, where all are times
_ADDS: Final = frozenset({"+", "-", "timestampadd"})
_WITH_UNIT: Final = frozenset({"extract", "timestampdiff", "timestampadd"})
_DATE_UNITS: Final = ("day", "week", "month", "quarter", "year")  # and DAY_HOUR
_NO_DATE_UNITS: Final = ("day_hour", "day_minute", "day_second", "day_microsecond")  # as EXTRACT takes them
_UNEQUAL_UNITS: Final = ("month", "quarter", "year")
_DATE_IN_FORMAT: Final = tuple(f"%{letter}" for letter in "aDdebcMmYyjUuVvXxWw")


def takes_todays_date(tree: Any, column: Column, version: TableVersion) -> bool:
    """tree: the column's expression."""
    reader = _Reader({each.name.lower(): _kind(each) for each in version.columns})
    is_time = reader.read(tree) is _Is.TIME
    return reader.today or (is_time and _kind(column) is _Is.DATE)


def _kind(column: Column) -> _Is:
    kind = canonical(column).kind
    if kind is Kind.TIME:
        return _Is.TIME
    return _Is.DATE if kind in _DATES else _Is.OTHER


class _Reader:
    """today: whether the date of the day came into what was read."""

    def __init__(self, columns: dict[str, _Is]) -> None:
        self._columns = columns
        self.today = False

    def read(self, tree: Any) -> _Is:
        """The kind of an expression's value."""
        if not isinstance(tree, tuple) or not tree or tree[0] in ("text", "number"):
            return _Is.OTHER
        name, *arguments = tree
        if name == "column":
            return self._columns.get(arguments[0], _Is.OTHER)
        unit = _unit(name, arguments)
        if name in _WITH_UNIT:
            arguments = arguments[1:]
        kinds = [self.read(part) for part in arguments]
        made = _made(name, unit, arguments, kinds)
        if _Is.TIME in kinds and _adds_date(name, unit, arguments, kinds):
            self.today = True
        return made


def _unit(name: str, arguments: Sequence[Any]) -> str:
    """The unit of what is added, or asked for; "" without one."""
    if name in _WITH_UNIT and arguments:
        return _word(arguments[0])
    intervals = [part for part in arguments if isinstance(part, tuple) and part[:1] == ("interval",)]
    return str(intervals[0][-1]) if intervals and name in _ADDS else ""


def _made(name: str, unit: str, arguments: Sequence[Any], kinds: Sequence[_Is]) -> _Is:
    known = next((kind for kind in kinds if kind is not _Is.OTHER), _Is.OTHER)
    if name in ("cast", "convert"):
        return _of_type(_word(arguments[1]) if len(arguments) > 1 else "")
    if name == "str_to_date":
        return _Is.DATE if _shows_date(arguments) else _Is.TIME
    if name in _GIVES_TIME:
        return _Is.TIME
    if name in _GIVES_DATE or (name in _JOINS and _Is.DATE in kinds):
        return _Is.DATE
    if name in _JOINS or (name in _ADDS and unit):
        return known
    return kinds[0] if name in ("addtime", "subtime") and kinds else _Is.OTHER


def _adds_date(name: str, unit: str, arguments: Sequence[Any], kinds: Sequence[_Is]) -> bool:
    """Of a function with a TIME among its arguments."""
    if name in ("cast", "convert"):
        return len(arguments) > 1 and _of_type(_word(arguments[1])) is _Is.DATE
    if name in _JOINS:
        return _Is.DATE in kinds
    if name in _FROM_ALL:
        return unit in _UNEQUAL_UNITS or any(kind is not _Is.TIME for kind in kinds)
    if name == "date_format":
        return kinds[0] is _Is.TIME and _shows_date(arguments)
    if name in _ADDS or name == "extract":
        return unit.startswith(_DATE_UNITS) and not (name == "extract" and unit in _NO_DATE_UNITS)
    return name in _FROM_FIRST and kinds[0] is _Is.TIME


def _of_type(name: str) -> _Is:
    if name == "time":
        return _Is.TIME
    return _Is.DATE if name in ("date", "datetime") else _Is.OTHER


def _shows_date(arguments: Sequence[Any]) -> bool:
    """Whether a format, the second argument, may have parts of a date."""
    match arguments:
        case [_, ("text", str(form))]:
            return any(part in form for part in _DATE_IN_FORMAT)
    return True


def _word(part: Any) -> str:
    if isinstance(part, tuple) and len(part) == 2 and part[0] == "column":
        return str(part[1])
    return part if isinstance(part, str) else ""
