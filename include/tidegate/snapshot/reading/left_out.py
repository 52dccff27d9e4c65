"""Columns of a table that silver doesn't have, or not as the source has them, by the pipeline file.

In:  a pipeline file, a version of a table at its source.
Out: their names at the source.
"""

from __future__ import annotations

import pyarrow as pa

from tidegate.config import Pipeline
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.types import canonical


def left_out(pipeline: Pipeline, version: TableVersion) -> tuple[Column, ...]:
    """In the table's order."""
    kept = pipeline.tables.columns_of(*pipeline.tables.logical(version.database, version.table)[:2])
    return tuple(c for c in version.columns if kept.rules and not kept.take(c.name, of_key=c.id in version.key))


def not_of_its_type(pipeline: Pipeline, version: TableVersion) -> tuple[Column, ...]:
    """Those that silver has as a mask's text."""
    kept = pipeline.tables.columns_of(*pipeline.tables.logical(version.database, version.table)[:2])
    masked = (c for c in version.columns if kept.masks and kept.mask(c.name, c.comment) is not None)
    return tuple(column for column in masked if not pa.types.is_string(canonical(column).arrow))


def unasked(pipeline: Pipeline, version: TableVersion) -> frozenset[str]:
    """Names of those that don't decide which rows silver has either."""
    kept = pipeline.tables.columns_of(*pipeline.tables.logical(version.database, version.table)[:2])
    return frozenset() if kept.condition is not None else frozenset(c.name for c in left_out(pipeline, version))
