"""Whether a virtual column has a value of its own for each session: time zone, names of days, date
of today.

In:  a table version, some of its generated columns.
Out: the first virtual column among them, or among the columns they depend on, whose writer's value
     can't be known later; the reason to hold its table.

The log has the value of the writer's session, a snapshot that of its own session, and the server's
own SELECT a third one. MariaDB accepts such expressions in virtual columns; MySQL those of the time
zone. A stored column has its value in the row, but a statement that copies the table computes it
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from tidegate.config import KeptColumns, SessionValues
from tidegate.errors import DDLError
from tidegate.schema.ddl.expressions import read_expression
from tidegate.schema.follow.computed import reached
from tidegate.schema.follow.todays_date import takes_todays_date
from tidegate.schema.model.columns import Column, Generated, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical

# They depend on the session's time zone, its language, the cipher of its AES functions, or the form of its passwords.
_SESSIONS: Final = frozenset(
    [
        *("from_unixtime", "unix_timestamp", "dayname", "monthname", "to_char", "aes_encrypt", "aes_decrypt", "kdf"),
        "password",
    ]
)
_WEEKS: Final = frozenset({"week", "yearweek"})  # if called without a mode
_WEEK_PART: Final = ("column", "week")  # in EXTRACT, which has no mode
_NAMES: Final = re.compile(r"%[abMW]")  # names of days and months, in DATE_FORMAT
# MariaDB accepts these in a virtual column though they depend on the moment, the session or chance. MySQL refuses them.
_UNSTEADY: Final = re.compile(
    r"\b(rand|uuid|uuid_v4|uuid_v7|uuid_short|sys_guid|now|current_timestamp|localtime|localtimestamp|sysdate|curdate"
    r"|current_date|curtime|current_time|utc_date|utc_time|utc_timestamp|connection_id|current_user|session_user|user"
    r"|system_user|current_role|database|schema|last_insert_id|found_rows|row_count|version|random_bytes|encrypt)\s*\("
    r"|\bunix_timestamp\s*\(\s*\)|\b(current_timestamp|current_date|current_time|localtime|localtimestamp|utc_date"
    r"|utc_time|utc_timestamp|current_user|current_role)\b|@@",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`")
_NAMED: Final = sorted(_SESSIONS | _WEEKS | {"date_format", "extract"})
_ANY: Final = re.compile(rf"\b({'|'.join(_NAMED)})\s*\(", re.IGNORECASE)


def of_each_session(version: TableVersion, computed: Iterable[Column]) -> Column | None:
    """None if each of them has one value for everybody."""
    for column in reached(version, computed):
        if column.generated is Generated.VIRTUAL and _hangs(column, version):
            return column
    return None


def computed_by_whoever_reads(version: TableVersion, kept: KeptColumns, policy: SessionValues) -> str:
    """Why a virtual column of silver has no value that can be kept; "" without such a column."""
    virtual = [
        column
        for column in version.columns
        if column.generated is Generated.VIRTUAL and kept.take(column.name, of_key=column.id in version.key)
    ]
    for column in reached(version, virtual):
        if column.generated is Generated.VIRTUAL and _is_of_moment(column, version):
            return f"its virtual column {_shown(column)} is computed anew by whoever reads it"
    hangs = of_each_session(version, virtual) if policy is SessionValues.HOLD else None
    if hangs is not None:
        what = "has another value in each session's time zone or language (ddl.session_values)"
        return f"its virtual column {_shown(hangs)} {what}"
    return ""


def stored_by_session(version: TableVersion, column: Column) -> bool:
    """Whether a stored column's value depends on the session that wrote its row, or copied the
    table.
    """
    return column.generated is Generated.STORED and any(
        behind.generated is not Generated.NO and _hangs(behind, version) for behind in reached(version, [column])
    )


def _shown(column: Column) -> str:
    return f"{column.name} ({column.generation_expression[:80]})"


def _timestamps(version: TableVersion) -> set[str]:
    return {column.name.lower() for column in version.columns if _is_timestamp(column)}


def _is_timestamp(column: Column) -> bool:
    return canonical(column).kind is Kind.TIMESTAMP


def _has_time(version: TableVersion) -> bool:
    return any(canonical(column).kind is Kind.TIME for column in version.columns)


def _is_of_moment(column: Column, version: TableVersion) -> bool:
    """Whether it depends on when it is computed, on who computes it, or on chance."""
    unsteady = _UNSTEADY.search(_QUOTED.sub("''", column.generation_expression))
    return unsteady is not None or _is_of_today(column, version)


def _is_of_today(column: Column, version: TableVersion) -> bool:
    try:
        tree = read_expression(column.generation_expression)
    except DDLError:
        return _has_time(version)
    return takes_todays_date(tree, column, version)


def _hangs(column: Column, version: TableVersion) -> bool:
    """Whether its value depends on a session, or on a day."""
    timestamps = _timestamps(version)
    try:
        tree = read_expression(column.generation_expression)
    except DDLError:
        return bool(timestamps) or _has_time(version) or _ANY.search(column.generation_expression) is not None
    if _is_timestamp(column):  # the same moment for all, but as a text it is in its reader's time zone
        return not (tree[0] == "column" and tree[1] in timestamps)
    return _asks_session(tree, timestamps) or takes_todays_date(tree, column, version)


def _asks_session(tree: Any, timestamps: set[str]) -> bool:
    if not isinstance(tree, (tuple, list)) or not tree:
        return False
    name, *arguments = tree
    if name == "column":
        return arguments[0] in timestamps
    if name in ("is", "isnull") and _is_moment(arguments[0], timestamps):
        return False
    if name == "unix_timestamp" and arguments and _is_moment(arguments[0], timestamps):
        return False
    if name in _SESSIONS or (name in _WEEKS and len(arguments) == 1):
        return True
    if name == "extract" and arguments and arguments[0] == _WEEK_PART:
        return True
    if name == "date_format" and not _is_plain(arguments):
        return True
    return any(_asks_session(part, timestamps) for part in arguments)


def _is_moment(tree: Any, timestamps: set[str]) -> bool:
    return isinstance(tree, tuple) and len(tree) == 2 and tree[0] == "column" and tree[1] in timestamps


def _is_plain(arguments: list[Any]) -> bool:
    """Whether DATE_FORMAT's format contains no names."""
    given = arguments[1] if len(arguments) == 2 else None
    return isinstance(given, tuple) and given[0] == "text" and not _NAMES.search(given[1])
