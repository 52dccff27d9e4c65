"""Sessions that write to all tables of tables.py: inserts, updates, deletes, key changes.

In:  a server, a Size, how many row changes a second.
Out: Writers.changes: how many were committed, about.
"""

from __future__ import annotations

import random
from typing import Any, Final

from tests.size.tables import DATABASE, Size, small_names
from tests.support.sessions import Writing
from tidegate.local.server import Server

_SESSIONS: Final = 3
_PER_TRANSACTION: Final = 8


class Writers(Writing):
    """per_second: row changes in all; 0 for none. small: tables that are written to."""

    def __init__(self, server: Server, size: Size, seed: int, per_second: float) -> None:
        count = _SESSIONS if per_second else 0
        super().__init__(server, DATABASE, seed, count, count * _PER_TRANSACTION / (per_second or 1))
        self.size = size
        self.small = small_names(size.small)
        self.changes = 0

    def transaction(self, cursor: Any, rng: random.Random, session: int, turn: int) -> None:
        done = 0
        while done < _PER_TRANSACTION:
            done += max(1, self._change(cursor, rng))
        cursor.execute("ROLLBACK" if rng.random() < 0.02 else "COMMIT")
        self.changes += done

    def _change(self, cursor: Any, rng: random.Random) -> int:
        """Some rows of one table; how many."""
        kind = rng.random()
        if kind < 0.5:
            return self._big(cursor, rng)
        if kind < 0.65:
            return _bag(cursor, rng, self.size.bag // 3)
        return _small(cursor, rng, rng.choice(self.small)) if self.small else 0

    def _big(self, cursor: Any, rng: random.Random) -> int:
        key, kind = self.size.drawn(rng), rng.random()
        if kind < 0.35:
            return int(
                cursor.execute(
                    "REPLACE INTO big (id, n, price, ratio, name, at, day, seen, kind, raw, doc, took) VALUES (%s, %s,"
                    " %s, %s, %s, NOW(6), CURDATE(), NOW(3), 'open', %s, %s, '-01:02:03')",
                    (
                        *(self.size.between(rng), rng.randrange(1 << 32), f"{rng.uniform(-1e6, 1e6):.2f}"),
                        *(rng.randrange(1 << 20) / 8, rng.choice(["ä€😀", "", "it's"]), b"\x00\xff\x0a"),
                        '{"n": [1, "x"]}',
                    ),
                )
            )
        if kind < 0.75:
            return int(cursor.execute("UPDATE big SET n = n ^ 1, kind = 'done', price = -price WHERE id = %s", (key,)))
        if kind < 0.85:
            return int(cursor.execute("UPDATE big SET id = %s WHERE id = %s", (self.size.between(rng), key)))
        return int(cursor.execute("DELETE FROM big WHERE id = %s", (key,)))


def _bag(cursor: Any, rng: random.Random, values: int) -> int:
    value, kind = rng.randint(0, values), rng.random()
    if kind < 0.4:
        return int(cursor.execute("INSERT INTO bag (a, b, v) VALUES (%s, 'new', 1), (%s, 'new', 1)", (value, value)))
    if kind < 0.7:
        return int(cursor.execute("UPDATE bag SET v = v + 1 WHERE a = %s LIMIT 2", (value,)))
    return int(cursor.execute("DELETE FROM bag WHERE a = %s LIMIT 2", (value,)))


def _small(cursor: Any, rng: random.Random, table: str) -> int:
    key, kind = rng.randint(1, 400), rng.random()
    if kind < 0.4:
        return int(cursor.execute(f"INSERT INTO {table} (a, b, at) VALUES ('new', %s, NOW(6))", (key,)))
    if kind < 0.8:
        return int(cursor.execute(f"UPDATE {table} SET b = b + 1 WHERE id = %s", (key,)))
    return int(cursor.execute(f"DELETE FROM {table} WHERE id = %s", (key,)))
