"""The beginning of the query in CREATE TABLE ... SELECT.

In:  a cursor.
Out: whether a query starts there. Its text doesn't matter: a log of rows never has it.
"""

from __future__ import annotations

from tidegate.schema.ddl.tokens import Cursor, TokenKind


def query_starts(cursor: Cursor) -> bool:
    """Whether [AS] SELECT ..., WITH x AS ..., TABLE t, VALUES ROW(...) or one of them in parentheses starts here."""
    word, after = cursor.now.upper, cursor.ahead()
    if word in ("SELECT", "TABLE"):
        return True
    if word == "AS":
        return after.text != "="
    if word == "WITH":
        return after.upper == "RECURSIVE" or cursor.ahead(2).upper == "AS"
    if word == "VALUES":
        return after.upper == "ROW"
    return cursor.is_mark("(") and query_in_parentheses(cursor)


def query_in_parentheses(cursor: Cursor) -> bool:
    """Whether the parenthesis that starts here contains a query."""
    after = cursor.ahead()
    return after.upper in ("SELECT", "WITH", "VALUES", "TABLE") or (after.text == "(" and after.kind == TokenKind.MARK)
