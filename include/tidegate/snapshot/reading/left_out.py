"""Columns of a table that silver doesn't have, or not as the source has them, by the pipeline file.

In:  a pipeline file, a version of a table at its source.
Out: these columns, in the table's order; names at the source.
"""

from __future__ import annotations

import pyarrow as pa

from tidegate.config import KeptColumns, Pipeline
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.types import canonical


def left_out(pipeline: Pipeline, version: TableVersion) -> list[Column]:
    """Columns that silver doesn't have."""
    rules, columns = _rules(pipeline, version), list[Column]()
    for column in version.columns if rules.rules else ():
        if not rules.take(column.name, of_key=column.id in version.key):
            columns.append(column)
    return columns


def not_of_its_type(pipeline: Pipeline, version: TableVersion) -> list[Column]:
    """Columns that silver has as a mask's text."""
    rules, columns = _rules(pipeline, version), list[Column]()
    for column in version.columns if rules.masks else ():
        is_text = pa.types.is_string(canonical(column).arrow)
        if not is_text and rules.mask(column.name, column.comment) is not None:
            columns.append(column)
    return columns


def unasked(pipeline: Pipeline, version: TableVersion) -> frozenset[str]:
    """Names of columns that silver doesn't have, nor asks for which rows it has."""
    if _rules(pipeline, version).condition is not None:
        return frozenset()
    return frozenset(column.name for column in left_out(pipeline, version))


def _rules(pipeline: Pipeline, version: TableVersion) -> KeptColumns:
    return pipeline.tables.columns_of(*pipeline.tables.logical(version.database, version.table)[:2])
