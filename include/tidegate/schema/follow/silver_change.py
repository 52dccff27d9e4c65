"""The work of a silver table when its source table goes from one version to the next.

In:  two versions of a physical table, one after the other.
Out: actions by column id, in an order in which they can be done. Pure.

For some changes (a narrower type, another scale ...) the server rewrites rows, and the binlog
doesn't show it. Such a change is ValuesRewritten, unless every value certainly reads the same
afterwards: silver never keeps an old value. If the new values follow from the old ones, the action
says how (recast.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate.schema.ddl.statement import StatementTime
from tidegate.schema.follow.added_columns import existing_row_value
from tidegate.schema.follow.computed import computes_the_same, reads_default, renamed_between
from tidegate.schema.follow.recast import Recast, recast
from tidegate.schema.follow.session_values import stored_by_session
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import TEXT_BYTES, Kind
from tidegate.schema.model.types import CanonicalType, canonical, integer_range

_COPY: Final = re.compile(r"\bALGORITHM\s*=?\s*COPY\b|\bDROP\s+PRIMARY\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DropSilverColumn:
    """name: in silver."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameSilverColumn:
    old_name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class AddSilverColumn:
    """value: what existing rows get, for pa.scalar(value, canonical(column).arrow)."""

    column: Column
    value: Any

    @property
    def is_no_date(self) -> bool:
        """Whether existing rows have a date that no calendar has, for which silver has NULL."""
        return self.value is None and not (self.column.nullable and self.column.default is None)


@dataclass(frozen=True, slots=True)
class ChangeType:
    """The Delta type changes, and every value stays. name: the new one."""

    name: str
    old_type: str
    new_type: str


@dataclass(frozen=True, slots=True)
class ValuesRewritten:
    """The server converted existing values, and the log doesn't show it.

    recast: the new values of old_name, if they are certain; None if nobody can know them.
    """

    column: Column
    reason: str
    old_name: str = ""
    recast: Recast | None = None


@dataclass(frozen=True, slots=True)
class KeyChange:
    """Names of the key's columns before and after; () for no key."""

    old: tuple[str, ...]
    new: tuple[str, ...]


SilverAction = DropSilverColumn | RenameSilverColumn | AddSilverColumn | ChangeType | ValuesRewritten | KeyChange


def diff(
    old: TableVersion, new: TableVersion, ran: StatementTime | None = None, apart: Collection[int] = ()
) -> list[SilverAction]:
    """Actions from old to new; [] if silver has nothing to do.

    ran: when the statement between them ran, if known; a default CURRENT_TIMESTAMP needs it. apart: ids
    of columns that silver lacks; it may have columns that are computed from them.
    Raises UnsupportedValue if the values of an added column in existing rows can't be known.
    """
    before = {column.id: column for column in old.columns}
    after = {column.id: column for column in new.columns}
    gone = [column for column in old.columns if column.id not in after and column.id not in apart]
    actions: list[SilverAction] = [DropSilverColumn(column.silver) for column in gone]
    shared = [(before[c.id], c) for c in new.columns if c.id in before]
    names = renamed_between(shared)
    here = [(was, now) for was, now in shared if now.id not in apart]
    renamed = [(was, now) for was, now in here if was.silver != now.silver]
    actions += [RenameSilverColumn(was.silver, now.silver) for was, now in renamed]
    # If silver lacks a column, nothing else shows that its values changed.
    unseen = [(was, now) for was, now in shared if now.id in apart]
    rewritten = {now.id for was, now in unseen if not computes_the_same(was, now, names) or _rewritten(was, now)}
    rewritten |= {now.id for _, now in unseen if _computed_anew(now, shared, rewritten)}
    if rewritten:  # other columns may be computed from these
        rewritten |= {now.id for _, now in unseen if now.generation_expression}
    of_session = {now.id for _, now in here if stored_by_session(new, now)} if _may_be_copied(new, shared) else ()
    for was, now in here:
        if now.id in of_session:
            actions.append(ValuesRewritten(now, "a statement that copies the table computes it in its own session"))
        else:
            actions += _change(was, now, names) or _computed_anew(now, shared, rewritten)
    added = [c for c in new.columns if c.id not in before and c.id not in apart]
    actions += [AddSilverColumn(c, existing_row_value(c, ran)) for c in added]
    if old.key != new.key:
        actions.append(KeyChange(old.silver_key, new.silver_key))
    return actions


def _change(was: Column, now: Column, names: Mapping[str, str]) -> list[SilverAction]:
    if not computes_the_same(was, now, names):
        return [ValuesRewritten(now, "its generation expression changed", was.silver)]
    reason = _rewritten(was, now)
    if reason:
        return [ValuesRewritten(now, reason, was.silver, recast(was, now))]
    old_type, new_type = canonical(was).delta, canonical(now).delta
    return [] if old_type == new_type else [ChangeType(now.silver, old_type, new_type)]


def _computed_anew(
    column: Column, shared: list[tuple[Column, Column]], rewritten: Collection[int]
) -> list[SilverAction]:
    """A generated column is computed again if a column in its expression changes: 1.5 may become
    '1.50' in a text. If the expression reads DEFAULT(a), also if that default changes.

    rewritten: ids of columns whose values changed without being visible in silver.
    """
    if not column.generation_expression:
        return []
    expression = column.generation_expression.lower()
    named = [(was, now) for was, now in shared if now.name.lower() in expression]
    defaults = reads_default(column.generation_expression)
    changed = [
        now
        for was, now in named
        if now.id in rewritten or not _reads_the_same(was, now) or (defaults and not same_default(was, now))
    ]
    return [ValuesRewritten(column, f"it is computed from {changed[0].name}, which changed")] if changed else []


def _may_be_copied(new: TableVersion, shared: list[tuple[Column, Column]]) -> bool:
    """Whether the server may have copied all rows of the table, instead of changing it in place."""
    return any(_form(was) != _form(now) for was, now in shared) or _COPY.search(new.ddl) is not None


def _form(column: Column) -> tuple[object, ...]:
    return column.type, column.charset, column.collation, column.nullable, column.generated


def _reads_the_same(was: Column, now: Column) -> bool:
    """Whether an expression over a column keeps its value if silver's value of the column stays the
    same.
    """
    if (was.type, was.charset, was.collation) == (now.type, now.charset, now.collation):
        return True
    old, new = canonical(was), canonical(now)
    if "zerofill" in was.type + now.type or (was.charset, was.collation) != (now.charset, now.collation):
        return False
    return old.kind is new.kind and old.kind in (Kind.INT, Kind.TEXT) and "char" not in (old.text.base, new.text.base)


def same_default(was: Column, now: Column) -> bool:
    return (was.default, was.default_is_expression) == (now.default, now.default_is_expression)


def _rewritten(was: Column, now: Column) -> str:
    """Why values may differ after the change; "" if they can't."""
    if was.nullable and not now.nullable:
        return "NULLs may have become the implicit default"
    if (was.type, was.charset) == (now.type, now.charset):
        return ""
    old, new = canonical(was), canonical(now)
    if _keeps_values(old, new, was, now):
        return ""
    charset = f" {now.charset}" if was.charset != now.charset else ""
    return f"{was.type} became {now.type}{charset}"


def _keeps_values(old: CanonicalType, new: CanonicalType, was: Column, now: Column) -> bool:
    kinds = (old.kind, new.kind)
    if kinds in ((Kind.INT, Kind.INT), (Kind.INT, Kind.UNSIGNED_BIGINT), (Kind.UNSIGNED_BIGINT, Kind.UNSIGNED_BIGINT)):
        return _range_grows(old, new)
    if kinds == (Kind.TEXT, Kind.TEXT):
        return _charset_grows(was, now) and _text_grows(old, new, recoded=was.charset != now.charset)
    if kinds == (Kind.BINARY, Kind.BINARY):
        return old.text.base != "binary" and new.text.base != "binary" and _capacity(new) >= _capacity(old)
    if kinds == (Kind.DECIMAL, Kind.DECIMAL):
        scale = new.arrow.scale - old.arrow.scale
        return scale >= 0 and new.arrow.precision - old.arrow.precision >= scale and not _sign_lost(old, new)
    if kinds in ((Kind.FLOAT, Kind.DOUBLE), (Kind.FLOAT, Kind.FLOAT), (Kind.DOUBLE, Kind.DOUBLE)):
        return not new.text.numbers and not _sign_lost(old, new)
    if kinds in ((Kind.DATETIME, Kind.DATETIME), (Kind.TIMESTAMP, Kind.TIMESTAMP)):
        return (new.text.numbers or (0,)) >= (old.text.numbers or (0,))
    if kinds == (Kind.ENUM, Kind.ENUM):
        return _charset_grows(was, now) and set(old.text.members) <= set(new.text.members)
    if kinds == (Kind.SET, Kind.SET):
        # Order of members is order within a value's text.
        return _charset_grows(was, now) and new.text.members[: len(old.text.members)] == old.text.members
    return kinds == (Kind.YEAR, Kind.YEAR)


def _range_grows(old: CanonicalType, new: CanonicalType) -> bool:
    (old_low, old_high), (low, high) = integer_range(old), integer_range(new)
    return low <= old_low and old_high <= high


def _sign_lost(old: CanonicalType, new: CanonicalType) -> bool:
    return new.text.unsigned and not old.text.unsigned


# Set -> sets that have all of its characters. utf8mb4 has all of them.
_WIDER: Final = {
    "ascii": {"latin1", "utf8", "utf8mb3", "utf8mb4"},
    "utf8": {"utf8mb3", "utf8mb4"},
    "utf8mb3": {"utf8", "utf8mb4"},
    "latin1": {"utf8", "utf8mb3", "utf8mb4"},
    "latin2": {"utf8", "utf8mb3", "utf8mb4"},
    "ucs2": {"utf8", "utf8mb3", "utf8mb4", "utf16"},
    "cp1251": {"utf8", "utf8mb3", "utf8mb4"},
    "utf16": {"utf8mb4", "utf32"},
    "utf32": {"utf8mb4", "utf16"},
    "utf8mb4": {"utf16", "utf32"},
}


def _charset_grows(was: Column, now: Column) -> bool:
    return was.charset == now.charset or now.charset in _WIDER.get(was.charset, set())


def _capacity(kind: CanonicalType) -> int:
    """Bytes of a sized text or blob; for char and varchar the written number of characters (binary:
    bytes).
    """
    return TEXT_BYTES.get(kind.text.base) or (kind.text.numbers[0] if kind.text.numbers else 1)


def _text_grows(old: CanonicalType, new: CanonicalType, *, recoded: bool) -> bool:
    if new.text.base == "char" and old.text.base != "char":
        return False  # trailing spaces go
    bytes_now = new.text.base in TEXT_BYTES
    if bytes_now and (recoded or old.text.base not in TEXT_BYTES):
        return _capacity(new) >= _capacity(old) * 4  # a character has at most four bytes
    return _capacity(new) >= _capacity(old)
