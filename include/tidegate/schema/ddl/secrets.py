"""Passwords in statements. They are in the binlog, so in bronze, and must be nowhere else.

In:  a statement's text.
Out: the same with its secret literals masked: for people, not to be parsed again.
"""

from __future__ import annotations

import re
from typing import Final

_LITERAL: Final = r"""(?:'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")"""
# Accounts (MySQL manual, "CREATE USER"; MariaDB "CREATE USER"), FEDERATED and CONNECT tables, servers, replicas.
_SECRET: Final = re.compile(
    rf"(\b(?:CONNECTION|PASSWORD(?:\s+FOR\s+\S+)?|(?:MASTER|SOURCE)_PASSWORD|SECRET|IDENTIFIED\s+(?:(?:WITH|VIA)\s+\S+\s+)?(?:BY|AS|USING)"
    rf"(?:\s+PASSWORD)?|REPLACE|(?:OR|AND)\s+\S+\s+USING)\s*[=(]?\s*){_LITERAL}",
    re.IGNORECASE | re.DOTALL,
)
_MAY_HOLD: Final = re.compile(r"CONNECTION|PASSWORD|SECRET|IDENTIFIED", re.IGNORECASE)


def masked(sql: str) -> str:
    """The statement without its secrets."""
    if not _MAY_HOLD.search(sql):
        return sql
    return _SECRET.sub(r"\1'***'", sql)
