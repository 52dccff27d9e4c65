"""Whether a generated column is computed as before.

In:  a column before and after a statement, the columns that were renamed by it.
Out: True where the expression is the same, however it is written; whether it reads a column's default; whether it has
     another value for each who asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tidegate.schema.ddl.expressions import same_expression
from tidegate.schema.model.columns import Column, Generated, TableVersion

_DEFAULT: Final = re.compile(r"\bdefault\s*\(", re.IGNORECASE)
# What MariaDB takes in a virtual column though it hangs on the moment, the session or chance. MySQL refuses all of it.
_UNSTEADY: Final = re.compile(
    r"\b(rand|uuid|uuid_v4|uuid_v7|uuid_short|sys_guid|now|current_timestamp|localtime|localtimestamp|sysdate|curdate"
    r"|current_date|curtime|current_time|utc_date|utc_time|utc_timestamp|connection_id|current_user|session_user|user"
    r"|system_user|current_role|database|schema|last_insert_id|found_rows|row_count|version|random_bytes)\s*\("
    r"|\bunix_timestamp\s*\(\s*\)|\b(current_timestamp|current_date|current_time|localtime|localtimestamp|utc_date"
    r"|utc_time|utc_timestamp|current_user|current_role)\b|@@",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`")


def renamed_between(shared: Iterable[tuple[Column, Column]]) -> dict[str, str]:
    """The columns of both versions: the old name in small letters -> the new name, where they differ."""
    return {was.name.lower(): now.name for was, now in shared if was.name != now.name}


def computes_the_same(was: Column, now: Column, names: Mapping[str, str]) -> bool:
    """names: as renamed_between() gives them."""
    same_way = was.generated is now.generated
    return same_way and same_expression(was.generation_expression, now.generation_expression, names)


def reads_default(expression: str) -> bool:
    """Whether a spelled expression may have DEFAULT(column) in it; a column that is called so has backticks."""
    return _DEFAULT.search(expression) is not None


def computed_by_whoever_reads(version: TableVersion) -> str:
    """Why a virtual column has no value that could be kept; "" when there is none such."""
    for column in version.columns:
        if column.generated is Generated.VIRTUAL and _UNSTEADY.search(_QUOTED.sub("''", column.generation_expression)):
            return (
                f"its virtual column {column.name} ({column.generation_expression[:80]}) is computed anew by whoever"
                " reads it, and has no value that could be kept"
            )
    return ""
