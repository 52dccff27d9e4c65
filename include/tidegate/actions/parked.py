"""Names of prepared transactions that nobody answered, as a person's word on one calls them.

In:  a Prewrite.
Out: its name, and the tables of silver that it wrote to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.table_names import splits

if TYPE_CHECKING:
    from tidegate.config import Pipeline
    from tidegate.segments.prewrites import Prewrite


def in_full(prewrite: Prewrite) -> str:
    """Two sources may have branches of one name, and a name may come again."""
    return f"{prewrite.source} {prewrite.id} {prewrite.start_ts}"


def tables_of(pipeline: Pipeline, *prewrites: Prewrite) -> tuple[str, ...]:
    """The logical tables that the pipeline keeps among those that they wrote to."""
    names = set[tuple[str, str]]()
    for prewrite in prewrites:
        names.update(*map(splits, prewrite.tables))
    return tuple(sorted({pipeline.tables.logical(*name).name for name in names if pipeline.tables.keeps(*name)}))
