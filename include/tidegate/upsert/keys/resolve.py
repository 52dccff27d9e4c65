"""The last change per key of a phase, over all its key files.

In:  key files, in any order.
Out: the table of keys to look for in silver, and the staged rows that lost against a later change.

It is right because a change has the whole row or its absence: earlier changes, in the order
(commit_ts, source, seq, ordinal), don't matter. It takes 75 to 112 bytes of memory per change
beyond the files, and 45 to 75 per key while the table lives: slots are a power of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.errors import LakeRefused, UnsupportedValue
from tidegate.upsert.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.upsert.kernel.table import insert_last
from tidegate.upsert.keys.file import DELETED, Int64s, KeyFile
from tidegate.upsert.keys.probe_table import KeyTable, sizes


@dataclass(frozen=True, slots=True)
class NewFile:
    """A staged data file. add: its action. losers: ascending positions of rows that a later change replaced."""

    add: Mapping[str, Any]
    losers: Int64s


@dataclass(frozen=True, slots=True)
class Resolved:
    """table: every key of the phase. files: every staged data file. few: rows that no file has yet, without those that
    a later change replaced. changes: records read.
    """

    table: KeyTable
    files: tuple[NewFile, ...]
    few: tuple[pa.Table, ...]
    changes: int


def resolve(key_files: Sequence[KeyFile]) -> Resolved:
    """Raises LakeRefused when files don't belong together, UnsupportedValue for a key that holds a NULL."""
    assert key_files, "a phase has changes"
    first = key_files[0]
    for other in key_files[1:]:
        if other.seed != first.seed or other.key_schema != first.key_schema:
            raise LakeRefused(
                "key files of different keys in one phase",
                remedy="start apply again: it makes such files anew from bronze",
            )
    changes = sum(file.changes for file in key_files)
    several = len(key_files) > 1
    hashes = np.ascontiguousarray(np.concatenate([file.hashes for file in key_files]) if several else first.hashes)
    slots, words = sizes(changes)
    table = np.zeros(L.TABLE_WORDS, np.int64)
    held, bits = np.zeros((slots, 2), np.uint64), np.zeros(words, np.uint64)
    table[L.SLOTS], table[L.SLOT_MASK] = held.ctypes.data, slots - 1
    table[L.FILTER], table[L.FILTER_MASK] = bits.ctypes.data, 64 * words - 1
    owners, lost = np.empty(slots, np.int32), np.zeros(changes, np.uint8)
    table[L.OWNERS] = owners.ctypes.data
    orders = _orders(key_files, changes)
    places = (hashes.ctypes.data, orders.ctypes.data, orders.shape[1], changes, table.ctypes.data, lost.ctypes.data)
    keys = int(insert_last(*places))
    if keys < 0:
        raise UnsupportedValue("a key holds NULL", remedy="set apply.writer: merge in the pipeline file")
    del places, hashes, orders, owners  # before the leads are copied: they are as large
    leads, sorted_by = _leads(key_files, lost)
    made = KeyTable(keys, held, bits, leads, sorted_by, first.seed, first.key_schema)
    return Resolved(made, *_new_rows(key_files, lost), changes)


def _orders(key_files: Sequence[KeyFile], changes: int) -> Int64s:
    """int64[changes, 4]: commit_ts, source's place among the sources, seq, ordinal."""
    sources = sorted({file.source for file in key_files})
    orders, at = np.empty((changes, 4), np.int64), 0
    for file in key_files:
        rows = orders[at : at + file.changes]
        rows[:, 0], rows[:, 1] = file.commit_ts, sources.index(file.source)
        rows[:, 2], rows[:, 3] = file.seq, file.ordinal
        at += file.changes
    return orders


def _leads(key_files: Sequence[KeyFile], lost: Any) -> tuple[Int64s, int]:
    """Leads of the winners, sorted by the column with the most values, and its number."""
    leads = np.concatenate([file.leads for file in key_files], axis=1)
    if lost.any():
        leads = np.ascontiguousarray(leads[:, lost == 0])
    if len(leads) == 1:
        leads.sort(axis=1)
        return leads, 0
    by = int(np.argmax([len(np.unique(column)) for column in leads]))
    in_order = np.argsort(leads[by], kind="stable")
    for column in leads:
        column[:] = column[in_order]
    return leads, by


def _new_rows(key_files: Sequence[KeyFile], lost: Any) -> tuple[tuple[NewFile, ...], tuple[pa.Table, ...]]:
    files, few, at = list[NewFile](), list[pa.Table](), 0
    for file in key_files:
        gone = (lost[at : at + file.changes] == 1) & (file.row != DELETED)
        at += file.changes
        for index, add in enumerate(file.adds):
            of_file = gone & (file.file == index)
            files.append(NewFile(add, np.sort(file.row[of_file])))
        if file.rows is not None:
            live = np.ones(file.rows.num_rows, np.bool_)
            live[file.row[gone]] = False
            few.append(file.rows if live.all() else file.rows.filter(pa.array(live)))
    return tuple(files), tuple(rows for rows in few if rows.num_rows)
