"""A table that can't have the mode or the columns of the pipeline file: apply holds it.

In:  a pipeline, a table of a source.
Out: why; "" where it can.
"""

from __future__ import annotations

from tidegate.config import Pipeline
from tidegate.errors import SchemaMismatch
from tidegate.masks.mask_keys import MaskKey
from tidegate.merge.computed import check_computed
from tidegate.merge.conditioned import check_condition
from tidegate.merge.kept import Kept, check_kept, in_silver
from tidegate.merge.past import check_modes
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.renamed import under_names


def unfit_mode(pipeline: Pipeline, version: TableVersion) -> str:
    """The reason against the table's mode, in the words of the held table's own reason, with the remedy."""
    database, table, _ = pipeline.tables.logical(version.database, version.table)
    try:
        check_modes(pipeline.tables.pasts(database, table), f"{database}.{table}", [version])
    except SchemaMismatch as error:
        return f"{error.what}; {error.remedy}"
    return ""


def unfit_rules(pipeline: Pipeline, version: TableVersion) -> str:
    """The reason against the table's tables.columns, masks, rows, renames or computed."""
    database, table, _ = pipeline.tables.logical(version.database, version.table)
    rules = pipeline.tables.columns_of(database, table)
    keys = {rule.key_conn_id for rule in rules.masks} - {None}
    anonymous = {conn_id: MaskKey(b"") for conn_id in keys if conn_id is not None}
    kept, named = Kept(rules, anonymous), under_names(version, rules.names)
    try:
        check_kept(kept, named)
        if rules.condition is not None:
            check_condition(rules.condition, named)
        check_computed(rules.computed, in_silver(kept, named))
    except SchemaMismatch as error:
        return f"{error.what}; {error.remedy}"
    return ""
