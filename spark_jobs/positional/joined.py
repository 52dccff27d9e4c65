"""Write few new versions of rows into one file, together with the rows of small files. A window of a quiet table
leaves no small file behind.

In:  ended versions, current ones, and the places of dying rows.
Out: a Replacement.

It is tidegate/upsert/few_rows.py for tables with history, with the same bounds. A second file for ended versions would
double the cost of a small window, so one file has ended and current versions. The packing of small files separates them
(apply_steps/compact_silver.py). In a larger window each kind has a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from spark_jobs.positional.phase import Replacement
from tidegate.delta.table.live_file import LiveFile
from tidegate.lake.files import LakeFiles
from tidegate.upsert import few_rows
from tidegate.upsert.few_rows import Together
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import without
from tidegate.upsert.keys.probe_file import Hits


@dataclass(frozen=True, slots=True)
class NewVersions:
    """past: ended versions; now: current ones; each has one table or more. dying: places of silver's rows that go.
    whole: all rows of small files, by path.
    """

    past: Sequence[pa.Table]
    now: Sequence[pa.Table]
    dying: Sequence[Hits]
    whole: Mapping[str, pa.Table]


def joined(lake: LakeFiles, path: str, layout: FileLayout, files: Iterable[LiveFile], made: NewVersions) -> Replacement:
    """files: all live files of the table. path: of the table, relative to the lake."""
    past, now = (pa.concat_tables(map(layout.fit, parts)) for parts in (made.past, made.now))
    dies = any(len(hits.fresh) for hits in made.dying)  # False for an ended version that is found again
    if layout.partition_columns or not dies:  # new rows alone only add a file, as a stream of silver needs it
        return Replacement(made.dying, [past, now])
    together = few_rows.choose([past, now], files, made.dying)
    if not together.joined:
        return Replacement(together.others, [past, now])
    rows, gone, dying = [past, now], list[LiveFile](), list(together.others)
    for part in together.joined:
        file = part.file if isinstance(part, Hits) else part
        if isinstance(part, Hits) and file.path in made.whole:
            rows.append(without(made.whole[file.path], part.dead_after))
            gone.append(file)
        else:
            read, done = few_rows.read(lake, path, [], Together((part,), ()), layout)
            rows += read
            gone += done.files
            dying += done.others
    return Replacement(dying, [pa.concat_tables(rows)], gone)
