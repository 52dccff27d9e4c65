"""Find rows of a routed silver table that belong to none of its shards, since each shard is compared only with its own
rows.

In:  a silver table at a version, the shards that were compared, the lake's schema history.
Out: a result with the number of live rows without a shard, or with a shard that now flows into another table; or none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from tidegate import tables
from tidegate.config import Pipeline
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.shards import of_no_shard
from tidegate.verify.report import Outcome, TableResult
from tidegate.verify.silver_side import Silver, SilverSide

STRAY: Final = (
    f"rows belong to no shard by {', '.join(tables.SHARDS)}; another writer brought them, or routes bring their table"
    " elsewhere since:"
    " the end of a `tidegate snapshot start` of the table removes them"
)


def strays(
    side: SilverSide,
    silver: Silver,
    known: Collection[tuple[str, str, str]],
    of: tuple[LakeFiles, Pipeline, str],
) -> Iterator[TableResult]:
    """known: source, database and table of the shards at the sources. of: the lake, its file, the name in silver."""
    rows = {cells: count for cells, count in side.shards(silver) if cells not in known}
    if count := sum(rows[cells] for cells in of_no_shard(*of, rows)):
        yield TableResult("", of[2], of[2], Outcome.DIFFERENT, STRAY, silver_rows=count)
