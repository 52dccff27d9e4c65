"""SQL text that names things: identifiers are quoted here, values are always bound.

In:  names as the server spells them.
Out: SQL fragments.
"""

from __future__ import annotations


def quote_name(*parts: str) -> str:
    """`a`.`b` with backticks doubled (MySQL manual, "Schema Object Names")."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)
