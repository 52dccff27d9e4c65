"""Rows that TiDB logs twice, because it wrote them twice.

In:  a table's mutations in a transaction, in the order in which they were done.
Out: the same without those of the second writing.

While a job moves a table's rows into new partitions (REORGANIZE PARTITION, PARTITION BY, REMOVE
PARTITIONING), TiDB writes each change to the old partitions and then to the new ones. Its binlog
has both: an INSERT, an UPDATE or a DELETE comes twice. In one state of the job the new partitions
only take deletes. Then an UPDATE is followed by the DELETE of its old row: taken literally, that
would remove a present row. No history has a job's state at a transaction. It isn't needed: the
second writing begins from a row that the first one changed, unlike any other change. Source:
partitionedTableUpdateRecord in pkg/table/tables/partition.go.

In a table without a key the new partitions give their rows new numbers, so a row that is inserted
twice looks like two rows. They stay so: the table's rows are read anew after such a job
(live_tables.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from tidegate.errors import DecodeError
from tidegate.tidb.codec.datum import Value, datums
from tidegate.tidb.jobs import ROWID
from tidegate.tidb.records.payload import Mutation, mutations_of

Told: TypeAlias = tuple[Mutation, bytes]


def changes_of(prewrite_value: bytes) -> Iterator[tuple[int, Mutation, bytes]]:
    """As mutations_of, each once. Raises StreamCorrupt."""
    for table_id, mutations in groupby(mutations_of(prewrite_value), itemgetter(0)):
        for kind, row in told_once((kind, row) for _, kind, row in mutations):
            yield table_id, kind, row


def told_once(mutations: Iterable[Told]) -> list[Told]:
    """Raises StreamCorrupt."""
    kept: list[Told] = []
    refused: bytes | None = None  # an UPDATE whose second writing was a DELETE, which came right before
    for kind, row in mutations:
        last = kept[-1] if kept else None
        before, refused = refused, None
        if last == (kind, row):
            continue
        if last is None:
            pass
        elif kind is Mutation.DELETE and last[0] is Mutation.UPDATE and _begins(last[1], row):
            refused = last[1]
            continue
        elif kind is Mutation.DELETE and len(kept) > 1 and _is_second(kept[-2], last, row):
            kept.pop()
            continue
        elif kind is Mutation.UPDATE and last[0] is Mutation.DELETE:
            if len(kept) > 1 and kept[-2][0] is Mutation.INSERT and _is_moved(row, kept[-2][1], last[1]):
                continue
        elif kind is Mutation.INSERT and before is not None and _ends(before, row):
            continue
        kept.append((kind, row))
    return kept


def _is_second(update: Told, insert: Told, deleted: bytes) -> bool:
    """Whether the INSERT and the DELETE of a row that lies in another partition now are the UPDATE once more."""
    if update[0] is not Mutation.UPDATE or insert[0] is not Mutation.INSERT:
        return False
    return _is_moved(update[1], insert[1], deleted)


def _is_moved(update: bytes, insert: bytes, deleted: bytes) -> bool:
    """Whether an UPDATE is what an INSERT and a DELETE did.

    A DELETE alone isn't enough: UPDATE IGNORE logs one for a row that stays because its new key would be another row's.
    The transaction may change that row later.
    """
    return _begins(update, deleted) and _ends(update, insert)


def _begins(update: bytes, image: bytes) -> bool:
    """Whether an UPDATE found this very row, and changed it."""
    with suppress(DecodeError):  # who asks for the table is told of it then
        return _found(update, image)
    return False


def _ends(update: bytes, insert: bytes) -> bool:
    """Whether an INSERT has the row that an UPDATE left, in a table whose rows have numbers."""
    with suppress(DecodeError):
        return _left(update, insert)
    return False


def _found(update: bytes, image: bytes) -> bool:
    old, new = _sides(update)
    before = _pairs(datums(image))
    common = old.keys() & before.keys()
    if not common or old.keys() != new.keys():
        return False
    return all(old[id_] == before[id_] for id_ in common) and any(old[id_] != new[id_] for id_ in common)


def _left(update: bytes, insert: bytes) -> bool:
    _, new = _sides(update)
    if ROWID not in new:
        return False
    inserted = _pairs(datums(insert)[1:])
    return all(new.get(id_) == value for id_, value in inserted.items())


def _sides(update: bytes) -> tuple[dict[Value, Value], dict[Value, Value]]:
    listed = datums(update)
    half = len(listed) // 2
    return _pairs(listed[:half]), _pairs(listed[half:])


def _pairs(listed: list[Value]) -> dict[Value, Value]:
    return dict(zip(listed[::2], listed[1::2], strict=False))
