"""The keys of an unfinished erasure, kept in the lake: after a kill bronze may not show them any more.

In:  a table, keys.
Out: an object of control/erasing from before the first change until all is done; then nothing.

Until then the lake has the rows themselves in files that aren't deleted yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Final

import pyarrow as pa

from tidegate.erase.subject import Key, key_types
from tidegate.lake.files import LakeFiles
from tidegate.schema.model.columns import TableVersion

FOLDER: Final = "control/erasing"


class KeptKeys:
    """newest: the table's version of today."""

    def __init__(self, lake: LakeFiles, newest: TableVersion) -> None:
        self._schema = pa.schema([(str(at), kind) for at, kind in enumerate(key_types(newest))])
        self._store = lake.store(FOLDER)
        self._name = hashlib.blake2b("\0".join(newest.physical).encode(), digest_size=16).hexdigest()

    def keys(self) -> set[Key]:
        """Those of an erasure of the table that was killed. Raises LakeUnavailable."""
        data = self._store.get(self._name)
        if data is None:
            return set()
        with pa.ipc.open_stream(data) as reader:
            rows = reader.read_all()
        return set(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    def note(self, keys: Collection[Key]) -> None:
        """Raises LakeUnavailable, LakeRefused."""
        columns = [pa.array([key[at] for key in keys], field.type) for at, field in enumerate(self._schema)]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema) as writer:
            writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))
        self._store.replace(self._name, sink.getvalue().to_pybytes())

    def forget(self) -> None:
        self._store.delete([self._name])


def kept_count(lake: LakeFiles) -> int:
    """The number of tables with an unfinished erasure. Raises LakeUnavailable."""
    return len(lake.store(FOLDER).names())
