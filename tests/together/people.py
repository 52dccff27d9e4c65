"""People who work on silver while tidegate does: OPTIMIZE and DELETE, from Spark and from delta-rs.

In:  a lake's address and keys; the source.
Out: what each did and how often another writer was faster. What a person deletes of a table whose rows the source
     still has is written there again, at once, so that silver has to get it back.
"""

from __future__ import annotations

import collections
import random
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.soak.source import DATABASE
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import domain, protocol
from tidegate.lake.storage.storage_options import spark_uri
from tidegate.local.server import Server

SOFT: Final = "notes"  # of this one silver keeps deleted rows
TABLES: Final = ("keyed", "pairs", SOFT, "bag")
_SHARES: Final = 13  # a DELETE is of about one in so many rows
# Table -> the rows of a DELETE, and what brings them back: an UPDATE that changes each of them. A table without a key
# has nothing by which the source could name a row that silver lost.
_DELETES: Final = {
    "keyed": ("id % {n} = {k}", "UPDATE keyed SET b = COALESCE(b, 0) + 1 WHERE id % {n} = {k}"),
    "pairs": ("n % {n} = {k}", "UPDATE pairs SET v = v + 1 WHERE n % {n} = {k}"),
    SOFT: ("_tg_deleted", ""),
}
# delta-rs refuses to write to silver's tables: it knows neither clustering nor domainMetadata. This one loses them.
_PLAIN: Final = "pairs"
_FEATURES: Final = ("appendOnly", "deletionVectors", "invariants")
_NOT_CLUSTERED: Final = domain("delta.clustering", "", removed=True)
# How both say that another commit came in between.
_CONFLICT: Final = ("concurrent", "conflict")


class People:
    """One person per tool. told: what came of it, and how often; trouble: what shouldn't."""

    def __init__(
        self, root: str, options: Mapping[str, str], spark: SparkSession, server: Server, seed: int, *, pause: float
    ) -> None:
        self.told: collections.Counter[str] = collections.Counter()
        self.trouble: list[str] = []
        self._root, self._options, self._spark, self._server = root, dict(options), spark, server
        self._seed, self._pause = seed, pause
        self._over = threading.Event()
        self._may_delete = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(name, tables, optimize, delete))
            for name, tables, optimize, delete in (
                ("Spark", TABLES, self._spark_optimize, self._spark_delete),
                ("delta-rs", (_PLAIN,), self._rs_optimize, self._rs_delete),
            )
        ]

    def start(self) -> None:
        plain = Change([_NOT_CLUSTERED, protocol(_FEATURES)], "DROP FEATURE", checked=True)
        DeltaLog(self._place(_PLAIN), self._options).update(lambda _: plain)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(120)

    def no_deletes(self) -> threading.Lock:
        """While it is held nobody deletes, and what was deleted is written again at the source."""
        return self._may_delete

    def _work(
        self,
        name: str,
        tables: tuple[str, ...],
        optimize: Callable[[str], None],
        delete: Callable[[str, str], None],
    ) -> None:
        rng = random.Random(f"{self._seed} {name}")
        while not self._over.wait(self._pause * rng.uniform(0.5, 1.5)):
            table = rng.choice(tables)
            if table in _DELETES and rng.random() < 0.5:
                self._delete(name, table, rng.randrange(_SHARES), delete)
            else:
                self._try(f"{name} OPTIMIZE", partial(optimize, table))

    def _delete(self, name: str, table: str, share: int, delete: Callable[[str, str], None]) -> None:
        rows, again = (text.format(n=_SHARES, k=share) for text in _DELETES[table])
        with self._may_delete:
            try:
                self._try(f"{name} DELETE", partial(delete, table, rows))
            finally:
                if again:
                    self._server.query(again, database=DATABASE)

    def _try(self, what: str, act: Callable[[], None]) -> None:
        try:
            act()
        except (DeltaError, PySparkException, Py4JError, OSError) as error:
            words = str(error)
            if any(word in words.lower() for word in _CONFLICT):
                self.told[f"{what}, another was faster"] += 1
            else:
                self.told[f"{what}, refused"] += 1
                self.trouble.append(f"{time.strftime('%H:%M:%S')} {what}: {words.strip()[:300]}")
        else:
            self.told[what] += 1

    # --- tools --------------------------------------------------------------------------------------------

    def _place(self, table: str) -> str:
        return f"{self._root}/silver/{DATABASE}/{table}"

    def _named(self, table: str) -> str:
        return f"delta.`{spark_uri(self._place(table))}`"

    def _table(self, table: str) -> DeltaTable:
        return DeltaTable(self._place(table), storage_options=self._options)

    def _spark_optimize(self, table: str) -> None:
        self._spark.sql(f"OPTIMIZE {self._named(table)}").collect()

    def _spark_delete(self, table: str, rows: str) -> None:
        self._spark.sql(f"DELETE FROM {self._named(table)} WHERE {rows}").collect()

    def _rs_optimize(self, table: str) -> None:
        self._table(table).optimize.compact()

    def _rs_delete(self, table: str, rows: str) -> None:
        self._table(table).delete(rows)
