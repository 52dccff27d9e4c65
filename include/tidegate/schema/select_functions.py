"""Types of expressions, function by function, as MariaDB gives them.

In:  an Expression, the columns that its names mean.
Out: its Result. A function that isn't listed, and what depends on the session (its character set), is Doubt.

Lengths and signs: fix_length_and_dec of each Item in MariaDB's sql/item_*.cc, checked against 10.11 and 11.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tidegate.errors import DDLError
from tidegate.schema.ddl.tokens import LENGTH_DIGITS
from tidegate.schema.select_casts import cast
from tidegate.schema.select_collations import BINARY, COERCIBLE, Session
from tidegate.schema.select_expressions import Doubt, Expression
from tidegate.schema.select_hybrid import as_addresses, extreme, together
from tidegate.schema.select_moments import moments
from tidegate.schema.select_numbers import BIGINT_DIGITS, arithmetic, division, negative, numeric, spread
from tidegate.schema.select_strings import collated, recoded, text
from tidegate.schema.select_types import (
    NULL,
    UNFIXED,
    Result,
    boolean,
    decimal,
    double,
    integer,
    moment,
    octets,
)

Lookup = Callable[[Expression], Result]
_NEWER_SINCE: Final = 110000  # rules seen on 11.4; those of before on 10.11
_CHAR_MAX: Final = 255
_VARYING_BYTES_MAX: Final = 60000  # a little longer, and it is a TEXT
_INT_DIGITS: Final = 9  # the longest literal that is an INT whatever its digits
_WORDS: Final = 9
_COMPARISONS: Final = frozenset({"=", ">=", "<=", "<>", "!=", ">", "<", "like", "regexp", "rlike"})
_ALWAYS_KNOWN: Final = frozenset({"<=>", "is", "isnull", "exists"})
_LOGIC: Final = frozenset({"and", "&&", "or", "||", "xor", "not", "between", "in"})
_BITS: Final = frozenset({"&", "|", "^", "~", "<<", ">>"})
_RATIO: Final = {"std", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"}
_DIVISIONS: Final = _RATIO | {"/", "avg"}  # which have digits by div_precision_increment
# (shown length, unsigned): NULL only when an argument is.
_COUNTS: Final[Mapping[str, tuple[int, bool]]] = {
    "length": (10, False), "octet_length": (10, False), "char_length": (10, False), "character_length": (10, False),
    "ascii": (3, False), "ord": (7, False), "locate": (11, False), "instr": (11, False), "bit_length": (11, False),
    "strcmp": (2, False), "sign": (2, False), "bit_count": (2, False), "crc32": (10, True),
    "regexp_instr": (11, False), "find_in_set": (3, False), "coercibility": (10, False),
    "period_add": (6, False), "period_diff": (6, False),
}  # fmt: skip
# Shown length: always NULL where a date can't be read.
_PARTS: Final[Mapping[str, int]] = {
    "to_days": 7, "to_seconds": 12, "year": 5, "month": 3, "day": 3, "dayofmonth": 3, "dayofyear": 4,
    "hour": 3, "minute": 3, "second": 3, "microsecond": 7, "quarter": 2, "week": 3, "yearweek": 6,
    "weekofyear": 3, "datediff": 8, "timestampdiff": 21,
}  # fmt: skip
_WIDE_PARTS: Final = frozenset({"to_seconds", "yearweek", "datediff", "timestampdiff"})
_MOMENTS: Final[Mapping[str, str]] = {
    "current_date": "date", "curdate": "date", "utc_date": "date", "now": "datetime", "current_timestamp": "datetime",
    "localtime": "datetime", "localtimestamp": "datetime", "sysdate": "datetime", "utc_timestamp": "datetime",
    "current_time": "time", "curtime": "time", "utc_time": "time",
}  # fmt: skip
_DOUBLES: Final = frozenset(
    {"sqrt", "pow", "power", "exp", "ln", "log", "log2", "log10", "sin", "cos", "tan", "cot", "acos", "asin", "atan"}
    | {"atan2", "degrees", "radians"}
)
# Whatever their arguments are.
_PLAIN: Final[Mapping[str, Result]] = {
    "pi": double(nullable=False, scale=6, length=8),
    "uuid_short": integer(21, unsigned=True, nullable=False, digits=20),
    "last_insert_id": integer(21, unsigned=True, nullable=False, digits=20),
    "inet_aton": integer(21, unsigned=True),
}
_NUMBERED: Final = frozenset({"row_number", "rank", "dense_rank", "ntile"})


def result(tree: Expression, column: Lookup, session: Session) -> Result:
    """column: the value of a "field". Raises Doubt."""
    try:
        return _Types(column, session).of(tree)
    except (IndexError, ValueError, TypeError, DDLError) as error:
        raise Doubt from error  # arguments that the server doesn't take


def _whole_number(text: str) -> Result:
    digits = len(text)
    if text.startswith("0") and digits > BIGINT_DIGITS:
        raise Doubt
    if digits > LENGTH_DIGITS or int(text) >= 1 << 64:
        return decimal(digits, 0, nullable=False)
    rank, unsigned = 3 if digits <= _INT_DIGITS else 4, int(text) >= 1 << 63
    return Result("int", length=digits, digits=digits, rank=rank, unsigned=unsigned, written=True)


def united(values: Sequence[Result], session: Session) -> Result:
    """Of a column of a UNION, from the values of its queries. Raises Doubt."""
    return _Types(_no_column, session).united(values)


def _varying(made: Result, texts: Sequence[Result]) -> Result:
    """A UNION's VARCHAR stays one, however long. Raises Doubt."""
    if made.kind != "string" or made.large:
        return made
    if any(not value.charset or octets(value) > _VARYING_BYTES_MAX for value in texts):
        raise Doubt
    if not made.length or octets(made) > _VARYING_BYTES_MAX:
        raise Doubt
    return replace(made, text=f"{'varbinary' if made.binary else 'varchar'}({made.length})")


def _no_column(_: Expression) -> Result:
    raise Doubt


class _Types:
    def __init__(self, column: Lookup, session: Session) -> None:
        self.column = column
        self.session = session
        self.newer = session.server.number >= _NEWER_SINCE

    def of(self, tree: Expression) -> Result:
        name = tree.name
        if name == "field":
            return self.column(tree)
        if name == "literal":
            return self._literal(tree)
        if name in _MOMENTS:
            return self._now(tree)
        if name == "connection_id":
            return integer(10, unsigned=True, nullable=False, rank=3)
        if name in ("count", "bit_and", "bit_or", "bit_xor"):
            return integer(21, unsigned=name != "count", nullable=False)
        if name in _PLAIN:
            return _PLAIN[name]
        if name == "exists":
            return boolean(nullable=False)
        if name in _NUMBERED:
            raise Doubt  # without OVER it isn't theirs
        if name == "over":
            inner = tree.arguments[0]
            if inner.name in _NUMBERED:
                return integer(21, nullable=False)
            if inner.name in ("count", "sum", "avg", "min", "max"):
                found = self.of(inner)
                fixed = found.text.startswith(("char", "binary")) or found.text.endswith("zerofill") or found.listed
                counted = found.kind == "int" and inner.name in ("min", "max") and inner.arguments[0].name != "field"
                counted = counted or found.large or (found.kind in ("float", "double") and found.scale != UNFIXED)
                if found.kind != "own" and found.text != "tinyint(1)" and not fixed and not counted:
                    return found
            raise Doubt
        if name in _DIVISIONS and not self.session.told.usual_division:
            raise Doubt
        values = [self.of(argument) for argument in tree.arguments]
        made = self._operator(tree, values) or self._function(tree, values)
        if made is None:
            raise Doubt
        return made

    def _literal(self, tree: Expression) -> Result:
        if tree.literal == "string":
            return _literal_string(tree.text, self.session)
        if self.newer and tree.literal == "bool":
            return boolean(nullable=False)
        return _LITERALS[tree.literal](tree.text)

    def _now(self, tree: Expression) -> Result:
        kind, scale = _MOMENTS[tree.name], 0
        if tree.arguments:
            given = tree.arguments[0]
            if given.literal != "int" or kind == "date":
                raise Doubt
            scale = int(given.text)
        return moment(kind, scale, nullable=False)

    def _operator(self, tree: Expression, values: list[Result]) -> Result | None:
        name, nullable = tree.name, any(value.nullable for value in values)
        if name in _ALWAYS_KNOWN:
            return boolean(nullable=False)
        if name == "not" and tree.arguments[0].literal:
            raise Doubt  # the server turns it round at once
        if name in _COMPARISONS or name in _LOGIC:
            return boolean(nullable=nullable)
        if name in _BITS:
            return integer(21, unsigned=True, nullable=nullable)
        if name in ("+", "-", "*"):
            return arithmetic(name, *values).may_be_null(nullable)
        if name in ("/", "div", "%", "mod") and len(values) == 2:
            return division("%" if name == "mod" else name, *values)
        if name == "neg":
            return negative(tree.arguments[0], values[0])
        if name == "cast":
            if self.newer and tree.arguments[0].literal == "int":
                raise Doubt
            return cast(tree, values[0], self.session)
        if name == "using":
            return recoded(tree, values[0], self.session)
        if name == "collate":
            return collated(tree, values[0], self.session)
        if name == ":=":
            return _assigned(values[0])
        return None

    def _together(self, values: Sequence[Result], *, null_is_signed: bool = False) -> Result:
        if self.newer:
            known = [value for value in values if value.kind != "null"]
            if all(value.written and not value.text for value in known):
                raise Doubt  # literals among themselves: with or without room for a sign
            if all(value.kind == "int" for value in known) and any(
                (value.written and not value.text) or value.boolean for value in known
            ):
                raise Doubt  # so are a literal and what is true or false beside other whole numbers
            if len(known) < len(values) and any(value.unsigned for value in known):
                raise Doubt  # NULL counts as signed in some of the functions
        return together(values, self.session, null_is_signed=null_is_signed)

    def united(self, values: Sequence[Result]) -> Result:
        values = as_addresses(values)
        known = [value for value in values if value.kind != "null"]
        nullable = any(value.nullable for value in values)
        kinds = {value.kind for value in known}
        if ("bit" in kinds and len(kinds) > 1) or any(value.text in ("char(0)", "binary(0)") for value in known):
            raise Doubt
        if len(known) < len(values) and any(value.listed for value in known):
            if len(known) > 1:
                raise Doubt
            return known[0].may_be_null()
        made = self._together(values, null_is_signed=True).may_be_null(nullable)
        texts = [value for value in known if value.kind == "string"]
        fixed = [value for value in texts if value.text.startswith(("char(", "binary("))]
        if not fixed or not all(value in fixed or value.listed for value in texts):
            return _varying(made, texts)
        if made.length > _CHAR_MAX or len(texts) < len(known):
            raise Doubt  # beside what is no text it hangs on the order
        return replace(made, text=f"{'binary' if made.binary else 'char'}({made.length})")

    def _function(self, tree: Expression, values: list[Result]) -> Result | None:
        name, nullable = tree.name, any(value.nullable for value in values)
        if name in ("coalesce", "ifnull", "nvl", "results", "if", "nvl2"):
            values = [*values[:1], *as_addresses(values[1:])] if name in ("if", "nvl2") else as_addresses(values)
            nullable = any(value.nullable for value in values)
        if name in ("coalesce", "ifnull", "nvl"):
            found = self._together(values, null_is_signed=True)
            if not self.newer:
                return found.may_be_null(all(value.nullable for value in values))
            return found.may_be_null(nullable if name == "coalesce" else values[-1].nullable)
        if name == "results":
            return self._together(values)
        if name == "case":
            return values[0].may_be_null(nullable)
        if name in ("if", "nvl2") and len(values) == 3:
            return self._together(values[1:]).may_be_null(nullable)
        if name == "sleep":
            return integer(1, nullable=nullable, digits=1)
        if name == "rand" and not values:
            return double(nullable=False)
        if name == "nullif":
            return _nullif(values[0])
        if name in ("least", "greatest"):
            return extreme(values, self._together)
        if name in _COUNTS:
            length, unsigned = _COUNTS[name]
            return integer(length, unsigned=unsigned, nullable=nullable, rank=4 if name == "bit_length" else 3)
        if name in ("dayofweek", "weekday"):
            return Result("own", nullable=True, text="int(1)")
        if name in _PARTS:
            return replace(integer(_PARTS[name]), narrow=name not in _WIDE_PARTS)
        if name in _DOUBLES:
            return double(nullable=nullable or name not in ("degrees", "radians"))
        if name in ("sum", "avg") and tree.arguments[0].name == ":=":
            raise Doubt  # the digits of a variable are sometimes the value's, sometimes one more
        if name in ("abs", "ceil", "ceiling", "floor", "round", "truncate", "sum", "avg", "min", "max"):
            return numeric(name, tree, values)
        if name in _RATIO and not tree.arguments[0].literal and tree.arguments[0].name not in (":=", "div"):
            return spread(values[0])
        return moments(tree, values) or text(tree, values, self.session)


def _literal_decimal(text: str) -> Result:
    """The server keeps 9 words of 9 digits each, and cuts behind the point what doesn't fit."""
    whole, _, rest = text.partition(".")
    behind, words = len(rest), -(-len(whole) // 9)
    if words + -(-behind // 9) > _WORDS:
        behind = min(behind, max(_WORDS - words, 0) * 9)
    return Result("decimal", nullable=False, digits=len(whole) + behind, scale=behind)


# A month or a day of zero: under some sql_mode that is NULL.
_ZERO_PART: Final = re.compile(r"^\s*\d+[^\d]+(?:0+\b|\d+[^\d]+0+\b)|^\s*\d{4}(?:00|\d\d00)")


def _literal_time(kind: str) -> Callable[[str], Result]:
    def made(text: str) -> Result:
        nullable = kind != "time" and _ZERO_PART.search(text) is not None
        return moment(kind, min(len(text.partition(".")[2]), 6), nullable=nullable)

    return made


def _literal_string(written: str, session: Session) -> Result:
    if not written.isascii():
        raise Doubt
    return Result(
        "string",
        length=len(written),
        charset=session.told.charset,
        collation=session.told.collation,
        derivation=COERCIBLE,
        ascii=True,
        written=True,
        literal=written,
    )


_LITERALS: Final[Mapping[str, Callable[[str], Result]]] = {
    "int": _whole_number,
    "decimal": _literal_decimal,
    "double": lambda text: double(nullable=False, length=len(text)),
    "hex": lambda text: Result(
        "string",
        length=(len(text) + 1) // 2,
        charset=BINARY,
        collation=BINARY,
        derivation=COERCIBLE,
        literal="\0" * ((len(text) + 1) // 2),
    ),
    "null": lambda _: NULL,
    "bool": lambda _: Result("int", length=5, digits=5, boolean=True),
    "date": _literal_time("date"),
    "time": _literal_time("time"),
    "datetime": _literal_time("datetime"),
}


def _assigned(value: Result) -> Result:
    if value.kind == "int":
        return integer(value.length, unsigned=value.unsigned, nullable=value.nullable)
    if value.kind == "decimal":
        return decimal(value.digits, value.scale, nullable=value.nullable, unsigned=value.unsigned)
    if value.kind in ("double", "float"):
        return double(nullable=value.nullable, scale=value.scale, length=value.length)
    if value.kind == "string" and value.length:
        return replace(value, text="", large=False, listed=False, written=False, literal=None)
    raise Doubt


def _nullif(value: Result) -> Result:
    if value.kind in ("null", "own") or value.boolean:
        raise Doubt
    if value.kind in ("int", "decimal") or (value.kind == "string" and not value.text.startswith("tiny")):
        return replace(value, text="", nullable=True, literal=None)
    return value.may_be_null()
