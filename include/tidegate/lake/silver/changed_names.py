"""Tables of silver whose columns have other names than the pipeline file gives them
(tables.renames).

In:  a pipeline, its lake.
Out: a line for each such table. Apply holds it before it writes anything of it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tidegate import tables
from tidegate.config import Pipeline
from tidegate.delta.log import DeltaLog
from tidegate.delta.table.state import no_files
from tidegate.errors import TidegateError
from tidegate.lake.cuts.published import cut_at
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.silver_tables import renamed_in
from tidegate.limits import AT_ONCE_TABLES_MIN
from tidegate.silver_names import silver_column


def changed_names(lake: LakeFiles, pipeline: Pipeline) -> list[str]:
    """A line for each table with other names. A table that can't be read is skipped.

    Raises LakeUnavailable, CutNotYet.
    """
    kept = cut_at(lake, pipeline.pipeline).tables.values()

    def line(database: str, table: str) -> str:
        names = pipeline.tables.columns_of(database, table).names
        with suppress(TidegateError):
            place = lake.uri(tables.silver_path(database, table))
            state = DeltaLog(place, lake.storage_options, keep=no_files).state()
            own, has = renamed_in(state), {str(field["name"]).lower() for field in state.schema["fields"]}
            for name in sorted(own.keys() | names.keys()):
                named, due = (by.get(name, silver_column(name)) for by in (own, names))
                if named != due and named.lower() in has:
                    what = f"silver calls column {name} {named}, and tables.renames {due}"
                    return f"{database}.{table}: {what}: it is held until `tidegate rebuild --swap` makes it again"
        return ""

    with ThreadPoolExecutor(AT_ONCE_TABLES_MIN, "check") as pool:
        lines = pool.map(lambda table: line(table.database, table.table), kept)
        return sorted(filter(None, lines))
