"""The questions that a mode of silver answers. None has a default, so a new mode can't leave one
out.

In:  nothing; this is the form.
Out: Past: facts, SQL conditions and values, and the steps of a changed row on its way into silver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate import tables
from tidegate.merge.column import SilverColumn
from tidegate.schema.model.columns import TableVersion


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Past(ABC):
    """word: the key of the pipeline file's section `tables`. title, kept: for people, the kept
    things, and the rows beside the live ones.

    columns: its own, after _tg_commit_ts. mark: the one to know its tables by. begun: SQL of each in a row without
    them. taken: SQL of those with another value in a row brought by a rename, {commit_ts} being the rename's. live: SQL
    condition of the source's rows. open: the same, and rows left without a mark by another writer. stamp: SQL of a
    row's _tg_commit_ts, where another writer took that away. ended_in: a column, null in live rows alone, so files
    without them are kept apart; "" for none.

    was_live, came_since: where silver knows of later changes, SQL conditions of the rows live before {commit_ts}, and
    of those begun since; the latter is "" in a mode with a row per key.

    rows_stay: rows of the past are in silver, also after TRUNCATE and DROP TABLE. versions: a key may have several
    rows, an ended one per version: such a mode is written by version_sql.py and positional/versions.py. whole_deletes:
    a delete has to bring the whole row. moves_along: rows of the past go with a renamed table. takes_rows: it fits
    tables.rows.
    """

    word: str
    title: str
    kept: str
    columns: tuple[SilverColumn, ...]
    mark: str
    begun: Mapping[str, str]
    taken: Mapping[str, str]
    live: str
    was_live: str
    came_since: str
    open: str
    stamp: str
    ended_in: str
    rows_stay: bool
    versions: bool
    whole_deletes: bool
    moves_along: bool
    takes_rows: bool

    @abstractmethod
    def ended(self, commit_ts: int | str) -> dict[str, str]:
        """SQL of each changed column, as a live row ends at a commit_ts."""

    @abstractmethod
    def staged(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        """Decoded changes of a keyed table (TableChanges.batch) as they are staged: a delete may become an upsert.

        A mode without `versions` adds its columns here, as the last ones.
        """

    @abstractmethod
    def live_rows(self, rows: pa.Table) -> pa.Table:
        """The rows of the source among silver's."""

    @abstractmethod
    def check(self, versions: Sequence[TableVersion]) -> None:
        """Raise SchemaMismatch for a table whose rows of the past couldn't be right."""

    def assigned(self, commit_ts: int) -> str:
        """SQL assignments: live rows end at a commit_ts."""
        return ", ".join(f"{name} = {value}" for name, value in self.ended(commit_ts).items())

    def net_key(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """The columns of equal changes: the last one counts."""
        return (*key, tables.COMMIT_TS) if self.versions else key

    @property
    def whole_word(self) -> str:
        """The key behind whole_deletes, for people; "" for none."""
        return self.word if self.whole_deletes else ""

    @property
    def staged_columns(self) -> tuple[SilverColumn, ...]:
        """The columns added by `staged`."""
        return () if self.versions else self.columns
