"""The common part of all sections of a pipeline file.

In:  a mapping of the file.
Out: a frozen model. It refuses unknown keys, and a switch in the place of a number.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator


class Section(BaseModel):
    """A part of a pipeline file: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _switch_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """YAML reads yes and on as true, and pydantic takes true for 1: one day of bronze."""
        if isinstance(value, bool) and _is_number(cls, str(info.field_name)):
            raise ValueError("must be a number, not a word for true or false")
        return value


@cache
def _is_number(section: type[Section], key: str) -> bool:
    kind = section.model_fields[key].annotation
    return not {int, float}.isdisjoint(get_args(kind) or (kind,))
