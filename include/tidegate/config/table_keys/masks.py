"""Masks for columns of silver, by the section `tables.masks` of a pipeline file.

In:  patterns of tables and of columns, as pydantic gets them.
Out: MaskRule, frozen.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from tidegate.config.connection_names import ConnId
from tidegate.config.table_keys.column_names import check_names, column_pattern
from tidegate.config.table_keys.table_rule import TableRule


class MaskKind(StrEnum):
    """How a value is masked."""

    NULL = "null"  # no value at all, in a column of the source's type
    CONSTANT = "constant"
    PARTIAL = "partial"  # some characters at its ends stay
    HMAC = "hmac"  # HMAC-SHA256 as 64 hexadecimal digits: equal values stay equal
    MAIL = "mail"  # an address whose local part is an HMAC
    PHONE = "phone"  # each digit is another one, by an HMAC
    PLAIN = "plain"  # no mask, whatever later rules say, and though it be computed from a masked column

    @property
    def needs_key(self) -> bool:
        return self in (MaskKind.HMAC, MaskKind.MAIL, MaskKind.PHONE)


class MaskRule(TableRule):
    """A mask for some columns of some tables."""

    columns: tuple[str, ...] = Field((), description="Regular expressions for the whole name of a column")
    comment: str | None = Field(
        None, description="A regular expression that a column's comment at the source holds, e.g. '\\bpii\\b'"
    )
    how: MaskKind = Field(
        description="null, constant, partial (its ends stay), hmac (HMAC-SHA256: joins work), mail (local part by HMAC,"
        " domain stays), phone (digits by HMAC, the rest stays), plain (no mask, whatever later rules say). A value of"
        " NULL stays NULL"
    )
    value: str = Field("", description="constant: the text that each value becomes")
    first: int = Field(0, ge=0, le=64, description="partial, phone: so many characters (phone: digits) stay in front")
    last: int = Field(0, ge=0, le=64, description="partial: so many characters stay at the end")
    key_conn_id: ConnId | None = Field(
        None, description="hmac, mail, phone: the Airflow connection whose password is the key, of 16 bytes or more"
    )

    @field_validator("columns")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return check_names(names)

    @field_validator("comment")
    @classmethod
    def _comment(cls, text: str | None) -> str | None:
        if text is not None:
            check_names((text,))
        return text

    @field_validator("how", mode="before")
    @classmethod
    def _null(cls, how: Any) -> Any:
        """YAML reads a bare null as no value."""
        return MaskKind.NULL if how is None else how

    @model_validator(mode="after")
    def _says_what_it_needs(self) -> Self:
        if not self.columns and self.comment is None:
            raise ValueError("give columns, or comment")
        if self.how.needs_key != (self.key_conn_id is not None):
            raise ValueError(f"how: {self.how} {'needs' if self.how.needs_key else 'takes no'} key_conn_id")
        if self.first and self.how not in (MaskKind.PARTIAL, MaskKind.PHONE):
            raise ValueError(f"how: {self.how} takes no first")
        if self.last and self.how is not MaskKind.PARTIAL:
            raise ValueError(f"how: {self.how} takes no last")
        if self.value and self.how is not MaskKind.CONSTANT:
            raise ValueError(f"how: {self.how} takes no value")
        return self

    def takes(self, column: str, comment: str) -> bool:
        """Whether it masks a column of this name, with this comment at the source."""
        if any(column_pattern(name).fullmatch(column) for name in self.columns):
            return True
        return self.comment is not None and column_pattern(self.comment).search(comment) is not None
