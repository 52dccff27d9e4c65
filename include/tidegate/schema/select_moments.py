"""Types of functions of dates and times, as MariaDB gives them.

In:  a call, the Results of its arguments.
Out: a Result; None for a function that isn't of these. Raises Doubt where the type isn't certain.

Fractions of seconds: fix_length_and_dec of each Item in MariaDB's sql/item_timefunc.cc, checked against 10.11 and 11.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from tidegate.schema.select_expressions import Doubt, Expression
from tidegate.schema.select_types import Result, decimal, integer, moment

_FRACTION_MAX: Final = 6
_SECONDS_LENGTH: Final = 17  # of TIME_TO_SEC and UNIX_TIMESTAMP
_SECONDS_DIGITS: Final = 16
_WHOLE_DAYS: Final = frozenset({"day", "week", "month", "quarter", "year", "year_month"})
_TIME_UNITS: Final = frozenset({"day", "hour", "minute", "second"})
# Shown lengths of EXTRACT; those with days are others for what isn't a moment.
_UNITS: Final[Mapping[str, int]] = {
    "year": 5, "year_month": 7, "quarter": 2, "month": 3, "week": 3, "day": 3, "day_hour": 5, "day_minute": 7,
    "day_second": 9, "day_microsecond": 15, "hour": 3, "hour_minute": 5, "hour_second": 7, "hour_microsecond": 13,
    "minute": 3, "minute_second": 5, "minute_microsecond": 11, "second": 3, "second_microsecond": 9, "microsecond": 7,
}  # fmt: skip
_DAYS_OF_OTHERS: Final[Mapping[str, int]] = {
    "day": 8, "day_hour": 10, "day_minute": 12, "day_second": 14, "day_microsecond": 20,
}  # fmt: skip
_NARROW_UNITS: Final = frozenset({"year", "year_month", "quarter", "month", "week"})
# Texts whose fraction is beyond doubt.
_CLOCK: Final = re.compile(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(?:\.(\d+))?")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_MARKS: Final = frozenset("MmbcDdejUuVvWwXxYya")
_TIME_MARKS: Final = frozenset("HhIiklprSsTf")


def moments(tree: Expression, values: list[Result]) -> Result | None:
    """Raises Doubt."""
    made = _FUNCTIONS.get(tree.name)
    return None if made is None else made(tree, values)


def _fraction(value: Result, *, days: bool = False) -> int:
    """Digits of a second that a value has as a moment. days: whether a date alone will do. Raises Doubt."""
    if value.temporal:
        return value.scale
    if value.kind in ("int", "year"):
        return 0
    if value.kind == "decimal":
        return min(value.scale, _FRACTION_MAX)
    if value.kind in ("double", "float"):
        if value.scale < _FRACTION_MAX:
            raise Doubt
        return _FRACTION_MAX
    if value.kind != "string" or value.binary or value.listed:
        raise Doubt
    if value.literal is None:
        if not value.text:
            raise Doubt
        return _FRACTION_MAX
    found = _CLOCK.fullmatch(value.literal)
    if found and (found[1] or not days):
        return min(len(found[2] or ""), _FRACTION_MAX)
    if days and _DAY.fullmatch(value.literal):
        return 0
    raise Doubt


def _date(_: Expression, values: list[Result]) -> Result:
    if len(values) != 1 or values[0].kind in ("own", "address"):
        raise Doubt
    return moment("date")


def _time(_: Expression, values: list[Result]) -> Result:
    (value,) = values
    return moment("time", _fraction(value))


def _timestamp(_: Expression, values: list[Result]) -> Result:
    if len(values) == 1:
        return moment("datetime", _fraction(values[0], days=True))
    first, added = values
    return moment("datetime", max(_fraction(first, days=True), _fraction(added)))


def _of_seconds(kind: str) -> Callable[[Expression, list[Result]], Result]:
    def made(_: Expression, values: list[Result]) -> Result:
        (value,) = values
        if value.literal is not None and not value.binary:
            return moment(kind, _FRACTION_MAX)
        return moment(kind, _fraction(value))

    return made


def _seconds(_: Expression, values: list[Result]) -> Result:
    """TIME_TO_SEC, UNIX_TIMESTAMP."""
    scale = _fraction(values[0], days=True) if values else 0
    if scale:
        return decimal(_SECONDS_DIGITS + scale, scale)
    return integer(_SECONDS_LENGTH)


def _clock_seconds(tree: Expression, values: list[Result]) -> Result:
    if values[0].literal is not None and _DAY.fullmatch(values[0].literal):
        raise Doubt
    return _seconds(tree, values)


def _read(tree: Expression, _: list[Result]) -> Result:
    """STR_TO_DATE by its format."""
    written = tree.arguments[1]
    if written.name == "field":
        return moment("datetime", _FRACTION_MAX)
    if written.literal != "string":
        raise Doubt
    marks = {mark for mark in re.findall(r"%(.)", written.text) if mark in _DATE_MARKS | _TIME_MARKS}
    dated, timed = marks & _DATE_MARKS, marks & _TIME_MARKS
    if not timed:
        return moment("date")
    days_only = dated <= {"d", "e", "D", "j"} if dated else False
    if days_only and dated not in ({"d"}, {"e"}):
        raise Doubt
    kind = "datetime" if dated and not days_only else "time"
    return moment(kind, _FRACTION_MAX if "f" in marks else 0)


def _made_time(_: Expression, values: list[Result]) -> Result:
    seconds = values[2]
    if seconds.literal is not None:
        raise Doubt
    return moment("time", _fraction(seconds))


def _shifted(_: Expression, values: list[Result]) -> Result:
    """ADDTIME, SUBTIME."""
    first, added = values
    if not first.temporal:
        raise Doubt
    kind = "time" if first.kind == "time" else "datetime"
    return moment(kind, max(first.scale, _fraction(added)))


def _difference(_: Expression, values: list[Result]) -> Result:
    first, second = values
    return moment("time", max(_fraction(first), _fraction(second)))


def _zoned(_: Expression, values: list[Result]) -> Result:
    """CONVERT_TZ."""
    value = values[0]
    return moment("datetime", 0 if value.kind == "null" else _fraction(value, days=True))


def _added(tree: Expression, values: list[Result]) -> Result:
    start, count = values
    if not start.temporal or (start.kind == "time" and tree.text not in _TIME_UNITS):
        raise Doubt
    if count.kind not in ("int", "decimal") or (count.scale and tree.text != "second"):
        raise Doubt
    if start.kind == "time":
        return moment("time", max(start.scale, min(count.scale, _FRACTION_MAX)))
    scale = _FRACTION_MAX if "microsecond" in tree.text else max(start.scale, min(count.scale, _FRACTION_MAX))
    kind = "date" if start.kind == "date" and tree.text in _WHOLE_DAYS else "datetime"
    return moment(kind, scale if kind != "date" else 0)


def _extracted(tree: Expression, values: list[Result]) -> Result:
    (value,) = values
    unit = tree.text
    if unit not in _UNITS or value.kind in ("own", "null", "address", "bit"):
        raise Doubt
    length = _UNITS[unit]
    if unit in _DAYS_OF_OTHERS:
        if value.kind == "time" and not value.text:
            raise Doubt
        length = length if value.temporal else _DAYS_OF_OTHERS[unit]
    made = integer(length, rank=3 if unit == "day_hour" else 0)
    return replace(made, narrow=unit in _NARROW_UNITS)


_FUNCTIONS: Final[Mapping[str, Callable[[Expression, list[Result]], Result]]] = {
    "date": _date,
    "last_day": _date,
    "from_days": _date,
    "makedate": lambda *_: moment("date"),
    "time": _time,
    "timestamp": _timestamp,
    "sec_to_time": _of_seconds("time"),
    "from_unixtime": _of_seconds("datetime"),
    "time_to_sec": _clock_seconds,
    "unix_timestamp": _seconds,
    "str_to_date": _read,
    "maketime": _made_time,
    "addtime": _shifted,
    "subtime": _shifted,
    "timediff": _difference,
    "convert_tz": _zoned,
    "date_add": _added,
    "extract": _extracted,
}
