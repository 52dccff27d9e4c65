"""The changes of the lake's format, by number: a line of MIGRATIONS for each change.

In:  nothing; this is data, and pure functions.
Out: MIGRATIONS, in order of their numbers; the format's version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from tidegate.lake.format import known_apart, typed_causes

Convert = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True, slots=True)
class Migration:
    """One change of one control table.

    number: the format with this change is FIRST_FORMAT + number. Changes of several tables may have
    one number. what: for people, in a few words. old: the names of the table's columns before the
    change. A table is recognised by them, so the new names must differ. later: those of the old
    columns, nullable, newer than the table's first release. An older lake may lack some: its rows
    have null there. convert: rows with the old columns -> rows with the columns of tables/, or of
    the table's next change, with the right types also for no rows. It is pure. It gets a piece of
    the table at a time (first an empty one, to see the columns), and each row only from its own old
    row. None: nullable columns were added, and readers have null for them.
    """

    number: int
    path: str
    what: str
    old: frozenset[str] = frozenset()
    convert: Convert | None = None
    later: tuple[pa.Field, ...] = ()

    def is_of(self, names: Collection[str]) -> bool:
        """Whether this converts a table with these columns."""
        may_lack = {field.name for field in self.later}
        return self.convert is not None and self.old - may_lack <= set(names) <= self.old

    def converted(self, rows: pa.Table) -> pa.Table:
        """Rows of such a table after this change."""
        assert self.convert is not None, "a change without it is no step"
        for field in self.later:
            if field.name not in rows.column_names:
                rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        return self.convert(rows)


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        1,
        "control/table_states",
        "why a table waits, in columns of its own",
        typed_causes.STATES_BEFORE,
        typed_causes.states,
    ),
    Migration(
        1, "control/followed", "what was a sign is a column: whole", typed_causes.FOLLOWED_BEFORE, typed_causes.followed
    ),
    Migration(
        2,
        "control/table_states",
        "what a table is known for beside its cause, in columns of its own",
        known_apart.STATES_BEFORE,
        known_apart.states,
    ),
    Migration(2, "control/cuts", "by what silver's log is known: silver_id, silver_ts"),
    Migration(2, "control/actions", "a new table: what people did"),
    Migration(3, "control/cuts", "how large silver is: silver_rows, silver_files, silver_bytes"),
    Migration(4, "control/schema_history", "comments of tables: comment"),
    Migration(5, "control/usage", "a new table: what capture and apply used"),
)

# The first format that a lake records itself; a lake without control/format has format 0.
FIRST_FORMAT: Final = 1


def newest_format() -> int:
    """The format this release writes."""
    return FIRST_FORMAT + max((migration.number for migration in MIGRATIONS), default=0)
