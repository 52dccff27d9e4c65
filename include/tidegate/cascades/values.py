"""Whether the value of a child's column equals its parent's, as the server compares them.

In:  both columns.
Out: a Likeness, by which two values are equal where their forms are; a Doubt where no form tells it for certain.

No collation is imitated. Under a case-insensitive one only printable ASCII is compared: in all collations named here
its letters have two cases, and equal nothing else.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.schema.model.columns import Column, Generated
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical

NOT_PLAIN: Final = "a text of a foreign key isn't plain ASCII, and its collation may take others to equal it"
PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
_PATTERN: Final = "^[\\x20-\\x7e]*$"
EXACT_KINDS: Final = (Kind.INT, Kind.UNSIGNED_BIGINT, Kind.DECIMAL, Kind.UUID)
_ANY_CASE: Final = re.compile(
    r"(?:utf8|utf8mb3|utf8mb4|ucs2|utf16|utf32)_(?:general|unicode|unicode_520)(?:_nopad)?_ci"
    r"|(?:latin1|ascii)_(?:general|swedish)(?:_nopad)?_ci"
    r"|utf8mb4_0900_a[is]_ci"
    r"|(?:utf8mb3_|utf8mb4_|ucs2_|utf16_|utf32_)?uca1400(?:_nopad)?_a[is]_ci"
)
_CASED: Final = re.compile(r"utf8mb4_0900_as_cs")
_BINARY: Final = re.compile(r"[a-z0-9]+_(?:0900_|nopad_)?bin")


class Doubt(Exception):  # noqa: N818 - the answer isn't known, which is no error
    """An effect of a foreign key that isn't certain. why: in one phrase. table: the child, where it is one. parent:
    the table with changes in doubt, where all rows below it are meant.
    """

    def __init__(
        self, why: str, table: tuple[str, str] | None = None, *, parent: tuple[str, str] | None = None
    ) -> None:
        super().__init__(why)
        self.why = why
        self.table = table
        self.parent = parent


class Likeness(Enum):
    """How values are brought to a form: (spaces at the end go, letters in lower case)."""

    EXACT = (False, False)
    PADDED = (True, False)
    ANY_CASE = (False, True)
    ANY_CASE_PADDED = (True, True)
    CASED = (False, None)  # by case, and only printable ASCII is certain

    def form(self, value: Any) -> Any:
        """Raises Doubt for a text that the collation may take to equal another one."""
        padded, folds = self.value
        if self is Likeness.EXACT or value is None:
            return value
        if folds is not False and not PRINTABLE.fullmatch(value):
            raise Doubt(NOT_PLAIN)
        if padded:
            value = value.rstrip(" ")
        return value.lower() if folds else value

    def forms(self, values: pa.Array) -> pa.Array:
        """form() of each. Raises Doubt."""
        padded, folds = self.value
        if self is Likeness.EXACT:
            return values
        if folds is not False:
            plain = pc.match_substring_regex(values, _PATTERN)
            if not pc.all(pc.fill_null(plain, fill_value=True)).as_py():
                raise Doubt(NOT_PLAIN)
        if padded:
            values = pc.utf8_rtrim(values, " ")
        return pc.ascii_lower(values) if folds else values


def likeness(child: Column, parent: Column) -> Likeness:
    """Raises Doubt."""
    own_type, theirs = canonical(child), canonical(parent)
    what = f"{child.name} ({child.type}) refers to {parent.name} ({parent.type})"
    if Generated.NO not in (child.generated, parent.generated):
        raise Doubt(f"{what}, and both are generated")
    if own_type.kind is not theirs.kind or own_type.arrow != theirs.arrow:
        raise Doubt(f"{what}, another type")
    if own_type.kind in EXACT_KINDS:
        return Likeness.EXACT
    if own_type.kind is Kind.BINARY and child.type == parent.type:
        return Likeness.EXACT
    if own_type.kind is not Kind.TEXT:
        raise Doubt(f"{what}, a type whose values aren't compared here")
    if child.collation != parent.collation:
        raise Doubt(f"{what} in another collation")
    return _of_collation(child.collation, what)


def collated(column: Column) -> Likeness:
    """When two of a column's own values equal. Raises Doubt."""
    if canonical(column).kind is not Kind.TEXT:
        return Likeness.EXACT
    return _of_collation(column.collation, f"{column.name} ({column.type}) is compared")


def _of_collation(collation: str, what: str) -> Likeness:
    padded = "_0900_" not in collation and "nopad" not in collation
    if _BINARY.fullmatch(collation):
        return Likeness.PADDED if padded else Likeness.EXACT
    if _CASED.fullmatch(collation):
        return Likeness.CASED
    if _ANY_CASE.fullmatch(collation):
        return Likeness.ANY_CASE_PADDED if padded else Likeness.ANY_CASE
    raise Doubt(f"{what} by the collation {collation}, which isn't known here")
