"""A TiDB's side: its tables and rows as they were at a cut.

In:  a connection to TiDB's SQL port; cuts.
Out: the result of SourceSide, of the moment that the cut names.

A TiDB's cut is a timestamp of PD's, at which TiDB still shows its tables: columns, keys and rows. A read therefore has
no L and no C around it (settle.py), both are the cut, and what differs there differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from tidegate.commit_ts import time_text
from tidegate.config import KeptColumns
from tidegate.errors import SourceUnavailable, VerifyError
from tidegate.lake.bronze.captured_places import Visible
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.pump.at_timestamp import is_collected, seen_at
from tidegate.verify.source_side import SESSION, SourceSide


class TidbSide(SourceSide):
    """One TiDB while it is verified. Before the first `see` it shows what there is now."""

    reads_at_cuts: ClassVar[bool] = True

    def __init__(
        self,
        info: ConnectionInfo,
        kept: Callable[[str, str], KeptColumns],
        in_silver: Callable[[str, str], tuple[str, str]],
    ) -> None:
        """in_silver: database and table, as silver names them."""
        self._cut_ts, self._in_silver = 0, in_silver
        self._names: dict[tuple[str, str], tuple[str, str]] = {}
        super().__init__(info, kept)

    def _begin(self, version: str) -> None:
        if "tidb" not in version:
            raise VerifyError(
                f"the pipeline file calls it a TiDB, and the server calls itself {version}",
                where=self.info.where,
                remedy="give the source's conn_id the address of TiDB's SQL port",
            )
        self.mariadb, self._places = False, True

    def see(self, cut_ts: int) -> None:
        """Raises VerifyError when TiDB has forgotten that moment."""
        self._cut_ts = cut_ts
        self._session = f"{SESSION}, {seen_at(cut_ts)}"
        self.ask(self._session)

    def look(self) -> Visible:
        return Visible("", 0, at_ts=self._cut_ts)

    def looked(self) -> None:
        pass

    def tables(self, keeps: Callable[[str, str], bool]) -> list[tuple[str, str]]:
        """The source's tables, by their names in silver."""
        at_source = super().tables(lambda database, table: keeps(*self._in_silver(database, table)))
        self._names |= {self._in_silver(*name): name for name in at_source}
        return [self._in_silver(*name) for name in at_source]

    def _shown(self, database: str, table: str) -> tuple[str, str]:
        """TiDB finds a name whatever the case, but for parts of its information_schema."""
        return self._names.get((database, table), (database, table))

    def _charset(self, declared: str) -> str:
        """TiDB has all text in UTF-8, and not each character set's introducer."""
        return "utf8mb4" if declared else ""

    def ask(self, sql: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        try:
            return super().ask(sql, values)
        except SourceUnavailable as error:
            self._check_kept(error)
            raise

    def _stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        try:
            yield from super()._stream(sql)
        except SourceUnavailable as error:
            self._check_kept(error)
            raise

    def _check_kept(self, error: SourceUnavailable) -> None:
        """Raises VerifyError when TiDB has forgotten the cut."""
        if is_collected(error):
            raise VerifyError(
                f"TiDB's garbage collection has passed the cut at {time_text(self._cut_ts)}: {error.what}",
                where=self.info.where,
                remedy="let apply publish a younger cut (tidegate status says how old the newest is), or raise"
                " tidb_gc_life_time there above a cut's age and the time that reading a table takes",
            ) from error.__cause__
