"""Load the kernels of the positional upsert before work comes, as binlog/warm.py does for the decoder's.

In:  nothing.
Out: kernels compiled, from the cache on disk when it holds them, and run once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tidegate.compiled import load_all
from tidegate.upsert.keys.file import KeyFile
from tidegate.upsert.keys.file_index import indexed
from tidegate.upsert.keys.hash import SEED, Cells, key_hashes, leads
from tidegate.upsert.keys.resolve import resolve
from tidegate.upsert.row_hash import row_hashes


def warm() -> None:
    """Load all kernels, and use them."""
    assert pyarrow.parquet is not None  # imported for its side effect: forked workers share it
    key = pa.array([1, 2], pa.int64())
    none = np.zeros(2, np.int64)
    keys = KeyFile(
        source="warm",
        key_schema=pa.schema([("id", pa.int64()), ("part", pa.int64())]),
        seed=SEED,
        hashes=key_hashes([key, key]),
        commit_ts=none,
        seq=none,
        ordinal=none,
        file=np.zeros(2, np.int32),
        row=none,
        leads=np.array([leads(key), leads(key)]),
        adds=(),
    )
    table = resolve([keys]).table
    table.probe(Cells([key, key]))
    table.may_lie_in(np.array([[0, 2], [0, 2]], np.int64))
    row_hashes({"id": key})
    indexed(table.hashes, exact=False).find(table.hashes)
    load_all()


if __name__ == "__main__":
    warm()
