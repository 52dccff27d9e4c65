"""Silver's names of columns, where a pipeline file renames some (tables.renames).

In:  the names of a logical table, versions of its physical tables, silver's own properties.
Out: SchemaMismatch where silver can't be right so.

Versions in an application have silver's names already (schema/model/renamed.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from spark_jobs.window.shape.silver_types import made_anew
from tidegate.delta.table.state import TableState
from tidegate.errors import RuleChanged
from tidegate.lake.silver.silver_tables import renamed_in
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.renamed import Names
from tidegate.silver_names import silver_column

_SECTION: Final = "tables.renames"


def check_same_names(shape: SilverShape, names: Names, versions: Iterable[TableVersion], state: TableState) -> None:
    """Raise RuleChanged where silver has another name of a column in these versions. A column that comes with them
    gets its name by the rules of now.
    """
    own = renamed_in(state)
    if not state.created or own == names:
        return
    has = {str(field["name"]).lower() for field in state.schema["fields"]}
    known = {column.name.lower(): silver_column(column.name) for version in versions for column in version.columns}
    other = sorted(
        name
        for name, plain in known.items()
        if (named := own.get(name, plain)) != names.get(name, plain) and named.lower() in has
    )
    if other:
        of = ", ".join(other)
        raise RuleChanged(
            f"silver's name of column {of} isn't as {_SECTION} says",
            where=state.place,
            remedy=made_anew(shape, _SECTION),
        )
