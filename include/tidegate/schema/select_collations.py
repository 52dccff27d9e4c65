"""The character set of a string that is made of several, as MariaDB settles it.

In:  the Collated parts of a function's arguments, the session.
Out: what they come to. What hangs on a session that isn't told, and what the server refuses, is Doubt.

Rules: DTCollation::aggregate and agg_arg_charsets in MariaDB's sql/item.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.schema.ddl.statement import SessionTold
from tidegate.schema.ddl.tokens import Server
from tidegate.schema.model.charsets import UNICODE, bytes_per_character
from tidegate.schema.select_expressions import Doubt

# How strongly a value holds on to its collation: the lowest wins.
EXPLICIT: Final = 0  # COLLATE
IMPLICIT: Final = 2  # a column
SYSTEM: Final = 3  # USER() and its like
COERCIBLE: Final = 4  # a literal
NUMERIC: Final = 5  # a number, a date
IGNORABLE: Final = 6  # NULL
_SUPPLEMENTARY: Final = frozenset({"utf8mb4", "utf16", "utf16le", "utf32"})
_LEAST_BYTES: Final = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}
BINARY: Final = "binary"


@dataclass(frozen=True, slots=True)
class Session:
    """What the types of a statement's expressions depend on."""

    server: Server
    told: SessionTold

    @property
    def plain(self) -> Collated:
        """What plain words are in that a function makes."""
        return Collated(self.told.charset, self.told.collation, COERCIBLE, ascii=True)


@dataclass(frozen=True, slots=True)
class Collated:
    """charset: "" for a session's that isn't told. derivation: EXPLICIT to IGNORABLE. ascii: nothing else is in it."""

    charset: str
    collation: str
    derivation: int = IMPLICIT
    ascii: bool = False


BYTES: Final = Collated(BINARY, BINARY)


def aggregate(parts: Sequence[Collated], session: Session) -> Collated:
    """Raises Doubt."""
    found = parts[0]
    for part in parts[1:]:
        found = _joined(found, part)
    if any(part.derivation == SYSTEM and part.charset != found.charset for part in parts):
        raise Doubt  # a constant that is converted is as long as its value
    if found.derivation == NUMERIC:
        return session.plain
    return found


def _joined(left: Collated, right: Collated) -> Collated:
    stays = _stays(left, right) if left.charset == right.charset else _wins(left, right)
    chosen = left if stays else right
    return Collated(chosen.charset, chosen.collation, chosen.derivation, left.ascii and right.ascii)


def _stays(left: Collated, right: Collated) -> bool:
    """Of one character set, whether it is the left one's collation."""
    if left.derivation != right.derivation or left.collation == right.collation:
        return left.derivation <= right.derivation
    bins = [side.collation.endswith("_bin") for side in (left, right)]
    if bins[0] == bins[1] or left.derivation == EXPLICIT:
        raise Doubt
    return bins[0]


def _wins(left: Collated, right: Collated) -> bool:
    """Of two character sets, whether it is the left one."""
    if "" in (left.charset, right.charset):
        return _wins_over_unknown(left, right)
    if left.charset == BINARY:
        return left.derivation <= right.derivation
    if right.charset == BINARY:
        return right.derivation > left.derivation
    if _holds(left, right):
        return True
    if _holds(right, left):
        return False
    if left.derivation < right.derivation >= SYSTEM:
        return True
    if right.derivation < left.derivation >= SYSTEM:
        return False
    raise Doubt


def _wins_over_unknown(left: Collated, right: Collated) -> bool:
    """Where one is the session's, which may be any: also the other's, or BINARY."""
    if left.derivation == right.derivation:
        if BINARY in (left.charset, right.charset):
            return left.charset == BINARY
        raise Doubt
    stronger, weaker = (left, right) if left.derivation < right.derivation else (right, left)
    if not (weaker.ascii or weaker.derivation >= SYSTEM):
        raise Doubt
    return stronger is left


def _holds(left: Collated, right: Collated) -> bool:
    """Whether all that the right one may contain is in the left one's character set."""
    stronger = left.derivation < right.derivation
    same = left.derivation == right.derivation
    if left.charset in UNICODE | {"utf16le"}:
        wider = (
            left.charset in _SUPPLEMENTARY
            and right.charset not in _SUPPLEMENTARY
            and bytes_per_character(left.charset) > bytes_per_character(right.charset)
            and _LEAST_BYTES.get(left.charset, 1) == _LEAST_BYTES.get(right.charset, 1)
        )
        if stronger or (same and (right.charset not in UNICODE | {"utf16le"} or wider)):
            return True
    return right.ascii and (stronger or (same and not left.ascii))
