"""Types of functions that give strings, as MariaDB gives them.

In:  a call, the Results of its arguments, the session.
Out: a Result; None for a function that isn't of these. Raises Doubt where the type isn't certain.

Lengths: fix_length_and_dec of each Item in MariaDB's sql/item_strfunc.cc, checked against 10.11 and 11.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tidegate.schema.model.charsets import bytes_per_character, collation_pair, default_collation, shown_charset
from tidegate.schema.select_collations import (
    BINARY,
    BYTES,
    COERCIBLE,
    EXPLICIT,
    SYSTEM,
    Collated,
    Session,
    aggregate,
)
from tidegate.schema.select_expressions import Doubt, Expression
from tidegate.schema.select_types import (
    LONGEST,
    Result,
    made_string,
    octets,
    shown_length,
    string_nullable,
)

_FUNCTION_BYTES_MAX: Final = 1 << 24
_NO_LENGTH: Final = 0xFFFFFFFF  # what the server takes for a length that isn't written
_KEPT: Final = frozenset({"upper", "ucase", "lower", "lcase", "trim", "ltrim", "rtrim", "reverse"})
# Characters of functions that give plain words, in the session's character set.
_WORDS: Final[Mapping[str, int]] = {
    "md5": 32, "sha": 40, "sha1": 40, "password": 41, "conv": 65, "bin": 65, "oct": 65, "inet_ntoa": 31,
    "inet6_ntoa": 39,
}  # fmt: skip
_FAILING_WORDS: Final = frozenset({"conv", "bin", "oct", "inet_ntoa", "inet6_ntoa"})
_SYSTEM_WORDS: Final[Mapping[str, int]] = {
    "user": 384, "session_user": 384, "system_user": 384, "database": 64, "schema": 64,
}  # fmt: skip
_DOUBLE_DIGITS: Final = 310  # of a DOUBLE without its exponent
_FLOAT_DIGITS: Final = 40
_BINARY_MAX: Final = 255
_VARBINARY_MAX: Final = 65533
_MEDIUMINT_RANK: Final = 2
_INT_RANK: Final = 3
_FORMAT_PLACES_MAX: Final = 38
_NUMBERS: Final = frozenset({"int", "decimal", "double", "float"})


def text(tree: Expression, values: list[Result], session: Session) -> Result | None:
    """Raises Doubt."""
    name = tree.name
    if name in _KEPT and len(values) == 1:
        return _of_all(values, shown_length(values[0]), session)
    if name in _WORDS:
        return _word(None if name in _FAILING_WORDS else values, _WORDS[name], session)
    if name in _SYSTEM_WORDS:
        if values:
            raise Doubt
        return _system_word(name, values, session)
    made = _FUNCTIONS.get(name)
    if made is None or any(value.kind == "own" for value in values):
        return None
    return made(tree, values, session)


def _of_all(values: Sequence[Result], length: int, session: Session, among: Sequence[Result] | None = None) -> Result:
    """A string in the character set that `among` come to, NULL as any of the values."""
    texts = values if among is None else among
    part = aggregate([value.collated for value in texts], session)
    if length > LONGEST:
        raise Doubt
    if part.charset == BINARY and any(octets(value) != shown_length(value) for value in texts):
        raise Doubt
    return made_string(part, length, nullable=string_nullable(values, session))


def _word(values: Sequence[Result] | None, length: int, session: Session) -> Result:
    """values: what it is NULL with; None when it may be whatever they are."""
    return made_string(session.plain, length, nullable=values is None or string_nullable(values, session))


def _system_word(name: str, values: list[Result], session: Session) -> Result:
    charset = shown_charset("utf8", session.server)
    nullable = name in ("database", "schema") or string_nullable(values, session)
    return made_string(Collated(charset, f"{charset}_general_ci", SYSTEM), _SYSTEM_WORDS[name], nullable=nullable)


def whole(tree: Expression) -> int | None:
    """What an argument is that is written as a whole number; None for any other."""
    if tree.name == "neg" and tree.arguments[0].literal == "int":
        return -int(tree.arguments[0].text)
    return int(tree.text) if tree.literal == "int" else None


def _concat(tree: Expression, values: list[Result], session: Session) -> Result:
    del tree
    return _of_all(values, sum(shown_length(value) for value in values), session)


def _concat_ws(tree: Expression, values: list[Result], session: Session) -> Result:
    del tree
    joined = shown_length(values[0]) * (len(values) - 2) + sum(shown_length(value) for value in values[1:])
    return _of_all(values, joined, session)


def _side(tree: Expression, values: list[Result], session: Session) -> Result:
    """LEFT, RIGHT."""
    length = shown_length(values[0])
    count = whole(tree.arguments[1])
    if count is None:
        raise Doubt
    return _of_all(values, min(max(count, 0), length), session, values[:1])


def _part(tree: Expression, values: list[Result], session: Session) -> Result:
    """SUBSTR."""
    length = octets(values[0])  # the server takes bytes for characters
    if length == LONGEST:
        raise Doubt
    start = whole(tree.arguments[1])
    if start is not None:
        length = max(length - start + 1, 0) if start > 0 else -start if -start <= length else 0
    if len(values) > 2:
        count = whole(tree.arguments[2])
        if count is not None:
            length = min(length, max(count, 0))
    return _of_all(values, length, session, values[:1])


def _repeat(tree: Expression, values: list[Result], session: Session) -> Result:
    count = whole(tree.arguments[1])
    if count is None:
        if tree.arguments[1].name != "field":
            raise Doubt
        return _longest(_of_all(values, 0, session, values[:1])).may_be_null()
    length = shown_length(values[0]) * max(count, 0)
    return _of_all(values, length, session, values[:1])


def _pad(tree: Expression, values: list[Result], session: Session) -> Result:
    count = whole(tree.arguments[1])
    if count is None or not 0 <= count <= 512 or (len(values) == 2 and values[0].binary):
        raise Doubt
    made = _of_all(values, count, session, [values[0], *values[2:]])
    return made.may_be_null(made.nullable or (len(values) > 2 and _changes(tree.arguments[2])))


def _space(tree: Expression, values: list[Result], session: Session) -> Result:
    count = whole(tree.arguments[0])
    if count is None:
        raise Doubt
    return _word(values, max(count, 0), session)


def _changes(tree: Expression) -> bool:
    """Whether an argument hangs on the row. Raises Doubt."""
    if tree.literal:
        return False
    if tree.name == "field" or any(argument.name == "field" for argument in tree.arguments):
        return True
    raise Doubt


def _inserted(tree: Expression, values: list[Result], session: Session) -> Result:
    del tree
    length = shown_length(values[0]) + shown_length(values[3])
    return _of_all(values, length, session, [values[0], values[3]])


def _longest(made: Result) -> Result:
    """As long as a function's text can be (MAX_BLOB_WIDTH). Raises Doubt."""
    width = bytes_per_character(made.charset) if made.charset else 3
    if _FUNCTION_BYTES_MAX % width:
        raise Doubt
    return replace(made, length=_FUNCTION_BYTES_MAX // width)


def _regexp_replace(tree: Expression, values: list[Result], session: Session) -> Result:
    made = _longest(_of_all(values, 0, session, values[:3]))
    return made.may_be_null(made.nullable or _changes(tree.arguments[1]))


def _regexp_substr(tree: Expression, values: list[Result], session: Session) -> Result:
    made = _of_all(values, shown_length(values[0]), session, values[:2])
    return made.may_be_null(made.nullable or _changes(tree.arguments[1]))


def _before_or_after(tree: Expression, values: list[Result], session: Session) -> Result:
    """SUBSTRING_INDEX."""
    del tree
    return _of_all(values, shown_length(values[0]), session, values[:2])


def _quoted(tree: Expression, values: list[Result], session: Session) -> Result:
    del tree
    if values[0].kind != "string" or values[0].length <= 1:
        raise Doubt
    return _of_all(values, shown_length(values[0]) * 2 + 2, session)


def _characters(tree: Expression, values: list[Result], session: Session) -> Result:
    del tree
    nullable = string_nullable(values, session)
    return made_string(replace(BYTES, derivation=COERCIBLE), 4 * len(values), nullable=nullable)


def _hex(tree: Expression, values: list[Result], session: Session) -> Result:
    del tree
    value = values[0]
    if value.kind in _NUMBERS or value.large or value.kind in ("bit", "null"):
        raise Doubt  # of numbers: 16 digits, or twice what they show, by version
    return _word(values, octets(value) * 2, session)


def _unhex(tree: Expression, values: list[Result], session: Session) -> Result:
    del tree, session
    if values[0].large or values[0].kind in ("bit", "null"):
        raise Doubt
    length = (octets(values[0]) + 1) // 2
    return made_string(replace(BYTES, derivation=COERCIBLE), length, nullable=True)


def _formatted(tree: Expression, values: list[Result], session: Session) -> Result:
    """FORMAT: room for a comma before every third digit, for the point and for what is behind it."""
    places = whole(tree.arguments[1])
    places = _FORMAT_PLACES_MAX if places is None else min(max(places, 0), _FORMAT_PLACES_MAX)
    digits = _notation_digits(values[0], places)
    length = digits + digits // 3 + 1 + (places + 1 if places else 0)
    return _word(values, length, session)


def _notation_digits(value: Result, places: int) -> int:
    """The most digits before the point. places: of digits behind it."""
    carry = value.scale > places
    if value.temporal:
        return value.digits - value.scale + carry
    match value.kind:
        case "decimal":
            return max(value.digits - value.scale + carry, 1)
        case "year":
            return 4
        case "int" if value.rank < _INT_RANK:
            return value.digits - (value.rank == _MEDIUMINT_RANK and not value.unsigned)
        case "int":
            return 10 if value.rank <= _INT_RANK else 20 if value.unsigned else 19
        case "double":
            return _DOUBLE_DIGITS - (not carry)
        case "float":
            return _FLOAT_DIGITS - (not carry)
        case "string" if not value.listed and value.written and not value.binary:
            return _DOUBLE_DIGITS
    raise Doubt


def _random(tree: Expression, values: list[Result], session: Session) -> Result:
    del values, session
    count = whole(tree.arguments[0])
    if count is None or not 0 <= count <= 1024:
        raise Doubt
    return made_string(replace(BYTES, derivation=COERCIBLE), count, nullable=True)


def recoded(tree: Expression, value: Result, session: Session) -> Result:
    """CONVERT(... USING charset)."""
    if value.kind in ("own", "bit"):
        raise Doubt
    charset = shown_charset(tree.text, session.server)
    part = Collated(charset, default_collation(charset, session.server))
    return made_string(part, shown_length(value), nullable=string_nullable([value], session))


def collated(tree: Expression, value: Result, session: Session) -> Result:
    """... COLLATE collation."""
    if value.kind != "string" or value.binary:
        raise Doubt
    charset, collation = collation_pair(tree.text, value.charset, session.server)
    if value.charset and charset != value.charset:
        raise Doubt
    part = Collated(charset, collation, EXPLICIT, value.ascii)
    return made_string(part, value.length, nullable=string_nullable([value], session))


def cast_binary(value: Result, size: int | None, session: Session) -> Result:
    """CAST(... AS BINARY). size: None when it isn't written."""
    nullable = string_nullable([value], session)
    if size is None or size == _NO_LENGTH:
        if value.kind == "string" and not value.binary:
            if not value.charset:
                raise Doubt
            length = value.length * bytes_per_character(value.charset)
        else:
            length = _address_bytes(value) if value.kind == "address" else shown_length(value)
    else:
        length = size
    if value.kind == "address" and length < _VARBINARY_MAX:
        kind = "binary" if length <= _BINARY_MAX else "varbinary"
        return replace(made_string(BYTES, length, nullable=nullable), text=f"{kind}({length})")
    return made_string(BYTES, length, nullable=nullable)


def _address_bytes(value: Result) -> int:
    return 4 if value.text == "inet4" else 16


def cast_char(value: Result, size: int | None, charset: str, session: Session) -> Result:
    """CAST(... AS CHAR [CHARACTER SET x])."""
    if charset:
        shown = shown_charset(charset, session.server)
        part = Collated(shown, default_collation(shown, session.server))
    else:
        part = Collated(session.told.charset, session.told.collation)
    if value.kind in ("own", "bit"):
        raise Doubt
    length = shown_length(value) if size is None or size == _NO_LENGTH else size
    return replace(made_string(part, length, nullable=string_nullable([value], session)), narrow=True)


_FUNCTIONS: Final[Mapping[str, Callable[[Expression, list[Result], Session], Result]]] = {
    "concat": _concat,
    "concat_ws": _concat_ws,
    "left": _side,
    "right": _side,
    "substr": _part,
    "substring": _part,
    "mid": _part,
    "repeat": _repeat,
    "lpad": _pad,
    "rpad": _pad,
    "space": _space,
    "insert": _inserted,
    "regexp_replace": _regexp_replace,
    "regexp_substr": _regexp_substr,
    "substring_index": _before_or_after,
    "quote": _quoted,
    "char": _characters,
    "hex": _hex,
    "unhex": _unhex,
    "format": _formatted,
    "random_bytes": _random,
}
