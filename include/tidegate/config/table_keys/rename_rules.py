"""Names in silver of the source's columns, by the section `tables.renames` of a pipeline file.

In:  patterns of tables, pairs of names, as pydantic gets them.
Out: RenameRule, frozen; the names of one table, by its columns' names in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pydantic import Field, field_validator

from tidegate.config.table_keys.table_rule import TableRule

# Any reader of Delta takes such a name as it is.
_NAME: Final = re.compile(r"[A-Za-z]\w*", re.ASCII)


class RenameRule(TableRule):
    """Other names for columns of some tables."""

    columns: dict[str, str] = Field(
        description="Names of columns at the source, each with its name in silver, as {cust_no: customer_id}",
        min_length=1,
    )

    @field_validator("columns")
    @classmethod
    def _once(cls, columns: dict[str, str]) -> dict[str, str]:
        lower = [name.lower() for name in columns]
        if twice := sorted(name for name in {*lower} if lower.count(name) > 1):
            raise ValueError(f"{twice[0]} is named twice")
        for name in columns.values():
            if _NAME.fullmatch(name) is None:
                raise ValueError(f"{name}: give a name of letters, digits and _, with a letter in front")
        return columns


def names_by(rules: Iterable[RenameRule]) -> dict[str, str]:
    """Silver's names by the source's, in lower case. The first rule with a column counts."""
    names: dict[str, str] = {}
    for rule in rules:
        for source, silver in rule.columns.items():
            names.setdefault(source.lower(), silver)
    return names
