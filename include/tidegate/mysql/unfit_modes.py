"""A table that can't have the mode that the pipeline file gives its silver: apply holds it.

In:  a pipeline, a table of a source.
Out: why; "" where it can.
"""

from __future__ import annotations

from tidegate.config import Pipeline
from tidegate.errors import SchemaMismatch
from tidegate.merge.past import check_modes
from tidegate.schema.model.columns import TableVersion


def unfit_mode(pipeline: Pipeline, version: TableVersion) -> str:
    """The same words as in the reason of the held table, with what to do."""
    database, table, routed = pipeline.tables.logical(version.database, version.table)
    try:
        check_modes(pipeline.tables.pasts(database, table), f"{database}.{table}", [version], routed=routed)
    except SchemaMismatch as error:
        return f"{error.what}; {error.remedy}"
    return ""
