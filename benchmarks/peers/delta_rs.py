"""Changes that delta-rs merges into a Delta table, in a process of its own.

In:  per run one line of JSON on standard input: {"target", "changes", "key", "deleted"}; target: a Delta table's
     folder; changes: a Parquet file of the last row of each changed key, in the table's columns, and `deleted`.
Out: one line of JSON: {"rows": rows inserted, updated and deleted, "values": as many}.

program() makes it obtainable: pip.py fetches the pinned package. pyarrow, which reads the changes, is tidegate's own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

NAME: Final = "delta-rs 1.6.6 merge"
_PACKAGE: Final = "deltalake==1.6.6"


def program(cache: Path) -> list[str]:
    """The command that runs this file with the package. Raises Missing."""
    from benchmarks.peers import pip

    return pip.program(__file__, pip.folder_of(NAME, _PACKAGE, cache, needs=True))


def merge(asked: dict[str, Any]) -> dict[str, int]:
    """One merge, one commit."""
    import pyarrow.parquet as pq
    from deltalake import ColumnProperties, DeltaTable, WriterProperties

    key, deleted = asked["key"], asked["deleted"]
    changes = pq.read_table(asked["changes"])
    values = {name: f"s.{name}" for name in changes.column_names if name != deleted}
    merging = DeltaTable(asked["target"]).merge(
        changes,
        f"t.{key} = s.{key}",
        source_alias="s",
        target_alias="t",
        # As we write: no text is twice there. It made no difference that could be told from noise.
        writer_properties=WriterProperties(
            compression="SNAPPY", default_column_properties=ColumnProperties(dictionary_enabled=False)
        ),
    )
    merging = merging.when_matched_delete(f"s.{deleted}").when_matched_update(values)
    done = merging.when_not_matched_insert(values, f"NOT s.{deleted}").execute()
    rows = sum(done[f"num_target_rows_{what}"] for what in ("inserted", "updated", "deleted"))
    return {"rows": rows, "values": rows}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(merge(json.loads(line))), flush=True)
