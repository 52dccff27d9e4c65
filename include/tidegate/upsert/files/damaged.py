"""A damaged live file of silver, as the cause of a table's failed tries.

In:  a table's path under the lake, and its newest state.
Out: SilverDamaged of the first such file; None without one.

The positional writer meets such a file itself. MERGE only says that a task failed. Once its tries are over, the
table's files are looked at: footers and deletion vectors of DAMAGE_LOOK_FILES_MAX files, and the rows of
DAMAGE_LOOK_BYTES_MAX.
"""

from __future__ import annotations

import pyarrow as pa

from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import SilverDamaged
from tidegate.lake.files import LakeFiles
from tidegate.lake.storage.store_error import StoreError
from tidegate.limits import DAMAGE_LOOK_BYTES_MAX, DAMAGE_LOOK_FILES_MAX
from tidegate.remedy import DAMAGED
from tidegate.upsert.deletions import deletion_vector
from tidegate.upsert.files.open_file import opened


def first_damaged(lake: LakeFiles, path: str, state: TableState) -> SilverDamaged | None:
    """Raises LakeUnavailable, LakeRefused, StoreError."""
    left = DAMAGE_LOOK_BYTES_MAX
    for file in state.files[:DAMAGE_LOOK_FILES_MAX]:
        read_all = file.size <= left
        left -= file.size if read_all else 0
        try:
            _read(lake, path, file, read_all=read_all)
        except SilverDamaged as error:
            return error
    return None


def _read(lake: LakeFiles, path: str, file: LiveFile, *, read_all: bool) -> None:
    where = f"{path}/{file.local_path}"
    parquet = opened(lake, where)
    rows = parquet.metadata.num_rows
    if file.rows is not None and rows != file.rows:
        raise SilverDamaged(f"a data file has {rows} rows, the log says {file.rows}", where=where, remedy=DAMAGED)
    if file.deletion_vector is not None:
        deletion_vector.read(lake, path, file.deletion_vector)
    if read_all:
        try:
            for _ in parquet.iter_batches():
                pass
        except StoreError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise SilverDamaged(f"a data file can't be read: {error}", where=where, remedy=DAMAGED) from None
