"""Differences between silver and its source: rows that silver lacks, has too many, or has with other values.

In:  the large table at the source, keys that nobody writes to.
Out: plant(): each is made at the source without a word in its log, so nothing but a verification hears of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.size.tables import BIG, DATABASE, columns_of
from tidegate.local.server import Server

# Column -> another value of it, whatever it was.
_CHANGES: Final = {
    "n": "n ^ 1",
    "price": "COALESCE(price, 0) + 0.01",
    "ratio": "ratio + 0.125",
    "name": "CONCAT(name, '!')",
    "at": "at + INTERVAL 1 MICROSECOND",
    "day": "day + INTERVAL 1 DAY",
    "seen": "seen + INTERVAL 1000 MICROSECOND",
    "kind": "IF(kind = 'done', 'new', 'done')",
    "raw": "UNHEX('00FF')",
    "doc": "'{\"n\": -1}'",
    "took": "NULL",
}


def plant(server: Server, missing: Sequence[int], extra: Sequence[int], changed: Sequence[int]) -> None:
    """missing: keys of rows that get a copy with the same key below zero, which no row has."""
    others = ", ".join(name for name, _ in columns_of(server, BIG) if name != "id")
    with server.connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"INSERT INTO big (id, {others}) SELECT -id, {others} FROM big WHERE id IN ({_keys(missing)})")
        cursor.execute(f"DELETE FROM big WHERE id IN ({_keys(extra)})")
        for at, (name, value) in enumerate(_CHANGES.items()):
            if keys := changed[at :: len(_CHANGES)]:
                cursor.execute(f"UPDATE big SET {name} = {value} WHERE id IN ({_keys(keys)})")


def _keys(keys: Sequence[int]) -> str:
    return ", ".join(str(key) for key in keys)
