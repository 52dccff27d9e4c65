"""The positional writer's facts of a table, and decode's staged files for it: plain data that travels to workers.

In:  nothing; these are values.
Out: UpsertTarget (made by choose_writers), StagedUpsert (made by decode_changes), and whether
     silver fits a layout.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidegate.delta.table.arrow_types import logged_schema
from tidegate.delta.table.state import TableState
from tidegate.remedy import Needs
from tidegate.upsert.files.file_layout import FileLayout


@dataclass(frozen=True, slots=True)
class StagePhase:
    """Rows with commit_ts in (after_ts, upto_ts], and what silver looks like for them."""

    after_ts: int
    upto_ts: int
    layout: FileLayout


@dataclass(frozen=True, slots=True)
class UpsertTarget:
    """A logical table that the positional writer takes.

    path: of silver, relative to the lake. phases: its rows phases in order.
    """

    name: str
    path: str
    phases: tuple[StagePhase, ...]


@dataclass(frozen=True, slots=True)
class StagedUpsert:
    """Changes of one logical table in one phase, ready for the positional writer.

    upto_ts: the phase's. keys: path of the key file, relative to the lake. changes: its records. files: paths of the
    data files that it names, relative to the lake; no log names them yet.
    """

    name: str
    upto_ts: int
    keys: str
    changes: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotStaged:
    """Why a logical table's changes could not be laid out. error: name of the exception's class."""

    name: str
    error: str
    message: str
    needs: Needs = Needs.NOTHING


def misfit(snapshot: TableState, layout: FileLayout) -> str | None:
    """Silver's difference from the rows' layout, in one phrase: an unwritten column would be null."""
    held = {field.name: field for field in logged_schema(snapshot.metadata["schemaString"])}
    ours = {field.name: field.type for field in layout.schema}
    for name in sorted(held.keys() | ours.keys()):
        in_silver, here = held.get(name), ours.get(name)
        if in_silver is None or here is None:
            return f"column {name} is not in {'silver' if in_silver is None else 'the source'}"
        if not _same(in_silver.type, here):
            return f"column {name} is {in_silver.type} in silver and {here} at the source"
        if not in_silver.nullable:
            return f"column {name} is NOT NULL in silver"
    if snapshot.partition_columns != layout.partition_columns:
        return "its partition columns changed"
    return None


def _same(in_silver: pa.DataType, here: pa.DataType) -> bool:
    """Lists compare by what they hold: the names of their elements differ."""
    if pa.types.is_list(in_silver) and pa.types.is_list(here):
        return bool(in_silver.value_type == here.value_type)
    return bool(in_silver == here)
