"""Names and strings in Spark SQL.

In:  a name of a column, a text, a table's URI.
Out: SQL with exactly that meaning, whatever characters are in it.
"""

from __future__ import annotations


def quote(name: str) -> str:
    """A Spark SQL identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A Spark SQL string literal, whatever the text holds."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def table_at(uri: str) -> str:
    """A Delta table by its place."""
    return f"delta.{quote(uri)}"
