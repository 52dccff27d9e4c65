"""The columns of a table on both sides, before its rows are compared.

In:  a table under way, with its definition at the source and its silver; the lake.
Out: ColumnDifferences. Columns of silver's owner, and masked ones, are noted in the table under way, and differ from
     nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from operator import attrgetter
from typing import Final

from tidegate import tables
from tidegate.config import Tables
from tidegate.verify.columns.column_types import other_types
from tidegate.verify.cut import LakeReader
from tidegate.verify.report import ColumnDifference
from tidegate.verify.silver_side import SilverSide
from tidegate.verify.under_way import TableUnderWay

_ENDS: Final = (
    "a `tidegate snapshot start` of the table ends that; so does `tidegate rebuild --swap`, with its deleted rows and"
    " old versions as they were"
)


def other_columns(
    rules: Tables, lake: LakeReader, side: SilverSide, work: TableUnderWay, path: str
) -> tuple[ColumnDifference, ...]:
    """Columns that silver lacks, has alone, or has with another type than the due one. path: of silver in the lake."""
    table, silver = work.table, work.silver
    assert table is not None, "it was read"
    assert silver is not None, "it is about to be compared"
    work.computed = rules.columns_of(*rules.logical(work.database, work.name)[:2]).computed
    due = {form.due_name: form.due_type for form in table.forms}
    due.update(map(attrgetter("name", "type"), work.computed))
    held = side.types(silver.address, silver.version)
    own = [name for name in held if not name.startswith(tables.SYSTEM_PREFIX)]
    missing, extra = sorted(set(due) - set(own)), sorted(set(own) - set(due))
    work.masked = lake.masked_columns(path, extra)
    extra = [name for name in extra if name not in work.masked]
    work.owners = () if missing or work.only else lake.owners_columns(work.physical, path, extra)
    differing = [ColumnDifference(name, due[name], "") for name in missing]
    if missing or (len(extra) > len(work.owners) and not work.only):
        differing += (ColumnDifference(name, "", held[name]) for name in extra)
    other = list(other_types(due, held, routed=bool(work.only)))
    widened = lake.widened_columns(path, [column.name for column in other])
    return (*differing, *(column for column in other if column.name not in widened))


def note_computed(side: SilverSide, work: TableUnderWay) -> None:
    """Take in the rows whose computed columns aren't what silver's other columns give."""
    assert work.silver is not None, "it was compared"
    others = side.otherwise(work.silver, work.computed)
    work.computed_rows = max(others.values(), default=0)
    if work.computed_rows:
        named = ", ".join(f"{name} in {count} rows" for name, count in others.items() if count)
        work.reason = f"other values than tables.computed gives: {named}; run `tidegate snapshot start` for it"


def why_columns(columns: Collection[ColumnDifference]) -> str:
    """The difference in a sentence, for people."""
    parts = []
    if missing := [column.name for column in columns if not column.silver]:
        parts.append(f"silver lacks {', '.join(missing)}")
    if extra := [column.name for column in columns if not column.source]:
        parts.append(f"only silver has {', '.join(extra)}")
    if other := [column for column in columns if column.source and column.silver]:
        listed = (f"{column.name} is {column.silver} in silver, and {column.source} is due" for column in other)
        parts.append("; ".join(listed))
    return f"columns differ: {'; '.join(parts)}; {_ENDS}"
