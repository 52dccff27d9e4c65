"""Comments of silver's tables and columns, by the section `tables.comments` of a pipeline file.

In:  patterns of tables and texts, as pydantic gets them.
Out: CommentRule, frozen; SilverComments, what some rules say of one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from pydantic import Field, model_validator

from tidegate.config.table_keys.table_rule import TableRule


class CommentRule(TableRule):
    """Comments in place of the source's own."""

    comment: str | None = Field(None, description="The table's comment in silver; else it is the source's")
    columns: dict[str, str] = Field(
        {}, description="Comments of silver's columns, by their names there; of the others they are the source's"
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.comment is None and not self.columns:
            raise ValueError("give comment, or columns")
        lower = [name.lower() for name in self.columns]
        if len({*lower}) < len(lower):
            raise ValueError("a column is named twice")
        return self


@dataclass(frozen=True, slots=True)
class SilverComments:
    """table: None: the source's own. columns: by names in lower case; of the others they are the source's own."""

    table: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rules: Iterable[CommentRule]) -> Self:
        """The first rule with a text counts."""
        table, columns = None, dict[str, str]()
        for rule in rules:
            table = rule.comment if table is None else table
            for name, text in rule.columns.items():
                columns.setdefault(name.lower(), text)
        return cls(table, columns)
