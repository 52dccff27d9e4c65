"""Delete, by position, all rows of a table that have the same texts in some columns, as the rows of a shard have.

In:  live files, the columns and their texts.
Out: the effect of a commit on them. Only these columns are read, of files whose statistics don't
     rule the texts out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tidegate.delta.table.live_file import LiveFile
from tidegate.lake.files import LakeFiles
from tidegate.upsert.actions import Actions, replaced
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.keys.candidates import candidates
from tidegate.upsert.keys.file import DELETED, KeyFile
from tidegate.upsert.keys.hash import SEED, key_hashes, leads
from tidegate.upsert.keys.probe_file import probe_file
from tidegate.upsert.keys.probe_table import KeyTable
from tidegate.upsert.keys.resolve import resolve


class Group:
    """texts: column -> what all of its rows have there."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        columns = [pa.array([text]) for text in texts.values()]
        zero = np.zeros(1, np.int64)
        keys = KeyFile(
            source="",
            key_schema=pa.schema([(name, pa.string()) for name in texts]),
            seed=SEED,
            hashes=key_hashes(columns),
            commit_ts=zero,
            seq=zero,
            ordinal=zero,
            file=np.zeros(1, np.int32),
            row=np.full(1, DELETED, np.int64),
            leads=np.stack([leads(column) for column in columns]),
            adds=(),
        )
        self._table: KeyTable = resolve([keys]).table

    def files(self, among: Iterable[LiveFile]) -> list[LiveFile]:
        """Those that may have rows of it."""
        return candidates(among, self._table)

    def deleted(self, lake: LakeFiles, path: str, files: Sequence[LiveFile]) -> Actions:
        """The actions that delete its rows. Raises SchemaMismatch, LakeRefused or LakeUnavailable if a file can't be
        read.
        """
        hits = [probe_file(lake, path, file, self._table) for file in files]
        with VectorWriter(lake, path) as vectors:
            return replaced(hits, vectors)
