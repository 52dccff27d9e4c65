"""TiDB's form of a partitioned table, as in schema_history, and its jobs' effects on rows of partitions.

In:  PartitionInfo; a job that drops, empties or exchanges a partition.
Out: a Partitioning; the action of ALTER TABLE that the job did.

TiDB chooses a row's partition as MySQL does, with one exception: by HASH, NULL is in another
partition than in MySQL. Therefore the place of a row is known only if the columns have no NULL.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from tidegate.schema.ddl.partitions import read_partitioning
from tidegate.schema.ddl.tokens import Cursor
from tidegate.schema.model.partitions import (
    DropPartitions,
    ExchangePartition,
    Partitioning,
    TruncatePartitions,
)
from tidegate.schema.model.server import ServerVersion
from tidegate.tidb.jobs import Action, Job, PartitionInfo, PartitionType, TableInfo

RowsAction = DropPartitions | TruncatePartitions | ExchangePartition
_SERVER: Final = ServerVersion.of("8.0.33")
_UNVALIDATED: Final = re.compile(r"\bWITHOUT\s+VALIDATION\b", re.IGNORECASE)


def partitioning_of(info: TableInfo) -> Partitioning | None:
    """None for a table without partitions."""
    partition = info.partition
    if partition is None:
        return None
    if partition.type is PartitionType.KEY:
        return Partitioning(unknown="where a row lies by KEY isn't known here")
    partitioning = read_partitioning(Cursor(_clause(partition), 0, _SERVER))
    if partition.type is PartitionType.HASH and not partitioning.unknown:
        nullable = {column.name.lower() for column in info.columns if column.nullable}
        if nullable & partitioning.column_names:
            return Partitioning(unknown="TiDB has rows whose HASH is NULL in another partition than MySQL")
    return partitioning


def _clause(partition: PartitionInfo) -> str:
    """The text after PARTITION BY."""
    if partition.type is PartitionType.HASH:
        return f"HASH ({partition.expression}) PARTITIONS {len(partition.definitions)}"
    method = partition.type.name
    if partition.columns:
        quoted = ", ".join("`" + name.replace("`", "``") + "`" for name in partition.columns)
        head = f"{method} COLUMNS ({quoted})"
    else:
        head = f"{method} ({partition.expression})"
    several = len(partition.columns) > 1
    listed = []
    for definition in partition.definitions:
        name = "`" + definition.name.replace("`", "``") + "`"
        if definition.less_than:
            bound = ", ".join(definition.less_than)
            bare = definition.less_than == ("MAXVALUE",) and not partition.columns
            listed.append(f"PARTITION {name} VALUES LESS THAN {bound if bare else f'({bound})'}")
        elif definition.in_values == (("DEFAULT",),):
            listed.append(f"PARTITION {name} VALUES IN DEFAULT")
        else:
            values = [f"({', '.join(value)})" if several else ", ".join(value) for value in definition.in_values]
            listed.append(f"PARTITION {name} VALUES IN ({', '.join(values)})")
    return f"{head} ({', '.join(listed)})"


def partitions_of(info: TableInfo) -> set[int]:
    """Their ids."""
    return {definition.id for definition in info.partition.definitions} if info.partition else set()


def action_of(job: Job, was: TableInfo, info: TableInfo) -> RowsAction | None:
    """The unlogged effect of a job on rows of partitions; None for one that moves none out of the table."""
    gone = partitions_of(was) - partitions_of(info)
    if not gone:
        return None
    if job.type == Action.DROP_PARTITION:
        return DropPartitions(_names(was, gone))
    if job.type == Action.TRUNCATE_PARTITION:
        return TruncatePartitions(_names(was, gone))
    return None


def exchange_of(job: Job, was: TableInfo, gone: int, other: tuple[str, str]) -> ExchangePartition:
    return ExchangePartition(_names(was, {gone})[0], other, _UNVALIDATED.search(job.query) is None)


def _names(info: TableInfo, ids: Collection[int]) -> tuple[str, ...]:
    assert info.partition is not None, "it has partitions with these ids"
    return tuple(definition.name for definition in info.partition.definitions if definition.id in ids)
