"""Whether a server adds the present date to a TIME when it computes an expression.

In:  an expression from read_expression(); a table version, and the column with the expression.
Out: True if a TIME becomes a date or a year: in a function of dates, beside a date, or as the value
     of a column of dates or years.

CAST(t AS DATETIME) of 10:00 is ten o'clock today. No server refuses this in a generated column.
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
    YEAR = auto()
    OTHER = auto()


_OF_A_DAY: Final = (_Is.DATE, _Is.YEAR)
_TYPES: Final = {"time": _Is.TIME, "date": _Is.DATE, "datetime": _Is.DATE, "year": _Is.YEAR}
_DATES: Final = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})
_GIVES_TIME: Final = frozenset({"time", "maketime", "sec_to_time", "timediff"})
_GIVES_DATE: Final = frozenset(
    [
        *("date", "timestamp", "adddate", "subdate", "convert_tz", "last_day", "add_months", "from_days"),
        *("from_unixtime", "makedate"),
    ]
)
_KEEPS_TIME: Final = frozenset({"addtime", "subtime", "round", "truncate", "ceiling", "floor"})
# Their value is one of their arguments, or they compare their arguments.
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
_FROM_ALL: Final = frozenset({"datediff", "timestampdiff", "months_between"})  # of all their arguments
_ADDS: Final = frozenset({"+", "-", "timestampadd"})
_WITH_UNIT: Final = frozenset({"extract", "timestampdiff", "timestampadd"})
_DATE_UNITS: Final = ("day", "week", "month", "quarter", "year")  # also as the first part, as in DAY_HOUR
_NO_DATE_UNITS: Final = ("day_hour", "day_minute", "day_second", "day_microsecond")  # EXTRACT takes them from a time
_UNEQUAL_UNITS: Final = ("month", "quarter", "year")
_DATE_IN_FORMAT: Final = tuple(f"%{letter}" for letter in "aDdebcMmYyjUuVvXxWw")


def takes_todays_date(tree: Any, column: Column, version: TableVersion) -> bool:
    """tree: the column's expression."""
    reader = _Reader({each.name.lower(): _kind(each) for each in version.columns})
    is_time = reader.read(tree) is _Is.TIME
    return reader.today or (is_time and _kind(column) in _OF_A_DAY)


def _kind(column: Column) -> _Is:
    kind = canonical(column).kind
    if kind is Kind.TIME:
        return _Is.TIME
    if kind is Kind.YEAR:
        return _Is.YEAR
    return _Is.DATE if kind in _DATES else _Is.OTHER


class _Reader:
    """today: whether the present date came into what was read."""

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
    """The unit of what is added, or extracted; "" without one."""
    if name in _WITH_UNIT and arguments:
        return _word(arguments[0])
    intervals = [part for part in arguments if isinstance(part, tuple) and part[:1] == ("interval",)]
    return str(intervals[0][-1]) if intervals and name in _ADDS else ""


def _made(name: str, unit: str, arguments: Sequence[Any], kinds: Sequence[_Is]) -> _Is:
    known = next((kind for kind in kinds if kind in (_Is.TIME, _Is.DATE)), _Is.OTHER)
    if name in ("cast", "convert"):
        return _type_in(arguments)
    if name == "str_to_date":
        return _Is.DATE if _shows_date(arguments) else _Is.TIME
    if name in _GIVES_TIME:
        return _Is.TIME
    if name in _GIVES_DATE or (name in _JOINS and _Is.DATE in kinds):
        return _Is.DATE
    if name in _JOINS or (name in _ADDS and unit):
        return known
    return kinds[0] if name in _KEEPS_TIME and kinds else _Is.OTHER


def _adds_date(name: str, unit: str, arguments: Sequence[Any], kinds: Sequence[_Is]) -> bool:
    """Whether a function with a TIME among its arguments adds the date."""
    if name in ("cast", "convert"):
        return _type_in(arguments) in _OF_A_DAY
    if name in _JOINS:
        return _Is.DATE in kinds
    if name in _FROM_ALL:
        return not (unit and unit not in _UNEQUAL_UNITS and _are_time_columns(arguments, kinds))
    if name == "date_format":
        return kinds[0] is _Is.TIME and _shows_date(arguments)
    if name in _ADDS or name == "extract":
        return unit.startswith(_DATE_UNITS) and not (name == "extract" and unit in _NO_DATE_UNITS)
    return name in _FROM_FIRST and kinds[0] is _Is.TIME


def _are_time_columns(arguments: Sequence[Any], kinds: Sequence[_Is]) -> bool:
    """Whether all arguments are columns of times: these get the same date. On MySQL the value of a
    function may get another one.
    """
    are_columns = all(part[0] == "column" for part in arguments)
    return are_columns and all(kind is _Is.TIME for kind in kinds)


def _type_in(arguments: Sequence[Any]) -> _Is:
    """The kind of the type in CAST(x AS DATETIME(6)), CONVERT(x, DATETIME(6))."""
    match arguments:
        case [_, ("column", str(name)) | (str(name), ("number", _)) | str(name), *_]:
            return _TYPES.get(name, _Is.OTHER)
    return _Is.OTHER


def _shows_date(arguments: Sequence[Any]) -> bool:
    """Whether the second argument, a format, may have parts of a date."""
    match arguments:
        case [_, ("text", str(form))]:
            return any(part in form for part in _DATE_IN_FORMAT)
    return True


def _word(part: Any) -> str:
    if isinstance(part, tuple) and len(part) == 2 and part[0] == "column":
        return str(part[1])
    return part if isinstance(part, str) else ""
