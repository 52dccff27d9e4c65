"""How a table is partitioned, as schema_history keeps it, and what ALTER TABLE makes of it.

In:  a PARTITION BY clause that was read (ddl/partitions.py), and the actions of ALTER TABLE on partitions.
Out: frozen values with a JSON form (the `partitioning` cell of control/schema_history).

An unknown form leaves a Partitioning that says why it isn't known: nobody guesses where a row lies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

# A number, NULL (None), or a tuple: ("'", text), ("column", name), ("max",), ("default",), ("current",), or the name
# of an operator or a function in lower case and its arguments.
Node = Any
TEXT: Final = "'"
COLUMN: Final = "column"
MAX: Final = ("max",)
DEFAULT: Final = ("default",)
CURRENT: Final = ("current",)
SYSTEM_TIME: Final = "system_time"


@dataclass(frozen=True, slots=True)
class Partition:
    """values: of LIST each value, of RANGE its one bound; each has as many Nodes as there are expressions."""

    name: str
    values: tuple[tuple[Node, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Partitioning:
    """method: range, list, range columns, list columns, hash, key, linear hash, linear key or system_time.

    expressions: the partitioning expression, or the columns. partitions: in order. sub: the method of subpartitions.
    unknown: why nothing of it is known; "" when it is.
    """

    method: str = ""
    expressions: tuple[Node, ...] = ()
    partitions: tuple[Partition, ...] = ()
    sub: str = ""
    unknown: str = ""

    def find(self, name: str) -> int | None:
        """Where a partition stands. Names have no case."""
        names = [partition.name.lower() for partition in self.partitions]
        return names.index(name.lower()) if name.lower() in names else None

    @property
    def column_names(self) -> frozenset[str]:
        """Columns that say where a row lies, in lower case."""
        names: set[str] = set()
        waiting = list(self.expressions)
        while waiting:
            node = waiting.pop()
            if isinstance(node, tuple):
                if node[0] == COLUMN:
                    names.add(str(node[1]).lower())
                else:
                    waiting += node[1:]
        return frozenset(names)


def to_text(partitioning: Partitioning | None) -> str:
    """JSON; "" for a table without partitions."""
    if partitioning is None:
        return ""
    if partitioning.unknown:
        return json.dumps({"unknown": partitioning.unknown}, ensure_ascii=False)
    cells: dict[str, Any] = {
        "method": partitioning.method,
        "expressions": partitioning.expressions,
        "partitions": [[partition.name, partition.values] for partition in partitioning.partitions],
    }
    if partitioning.sub:
        cells["sub"] = partitioning.sub
    return json.dumps(cells, ensure_ascii=False, separators=(",", ":"))


def from_text(text: str | None) -> Partitioning | None:
    """The inverse of to_text."""
    if not text:
        return None
    cells = json.loads(text)
    if "unknown" in cells:
        return Partitioning(unknown=cells["unknown"])
    partitions = tuple(Partition(name, _node(values)) for name, values in cells["partitions"])
    return Partitioning(cells["method"], _node(cells["expressions"]), partitions, cells.get("sub", ""))


def _node(cell: Any) -> Node:
    return tuple(map(_node, cell)) if isinstance(cell, list) else cell


# --- actions of ALTER TABLE -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DefinePartitions:
    """PARTITION BY; None: REMOVE PARTITIONING."""

    partitioning: Partitioning | None


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """partitions: those written; else count: of HASH and KEY."""

    partitions: tuple[Partition, ...] = ()
    count: int = 0
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropPartitions:
    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncatePartitions:
    """names (): ALL."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReorganizePartitions:
    names: tuple[str, ...]
    into: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class CoalescePartitions:
    """The last `count` go; their rows go into the others."""

    count: int


@dataclass(frozen=True, slots=True)
class ExchangePartition:
    """EXCHANGE PARTITION name WITH TABLE other. validated: not WITHOUT VALIDATION."""

    name: str
    other: tuple[str, str]
    validated: bool = True


@dataclass(frozen=True, slots=True)
class PartitionToTable:
    """CONVERT PARTITION name TO TABLE other."""

    name: str
    other: tuple[str, str]


@dataclass(frozen=True, slots=True)
class TableToPartition:
    """CONVERT TABLE other TO PARTITION. partition None: it couldn't be read."""

    other: tuple[str, str]
    partition: Partition | None
    validated: bool = True


@dataclass(frozen=True, slots=True)
class UnknownPartitions:
    """An action on partitions that couldn't be read; no row goes or comes with it."""

    why: str


PartitionAction = (
    DefinePartitions
    | AddPartitions
    | DropPartitions
    | TruncatePartitions
    | ReorganizePartitions
    | CoalescePartitions
    | ExchangePartition
    | PartitionToTable
    | TableToPartition
    | UnknownPartitions
)


def altered(before: Partitioning | None, actions: Iterable[object], renamed: frozenset[str]) -> Partitioning | None:
    """The partitioning after all actions. renamed: old and new names of renamed columns, in lower case."""
    now, anew = before, False
    for action in actions:
        if isinstance(action, PartitionAction):
            now = _after(now, action)
            anew = anew or isinstance(action, DefinePartitions)
    if now is not None and not anew and renamed & now.column_names:
        return Partitioning(unknown="a column of its expression was renamed")
    return now


def _after(now: Partitioning | None, action: PartitionAction) -> Partitioning | None:
    if isinstance(action, DefinePartitions):
        return action.partitioning
    if isinstance(action, TruncatePartitions | ExchangePartition):
        return now
    if now is None:
        return Partitioning(unknown="the statement is about partitions that it hadn't")
    if now.unknown:
        return now
    if isinstance(action, UnknownPartitions):
        return Partitioning(unknown=action.why)
    partitions = _partitions_after(now, action)
    if partitions is None:
        return Partitioning(unknown="a statement names partitions that aren't known, or known ones as new")
    return replace(now, partitions=partitions)


def _partitions_after(now: Partitioning, action: PartitionAction) -> tuple[Partition, ...] | None:
    """None when the action doesn't fit what is known."""
    parts = now.partitions
    match action:
        case AddPartitions(partitions, 0, if_not_exists):
            known = [now.find(partition.name) is not None for partition in partitions]
            if any(known):
                return parts if if_not_exists and all(known) else None
            if now.method == SYSTEM_TIME and parts and parts[-1].values == ((CURRENT,),):
                return (*parts[:-1], *partitions, parts[-1])
            return (*parts, *partitions)
        case AddPartitions(count=count):
            made = tuple(Partition(f"p{len(parts) + n}") for n in range(count))
            return None if any(now.find(partition.name) is not None for partition in made) else (*parts, *made)
        case CoalescePartitions(count):
            return parts[:-count] if 0 < count < len(parts) else None
        case DropPartitions(names, if_exists):
            return _without(now, names, if_exists=if_exists)
        case PartitionToTable(name):
            return _without(now, (name,))
        case ReorganizePartitions(names, into):
            positions = sorted(at for name in names if (at := now.find(name)) is not None)
            if len(positions) != len(names) or not names:
                return parts if not names and not into else None
            rest = tuple(partition for at, partition in enumerate(parts) if at not in positions)
            # Of RANGE they are neighbours; of LIST order has no bearing on where a row lies.
            return (*rest[: positions[0]], *into, *rest[positions[0] :])
        case TableToPartition(partition=partition):
            return None if partition is None or now.find(partition.name) is not None else (*parts, partition)
    return None


def _without(now: Partitioning, names: Sequence[str], *, if_exists: bool = False) -> tuple[Partition, ...] | None:
    gone = {now.find(name) for name in names}
    if None in gone and not if_exists and now.method != SYSTEM_TIME:  # the server makes its partitions by itself, too
        return None
    return tuple(partition for at, partition in enumerate(now.partitions) if at not in gone)


# --- rows that go or move ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowsMoved:
    """The effect of a statement about partitions on a table's rows, without row events.

    how: see the constants. partitions: names; of the table itself, or of `other` where rows came from its partition.
    other: the second table. validated: whether the server has looked where the rows that came belong.
    why: why it can't be followed; "" when it can.
    """

    how: str
    partitions: tuple[str, ...]
    other: tuple[str, str] = ("", "")
    validated: bool = True
    why: str = ""

    @property
    def links(self) -> bool:
        """Whether rows went from one table to another."""
        return self.other != ("", "")

    @property
    def takes(self) -> bool:
        """Whether this table got rows of the other one."""
        return self.how in (EXCHANGED, GIVEN, SPLIT, GROWN)

    @property
    def gives(self) -> bool:
        """Whether rows that this table had are the other one's."""
        return self.links and self.how in (EXCHANGED, GIVEN, DELETED, LEFT)


DELETED: Final = "deleted"  # rows of these partitions are gone
EXCHANGED: Final = "exchanged"  # rows of the partition and all rows of `other` changed places
GIVEN: Final = "given"  # ... seen from the table without partitions
SPLIT: Final = "split"  # the table's rows are those of a partition of `other`
GROWN: Final = "grown"  # all rows of `other` came as a new partition
LEFT: Final = "left"  # the table went, and its rows are a partition of `other`


def moved_to_text(moved: RowsMoved | None) -> str | None:
    """JSON; None when no row moved."""
    if moved is None:
        return None
    cells: dict[str, Any] = {"how": moved.how, "partitions": moved.partitions}
    if moved.other != ("", ""):
        cells["other"] = moved.other
    if not moved.validated:
        cells["validated"] = False
    if moved.why:
        cells["why"] = moved.why
    return json.dumps(cells, ensure_ascii=False)


def moved_from_text(text: str | None) -> RowsMoved | None:
    """The inverse of moved_to_text."""
    if not text:
        return None
    cells = json.loads(text)
    database, table = cells.get("other", ("", ""))
    return RowsMoved(
        cells["how"],
        tuple(cells["partitions"]),
        (database, table),
        cells.get("validated", True),
        cells.get("why", ""),
    )
