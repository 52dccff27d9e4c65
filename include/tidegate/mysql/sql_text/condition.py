"""A condition as SQL: a server gives the same answer for a row as tidegate does.

In:  a Condition, its columns of text, those of dates and of years.
Out: SQL text, true for the same rows. Texts are compared by their bytes in UTF-8, without collation and padding. A date
     beyond the calendar is NULL, as in silver (apply.zero_dates). A YEAR is its number.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from tidegate.conditions.model import All, Any, Compared, Condition, IsNull, Literal, Not, OneOf
from tidegate.mysql.sql_text.sql import if_dated, quote_name


@dataclass(frozen=True, slots=True)
class ConditionSql:
    """Names of columns, in lower case. texts: columns with text. dates: with dates or moments. years: of
    type YEAR. The session that runs the SQL has the time zone UTC.
    """

    texts: Collection[str]
    dates: Collection[str]
    years: Collection[str] = ()

    def of(self, condition: Condition) -> str:
        match condition:
            case Compared():
                return (
                    f"{self._column(condition.column)} {condition.sign} {self._literal(condition, condition.literal)}"
                )
            case OneOf():
                literals = ", ".join(self._literal(condition, literal) for literal in condition.literals)
                return f"{self._column(condition.column)} IN ({literals})"
            case IsNull():
                return f"{self._column(condition.column)} IS NULL"
            case Not():
                return f"NOT ({self.of(condition.part)})"
            case All():
                return " AND ".join(f"({self.of(part)})" for part in condition.parts)
            case Any():
                return " OR ".join(f"({self.of(part)})" for part in condition.parts)

    def _column(self, column: str) -> str:
        name = quote_name(column)
        if column.lower() in self.texts:
            return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)"
        if column.lower() in self.dates:
            return if_dated(name, name)
        return f"({name} + 0)" if column.lower() in self.years else name  # servers take 24 for 2024 beside a YEAR

    def _literal(self, leaf: Compared | OneOf, literal: Literal) -> str:
        if isinstance(literal, Decimal):
            return f"{literal:f}"
        if leaf.column.lower() in self.texts:
            return f"X'{literal.encode().hex()}'"
        return "'" + literal.replace("\\", "\\\\").replace("'", "''") + "'"
