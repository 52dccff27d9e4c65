"""Check that the source has no row of the person any more: a snapshot, or a repair by verify, would bring it back.

In:  a side of verify's, a condition, keys.
Out: nothing; UsageError while it has one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from tidegate.conditions.model import Condition
from tidegate.erase.subject import Key
from tidegate.errors import UsageError
from tidegate.mysql.sql_text.condition import ConditionSql
from tidegate.mysql.sql_text.sql import quote_name
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import canonical
from tidegate.verify.source_side import SourceSide

_KEYS: Final = 500  # in a statement


def check_condition(side: SourceSide, version: TableVersion, condition: Condition, alike: Collection[str] = ()) -> None:
    """alike: columns, in lower case, that the server compares by their collation. Raises UsageError, SourceUnavailable,
    SourceRefused.
    """
    types = {column.name.lower(): canonical(column).arrow for column in version.columns}
    texts = {name for name, kind in types.items() if pa.types.is_string(kind)}.difference(alike)
    dates = {name for name, kind in types.items() if pa.types.is_date(kind) or pa.types.is_timestamp(kind)}
    years = {column.name.lower() for column in version.columns if column.type.startswith("year")}
    asked = ConditionSql(texts, dates, years).of(condition)
    if side.ask(f"SELECT 1 FROM {_name(version)} WHERE {asked} LIMIT 1"):
        raise _still_there(version)


def check_keys(side: SourceSide, version: TableVersion, keys: Collection[Key]) -> None:
    """Texts are compared as the server does: a key alike counts. Raises as check_condition."""
    each = " AND ".join(f"{quote_name(name)} = %s" for name in version.key_names)
    for some in _parts(keys):
        asked = " OR ".join([f"({each})"] * len(some))
        values: tuple[Any, ...] = tuple(value for key in some for value in key)
        if side.ask(f"SELECT 1 FROM {_name(version)} WHERE {asked} LIMIT 1", values):
            raise _still_there(version)


def _parts(keys: Iterable[Key]) -> Iterator[list[Key]]:
    left = iter(keys)
    while some := list(islice(left, _KEYS)):
        yield some


def _name(version: TableVersion) -> str:
    return f"{quote_name(version.database)}.{quote_name(version.table)}"


def _still_there(version: TableVersion) -> UsageError:
    return UsageError(
        "the source still has rows of the person",
        where=version.name,
        remedy="delete them there first: silver equals the source; then run this again",
    )
