"""A condition as SQL, answered by a server as by us.

In:  a Condition, its columns of text, and those of dates.
Out: SQL text, true of the same rows. Texts are compared by their bytes in UTF-8, without collation and padding. A date
     with a month or day of 0 is NULL, as in silver (apply.zero_dates).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from tidegate.conditions.model import All, Any, Compared, Condition, IsNull, Literal, Not, OneOf
from tidegate.mysql.sql import quote_name


@dataclass(frozen=True, slots=True)
class ConditionSql:
    """texts, dates: names of columns with text, and of those with dates or moments, in lower case. The session's time
    zone is UTC.
    """

    texts: Collection[str]
    dates: Collection[str]

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
            return f"IF(MONTH({name}) = 0 OR DAYOFMONTH({name}) = 0, NULL, {name})"
        return name

    def _literal(self, leaf: Compared | OneOf, literal: Literal) -> str:
        if isinstance(literal, Decimal):
            return f"{literal:f}"
        if leaf.column.lower() in self.texts:
            return f"X'{literal.encode().hex()}'"
        return "'" + literal.replace("\\", "\\\\").replace("'", "''") + "'"
