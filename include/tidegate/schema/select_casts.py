"""Types of CAST, as MariaDB gives them.

In:  a cast's Expression, the Result of what it casts.
Out: a Result. Raises Doubt where the type isn't certain.

Rules: Item_typecast and its kin in MariaDB's sql/item_func.cc and sql/item_timefunc.cc, checked against 10.11 and 11.4.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from tidegate.schema.select_collations import Session
from tidegate.schema.select_expressions import Doubt, Expression
from tidegate.schema.select_hybrid import as_addresses
from tidegate.schema.select_strings import cast_binary, cast_char
from tidegate.schema.select_types import (
    ADDRESSES,
    DIGITS_MAX,
    SCALE_MAX,
    UNFIXED,
    Result,
    decimal,
    integer,
    moment,
    shown_length,
)

_UNSIGNED_INT_LENGTH: Final = 10
_BIGINT_LENGTH: Final = 20
_CAST: Final = re.compile(
    r"([a-z0-9]+)(?:\s+(?:integer|int))?\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?(?:\s+(?:character\s+set|charset)\s+(\w+))?"
)


def cast(tree: Expression, value: Result, session: Session) -> Result:
    """CAST(value AS tree.text). Raises Doubt."""
    found = _CAST.fullmatch(tree.text)
    if found is None:
        raise Doubt
    name, size, scale = found[1], int(found[2] or 0), int(found[3] or 0)
    if name in ("char", "nchar"):
        charset = "utf8" if name == "nchar" else found[4] or ""
        return cast_char(value, size if found[2] else None, charset, session)
    if found[4]:
        raise Doubt
    if name in ("date", "datetime", "time"):
        return moment(name, size)
    if name in ("decimal", "dec", "numeric") and 0 <= scale <= (size or 10) <= DIGITS_MAX:
        return decimal(size or 10, scale, nullable=value.nullable)
    if name in ("double", "float") and not size:
        return Result(name, nullable=True, length=12 if name == "float" else 22, scale=UNFIXED)
    if name == "binary":
        return cast_binary(value, size if found[2] else None, session)
    if name in ("signed", "unsigned", "integer", "int"):
        return _whole(name == "unsigned", value)
    if name in ADDRESSES and not found[2]:
        kind = Result("address", text=name, length=ADDRESSES[name])
        return replace(kind, nullable=as_addresses([kind, value])[1].nullable)
    raise Doubt


def _whole(unsigned: bool, value: Result) -> Result:
    """CAST AS SIGNED or UNSIGNED."""
    if value.kind == "int" and value.written and not (value.text and value.unsigned != unsigned):
        rank = 3 if unsigned and value.length <= _UNSIGNED_INT_LENGTH else 0
        return integer(value.length, unsigned=unsigned, nullable=value.nullable, digits=value.digits, rank=rank)
    if value.kind in ("own", "bit", "null", "address", "int", "year") or value.binary or value.listed or value.large:
        raise Doubt
    if value.unsigned or value.kind in ("timestamp", "decimal"):
        raise Doubt
    if value.kind == "string" and not value.length:
        raise Doubt
    if unsigned:
        return integer(_BIGINT_LENGTH, unsigned=True, nullable=value.nullable)
    length = _BIGINT_LENGTH if value.kind in ("float", "double") else shown_length(value)
    if length > _BIGINT_LENGTH or value.scale == SCALE_MAX:
        raise Doubt
    return integer(max(length, 2), nullable=value.nullable)
