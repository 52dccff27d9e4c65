"""Expressions of virtual columns, computed as TiDB computes them.

In:  an expression that was read (schema/ddl/expressions.py), and the SQL value of each column by its name.
Out: an SQL value. UnsupportedValue for a function that isn't known here: nothing is guessed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

from tidegate.errors import DDLError, UnsupportedValue
from tidegate.remedy import REFILL
from tidegate.schema.ddl.expressions import read_expression
from tidegate.tidb.values.operators import (
    and_,
    arithmetic,
    compare,
    comparison,
    divide,
    integer_divide,
    is_,
    modulo,
    numeric,
    or_,
    same,
    truth,
)
from tidegate.tidb.values.sql_value import (
    Dated,
    JsonText,
    Sql,
    TimeSpan,
    dated,
    json_of,
    json_shown,
    number,
    plain_text,
    whole,
)  # fmt: skip

Row = Callable[[str], Sql]
_TO_DAYS_OF_YEAR_ONE: Final = 365
_BITS: Final = (1 << 64) - 1  # numbers that bits are counted in have no sign
_PATH: Final = re.compile(r"\$((?:\.(?:\w+|\"[^\"]*\")|\[\d+\])*)")
_LEG: Final = re.compile(r"\.(?:(\w+)|\"([^\"]*)\")|\[(\d+)\]")


class UnknownExpression(UnsupportedValue):
    """A function or an operand that isn't known here."""


def _unknown(what: str) -> UnknownExpression:
    return UnknownExpression(f"{what} isn't computed here", remedy=REFILL)


@lru_cache(maxsize=4096)
def parsed(text: str) -> Any:
    """An expression's text as TiDB keeps it."""
    try:
        return read_expression(text)
    except DDLError as error:
        raise _unknown(f"the expression {text!r} ({error.what})") from None


def evaluate(node: Any, row: Row) -> Sql:
    """Raises UnsupportedValue."""
    kind = node[0]
    if kind == "column":
        return _constant(node[1]) if node[1] in ("null", "true", "false") else row(node[1])
    if kind == "text":
        return str(node[1])
    if kind == "number":
        text = node[1]
        return int(text) if text.isdigit() else float(text) if "e" in text.lower() else Decimal(text)
    if kind in _LAZY:
        return _LAZY[kind](node, row)
    function = _FUNCTIONS.get(kind)
    if function is None:
        raise _unknown(str(kind).upper())
    arguments = [evaluate(part, row) if isinstance(part, tuple) else part for part in node[1:]]
    try:
        if None in arguments and kind not in _TAKE_NULL:
            return None
        return function(*arguments)
    except (TypeError, ValueError, InvalidOperation, ArithmeticError, AttributeError):
        shown = ", ".join(repr(argument)[:30] for argument in arguments)
        raise _unknown(f"{str(kind).upper()} of {shown}") from None


def _constant(word: str) -> int | None:
    return None if word == "null" else int(word == "true")


# --- functions that don't look at all they are given ----------------------------------------------


def _if(node: Any, row: Row) -> Sql:
    return evaluate(node[2] if truth(evaluate(node[1], row)) else node[3], row)


def _coalesce(node: Any, row: Row) -> Sql:
    return next((value for argument in node[1:] if (value := evaluate(argument, row)) is not None), None)


def _case(node: Any, row: Row) -> Sql:
    words = list(node[1:])
    against = None if words[0] == "WHEN" else words.pop(0)
    while words:
        word = words.pop(0)
        if word == "ELSE":
            return evaluate(words[0], row)
        test, _, result = words.pop(0), words.pop(0), words.pop(0)
        outcome = evaluate(test, row)
        if against is not None:
            value = evaluate(against, row)
            hit = value is not None and outcome is not None and compare(value, outcome) == 0
        else:
            hit = bool(truth(outcome))
        if hit:
            return evaluate(result, row)
    return None


def _in(node: Any, row: Row) -> Sql:
    value = evaluate(node[1], row)
    if value is None:
        return None
    listed = [evaluate(argument, row) for argument in node[2][1:]]
    if any(member is not None and compare(value, member) == 0 for member in listed):
        return 1
    return None if None in listed else 0


_LAZY: Final[Mapping[str, Callable[[Any, Row], Sql]]] = {
    "if": _if, "ifnull": _coalesce, "coalesce": _coalesce, "case": _case, "in": _in,
}  # fmt: skip


# --- texts -----------------------------------------------------------------------------------------


def _substring(text: Sql, start: Sql, count: Sql = 1 << 30) -> Sql:
    characters = plain_text(text)
    at = whole(start)
    if not at or abs(at) > len(characters) or whole(count) <= 0:
        return ""
    first = at - 1 if at > 0 else len(characters) + at
    return characters[first : first + whole(count)]


def _pad(text: Sql, count: Sql, fill: Sql, *, left: bool) -> Sql:
    have, want, more = plain_text(text), whole(count), plain_text(fill)
    if want <= len(have):
        return have[:want]
    if not more:
        return None
    added = (more * want)[: want - len(have)]
    return added + have if left else have + added


def _hex(value: Sql) -> str:
    if isinstance(value, int | Decimal | float):
        return f"{whole(value):X}"
    return (value if isinstance(value, bytes) else plain_text(value).encode()).hex().upper()


def _octets(value: Sql) -> bytes:
    return value if isinstance(value, bytes) else plain_text(value).encode()


def _cast(value: Sql, kind: str = "") -> Sql:
    word = re.split(r"[ (]", kind, maxsplit=1)[0]
    if word in ("signed", "unsigned"):
        integer = whole(value)
        return integer if word == "signed" or integer >= 0 else integer + (1 << 64)
    if word == "char":
        text, size = plain_text(value), re.search(r"\((\d+)\)", kind)
        return text[: int(size[1])] if size else text
    if word == "decimal":
        digits = re.search(r"\((\d+)(?:, *(\d+))?\)", kind)
        scale = int(digits[2] or 0) if digits else 0
        return number(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if word == "double":
        return float(number(value))
    if word == "date":
        at = dated(value).at
        return Dated(at._replace(hour=0, minute=0, second=0, microsecond=0), is_date=True)
    if word == "json":
        return JsonText(json_of(value))
    raise ValueError(kind)


# --- dates -----------------------------------------------------------------------------------------


def _day(value: Sql) -> date:
    at = dated(value).at
    return date(at.year, at.month, at.day)


def to_days(value: Sql) -> int:
    return _day(value).toordinal() + _TO_DAYS_OF_YEAR_ONE


def _seconds(value: Sql) -> int:
    if isinstance(value, TimeSpan):
        size = abs(value.nanoseconds) // 10**9
        return size if value.nanoseconds >= 0 else -size
    at = dated(value).at
    return at.hour * 3600 + at.minute * 60 + at.second


def _unix_timestamp(value: Sql) -> int:
    """Unix seconds of a TIMESTAMP, which is in UTC here."""
    return (_day(value).toordinal() - date(1970, 1, 1).toordinal()) * 86400 + _seconds(value)


# --- JSON ------------------------------------------------------------------------------------------


def _json_extract(document: Sql, *paths: Sql) -> Sql:
    matches = []
    for path in paths:
        tree, legs = json.loads(json_of(document), parse_float=Decimal), _PATH.fullmatch(plain_text(path))
        if legs is None:
            raise ValueError(path)
        for key, quoted_key, index in _LEG.findall(legs[1]):
            name = key or quoted_key
            if index and isinstance(tree, list):
                tree = tree[int(index)] if int(index) < len(tree) else _MISSING
            elif index:
                tree = tree if int(index) == 0 else _MISSING
            else:
                tree = tree.get(name, _MISSING) if isinstance(tree, dict) else _MISSING
            if tree is _MISSING:
                break
        if tree is not _MISSING:
            matches.append(tree)
    if not matches:
        return None
    return JsonText(json_shown(_floats(matches[0] if len(paths) == 1 else matches)))


_MISSING: Final = object()


def _floats(tree: Any) -> Any:
    if isinstance(tree, Decimal):
        return float(tree)
    if isinstance(tree, list):
        return [_floats(member) for member in tree]
    return {key: _floats(member) for key, member in tree.items()} if isinstance(tree, dict) else tree


def _json_length(document: Sql) -> Sql:
    tree = json.loads(json_of(document))
    return len(tree) if isinstance(tree, list | dict) else 1


def _json_unquote(value: Sql) -> Sql:
    text = plain_text(value)
    return str(json.loads(text)) if text[:1] == text[-1:] == '"' and len(text) > 1 else text


def _rounded(mode: str) -> Callable[..., Sql]:
    def compute(value: Sql, digits: Sql = 0) -> Sql:
        rounded = number(value).quantize(Decimal(1).scaleb(-whole(digits)), mode)
        if isinstance(value, float):
            return float(rounded)
        return int(rounded) if isinstance(value, int) or not whole(digits) else rounded

    return compute


def _least(*values: Sql) -> Sql:
    least: Sql = min(values, key=numeric)
    return least


def _whole_by(mode: str) -> Callable[[Sql], int]:
    return lambda value: int(number(value).to_integral_value(mode))


def _absolute(value: Sql) -> Sql:
    absolute: int | Decimal | float = abs(numeric(value))  # type: ignore[assignment]  # of one of the three
    return absolute


def _greatest(*values: Sql) -> Sql:
    greatest: Sql = max(values, key=numeric)
    return greatest


def _nullif(left: Sql, right: Sql) -> Sql:
    return None if left is None or (right is not None and compare(left, right) == 0) else left


def _concat_ws(separator: Sql, *parts: Sql) -> Sql:
    if separator is None:
        return None
    return plain_text(separator).join(plain_text(part) for part in parts if part is not None)


def _digest(name: str) -> Callable[[Sql], str]:
    return lambda value: hashlib.new(name, _octets(value), usedforsecurity=False).hexdigest()


_TAKE_NULL: Final = frozenset({"<=>", "and", "or", "is", "isnull", "nullif", "concat_ws"})
_FUNCTIONS: Final[Mapping[str, Callable[..., Sql]]] = {
    "+": arithmetic(lambda a, b: a + b), "*": arithmetic(lambda a, b: a * b), "/": divide, "div": integer_divide,
    "%": modulo, "-": lambda a, *b: arithmetic(lambda x, y: x - y)(a, b[0]) if b else -numeric(a),
    "=": comparison(lambda n: n == 0), "<>": comparison(lambda n: n != 0), "<": comparison(lambda n: n < 0),
    "<=": comparison(lambda n: n <= 0), ">": comparison(lambda n: n > 0), ">=": comparison(lambda n: n >= 0),
    "<=>": same, "and": and_, "or": or_, "is": is_, "not": lambda a: int(not truth(a)),
    "!": lambda a: int(not truth(a)), "xor": lambda a, b: int(truth(a) != truth(b)),
    "between": lambda a, b, c: int(compare(a, b) >= 0 >= compare(a, c)),
    "&": lambda a, b: whole(a) & whole(b) & _BITS, "|": lambda a, b: (whole(a) | whole(b)) & _BITS,
    "^": lambda a, b: (whole(a) ^ whole(b)) & _BITS,
    "concat": lambda *parts: "".join(map(plain_text, parts)),
    "concat_ws": _concat_ws,
    "lower": lambda a: plain_text(a).lower(), "upper": lambda a: plain_text(a).upper(),
    "length": lambda a: len(_octets(a)), "char_length": lambda a: len(plain_text(a)), "substr": _substring,
    "left": lambda a, n: plain_text(a)[: max(whole(n), 0)],
    "right": lambda a, n: plain_text(a)[-whole(n) :] if whole(n) > 0 else "",
    "trim": lambda a: plain_text(a).strip(" "), "ltrim": lambda a: plain_text(a).lstrip(" "),
    "rtrim": lambda a: plain_text(a).rstrip(" "), "reverse": lambda a: plain_text(a)[::-1],
    "replace": lambda a, b, c: plain_text(a).replace(plain_text(b), plain_text(c)) if plain_text(b) else a,
    "repeat": lambda a, n: plain_text(a) * max(whole(n), 0), "lpad": lambda a, n, b: _pad(a, n, b, left=True),
    "rpad": lambda a, n, b: _pad(a, n, b, left=False), "hex": _hex, "md5": _digest("md5"),
    "sha": _digest("sha1"), "ascii": lambda a: (_octets(a) or b"\0")[0],
    "abs": _absolute, "floor": _whole_by(ROUND_FLOOR),
    "ceiling": _whole_by(ROUND_CEILING), "round": _rounded(ROUND_HALF_UP),
    "greatest": _greatest, "least": _least, "mod": modulo,
    "nullif": _nullif, "isnull": lambda a: int(a is None),
    "year": lambda a: dated(a).at.year, "month": lambda a: dated(a).at.month, "dayofmonth": lambda a: dated(a).at.day,
    "quarter": lambda a: (dated(a).at.month + 2) // 3, "to_days": to_days, "weekday": lambda a: _day(a).weekday(),
    "dayofweek": lambda a: _day(a).isoweekday() % 7 + 1, "dayofyear": lambda a: _day(a).timetuple().tm_yday,
    "hour": lambda a: abs(_seconds(a)) // 3600, "minute": lambda a: abs(_seconds(a)) // 60 % 60,
    "second": lambda a: abs(_seconds(a)) % 60, "time_to_sec": _seconds, "unix_timestamp": _unix_timestamp,
    "to_seconds": lambda a: to_days(a) * 86400 + _seconds(a), "date": lambda a: _cast(a, "date"),
    "datediff": lambda a, b: to_days(a) - to_days(b), "cast": _cast, "json_extract": _json_extract,
    "json_unquote": _json_unquote, "json_length": _json_length,
}  # fmt: skip
