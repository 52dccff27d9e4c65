"""Tables with a key that are read whole from one view: foreign keys change their rows, and rows
below them, without row events.

In:  tables as their server shows them.
Out: the tables read so; the tables above them, locked where a view's place is the mark's.

A chunk may lack a row that a foreign key deleted, unlogged, after the low mark. No event has this
row, so the rows that went with it can't be found: those below it in a tree, or in a third table. A
view at exactly one place of the log (view_reading.py) has each row as it was there, and apply
follows all of them from this place on (spark_jobs/cascades/unsure.py). A transaction may change
such a table through its parents, without a row event of it, and perhaps without a lock on it. Therefore, on
MySQL, its parents are locked, too. On MariaDB a view lies between two commits.

A large table in the middle of a chain is read in chunks, since one view would need one statement
for all of its rows. If rows above it are deleted meanwhile, apply holds the tables below it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from tidegate.limits import SNAPSHOT_VIEW_ROWS_MAX
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.unlogged import ForeignKey
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.view_reading import TablesBusy

Name = tuple[str, str]

_PARENTS: Final = (
    "SELECT DISTINCT unique_constraint_schema, referenced_table_name FROM information_schema.referential_constraints"
    " WHERE delete_rule IN ('CASCADE', 'SET NULL') OR update_rule IN ('CASCADE', 'SET NULL')"
)


def read_by_view(
    versions: Mapping[Name, TableVersion], asked: WorkerConnection, estimates: Mapping[Name, int]
) -> set[Name]:
    """The tables with a key to be read so. estimates: rows of each table. Raises SourceRefused,
    SourceUnavailable.
    """
    acting = {name: keys for name, version in versions.items() if version.key and (keys := _acting(version))}
    if not acting or asked.is_tidb:
        return set()
    # With SELECT alone an account doesn't see constraints of other tables. A table whose constraints aren't seen is
    # read in chunks.
    parents = {_folded(name) for name in (*asked.ask(_PARENTS), *_parents(versions.values()))}
    return {
        name
        for name, keys in acting.items()
        if _is_tree(name, keys) or (_folded(name) in parents and estimates.get(name, 0) <= SNAPSHOT_VIEW_ROWS_MAX)
    }


class Beside:
    """The tables to lock beside those of a view at the mark's place: all tables with which they
    change, directly or through others. MariaDB tells a view's place, so none is locked there.
    """

    def __init__(self, tables: Collection[Name], asked: WorkerConnection, source: str) -> None:
        """Raises SourceRefused, SourceUnavailable."""
        self._tables, self._asked, self._source = tables, asked, source
        self.names = self._above()

    def check_same(self) -> None:
        """Call it while the lock is held. Raises TablesBusy if the foreign keys changed;
        SourceRefused, SourceUnavailable.
        """
        if self._above() != self.names:
            raise TablesBusy("their foreign keys changed as they were locked")

    def _above(self) -> list[Name]:
        if self._asked.is_mariadb:
            return []
        existing, seen, waiting = list[Name](), set(self._tables), set(self._tables)
        while waiting:
            versions = self._asked.versions(self._source, sorted(waiting))
            existing += versions
            waiting = _parents(versions.values()) - seen
            seen |= waiting
        return sorted(set(existing) - set(self._tables))


def _parents(versions: Iterable[TableVersion]) -> set[Name]:
    return {key.parent for version in versions for key in _acting(version)}


def _acting(version: TableVersion) -> list[ForeignKey]:
    return [key for key in version.foreign_keys if key.acts_unseen]


def _is_tree(name: Name, keys: Collection[ForeignKey]) -> bool:
    """Whether rows of a table change with its own rows, changed unseen."""
    changed = {column.lower() for key in keys for column in key.columns}
    goes = any(key.on_delete == "CASCADE" for key in keys)
    return any(
        _folded(key.parent) == _folded(name)
        and (goes or not changed.isdisjoint(column.lower() for column in key.parent_columns))
        for key in keys
    )


def _folded(name: Sequence[object]) -> Name:
    database, table = name
    return str(database).lower(), str(table).lower()
