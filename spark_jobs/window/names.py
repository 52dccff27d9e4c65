"""The followed physical tables, and the logical table of each.

In:  the pipeline's table patterns and routes, schema histories.
Out: Names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tidegate import tables
from tidegate.config import OWN_DATABASES, Pipeline
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.window import SegmentRef
from tidegate.table_names import Logical, Physical, splits

# A shadow whose versions all have these statuses is older than the followed log.
_NOT_BORN: Final = (VersionStatus.UNPROVEN, VersionStatus.DROPPED)


class Names:
    """histories: by source. Names are looked up in their present state."""

    def __init__(self, pipeline: Pipeline, histories: Mapping[str, SchemaHistory]) -> None:
        self._pipeline = pipeline
        self._histories = histories
        self._pairs: dict[str, tuple[str, str]] = {}  # logical name -> database and table
        self._flows: tuple[list[int], dict[str, set[Physical]]] = ([], {})

    def logical(self, database: str, table: str) -> Logical:
        """The logical table of a physical one."""
        logical = self._pipeline.tables.logical(database, table)
        self._pairs[logical.name] = (logical.database, logical.table)
        return logical

    def logical_name(self, database: str, table: str) -> str:
        """`database.table` of a physical table's logical one: the key of states and windows."""
        return self.logical(database, table).name

    def pair(self, name: str) -> tuple[str, str]:
        """Database and table of a logical table's name, perhaps with more than one dot."""
        if name not in self._pairs:
            for history in self._histories.values():
                for database, table in history.tables():
                    self.logical(database, table)
        return self._pairs.get(name) or splits(name)[0]

    def flows(self) -> Mapping[str, Collection[Physical]]:
        """Every kept logical table known to histories, and its physical ones."""
        sizes = [history.names for history in self._histories.values()]
        if self._flows[0] != sizes:
            flows: dict[str, set[Physical]] = {}
            for source, history in self._histories.items():
                for database, table in history.tables():
                    if self.keeps(source, database, table):
                        flows.setdefault(self.logical_name(database, table), set()).add(
                            Physical(source, database, table)
                        )
            self._flows = (sizes, flows)
        return self._flows[1]

    def forget_flows(self) -> None:
        """Forget the names: histories were read anew, and may have the same number of names, but
        others.
        """
        self._flows = ([], {})

    def in_segment(self, ref: SegmentRef) -> Iterator[tuple[str, str]]:
        """Every kept table, physical, perhaps touched by a segment, as its row in bronze says."""
        return self.kept(ref.source, ref.tables)

    def kept(self, source: str, named: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The same of the names in a segment, or a prewrite, of its source."""
        history = self._histories.get(source)  # none of a source that left the pipeline
        for text in named:
            if text == tables.EVERY_TABLE:
                names: Sequence[tuple[str, str]] = history.tables() if history else ()
            else:
                names = splits(text)
                if len(names) > 1:  # a name with a dot: as the table that there is
                    names = [name for name in names if history and history.versions(*name)] or names
            for name in names:
                if self.keeps(source, *name):
                    yield name

    def keeps(self, source: str, database: str, table: str) -> bool:
        """Whether a physical table is followed into silver: the pipeline's own, and shadows of
        theirs.

        A shadow is followed from its CREATE TABLE in the log; not all rows of an older one are
        known.
        """
        entry = self._pipeline.sources.get(source)
        if entry is None or (entry.traits.logs_own_tables and database in OWN_DATABASES):
            return False  # TiDB logs rows of its own tables too
        if source in self._histories and self._histories[source].is_sequence((database, table)):
            return False
        patterns = self._pipeline.tables
        return patterns.keeps(database, table) or (
            patterns.shadows(database, table)
            and source in self._histories
            and any(version.status not in _NOT_BORN for version in self._histories[source].versions(database, table))
        )
