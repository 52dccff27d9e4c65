"""Whether the parts of a table that foreign keys compare stay the same in a window.

In:  versions of a table, the columns that rules look at.
Out: a doubt where they change; a window that ends before may be followed.
"""

from __future__ import annotations

from spark_jobs.cascades.logged import Looked, Name
from tidegate.cascades.values import TooLarge
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.replay.history import SchemaHistory


def check_shape(history: SchemaHistory, name: Name, looked: Looked, cut_ts: int) -> None:
    """Raises TooLarge up to the first change behind where it begins, and up to cut_ts."""
    before = history.version_at(*name, looked.begin_ts + 1)
    shape = None if before is None else _shape_of(before, looked)
    for version in history.versions(*name):
        if not looked.begin_ts < version.commit_ts <= cut_ts:
            continue
        if shape is not None and _shape_of(version, looked) != shape:
            why = f"columns of {'.'.join(name)} that foreign keys compare changed meanwhile"
            doubt = TooLarge(why, name if looked.key is not None else None, parent=name)
            doubt.upto_ts = version.commit_ts - 1
            raise doubt
        shape = _shape_of(version, looked)


def _shape_of(version: TableVersion, looked: Looked) -> tuple[object, ...]:
    """The parts of a version on which rules, and the key of rows that are followed, hang."""
    columns = tuple((c.silver, c.type, c.collation) for c in version.columns if c.silver in looked.cells)
    return (columns, version.silver_key if looked.key is not None else ())
