"""A checkpoint's objects, read: classic in one file or in parts, or V2 with its sidecars.

In:  a log's folder and a whole checkpoint in it.
Out: Contents: the few actions that aren't about files, and the file actions as Arrow columns, a
     batch at a time.

PROTOCOL.md: "Checkpoints", "Checkpoint Specs", "Sidecar Files". The name of a checkpoint doesn't
say its spec: one with a classic name may have sidecars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.delta.checkpoints.rows import COLUMNS, bodies
from tidegate.delta.checkpoints.statistics import statistics_text
from tidegate.delta.object_names import SIDECARS, LogCheckpoint
from tidegate.delta.stores.store import LogStore
from tidegate.delta.table.actions import parsed
from tidegate.delta.table.state import Action
from tidegate.errors import LakeRefused
from tidegate.limits import CHECKPOINT_BATCH_ROWS

_FILES: Final = ("add", "remove")
_OTHERS: Final = ("protocol", "metaData", "domainMetadata", "txn")
_PARSED: Final = "stats_parsed"


class CheckpointGoneError(Exception):
    """An object of a checkpoint isn't there any more: it was cleaned up since it was listed."""


@dataclass(frozen=True, slots=True)
class Contents:
    """others: actions of the kinds protocol, metaData, domainMetadata, txn. loose: file actions of
    a V2 checkpoint in JSON. parts: Parquet files with file actions. sidecars: names of such
    files in a folder of their own.
    """

    version: int
    others: list[Action]
    loose: list[Action]
    parts: list[Any] = field(repr=False)
    sidecars: list[str] = field(default_factory=list)

    def batches(self, kinds: Sequence[str] = _FILES) -> Iterator[dict[str, Any]]:
        """Columns of these kinds (add, remove), of equal length, null for other rows; statistics as
        text.

        Raises DeltaUnsupported for statistics that exist only as columns and have no form as text.
        """
        for part in self.parts:
            names = {kind: _fields(part, kind) for kind in kinds}
            chosen = [f"{kind}.{name}" for kind, fields in names.items() for name in fields]
            for batch in part.iter_batches(CHECKPOINT_BATCH_ROWS, columns=chosen) if chosen else ():
                yield {
                    kind: _with_text(batch.column(kind), part) if fields else pa.nulls(len(batch), COLUMNS[kind])
                    for kind, fields in names.items()
                }


def load(store: LogStore, checkpoint: LogCheckpoint) -> Contents:
    """Read a checkpoint's objects. Raises CheckpointGoneError, LakeRefused for one that can't be read."""
    name = checkpoint.files[0].name
    if name.endswith(".json"):
        actions = _lines(store, name)
        parts = []
    else:
        parts = [_parquet(store, entry.name) for entry in checkpoint.files]
        actions = [action for part in parts for action in _small(part)]
    sidecars = [unquote(action["sidecar"]["path"]).rsplit("/", 1)[-1] for action in actions if "sidecar" in action]
    if sidecars:
        folder = store.folder(SIDECARS)
        parts = [_parquet(folder, sidecar) for sidecar in sidecars]
    others: list[Action] = [action for action in actions if any(kind in action for kind in _OTHERS)]
    loose: list[Action] = [action for action in actions if any(kind in action for kind in _FILES)]
    for kind in ("protocol", "metaData"):
        count = sum(kind in action for action in others)
        if count != 1:
            raise _refused(store, name, f"holds {count} {kind} actions")
    return Contents(checkpoint.version, others, loose, parts, sidecars)


def _lines(store: LogStore, name: str) -> list[dict[str, Any]]:
    try:
        return parsed(_bytes(store, name))
    except ValueError as error:
        raise _refused(store, name, f"isn't readable: {error}") from error


def _parquet(store: LogStore, name: str) -> Any:
    data = _bytes(store, name)
    try:
        # Older Spark writes timestamps in statistics as INT96: their range is wider than that of nanoseconds.
        return pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError) as error:
        raise _refused(store, name, f"isn't readable: {error}") from error


def _bytes(store: LogStore, name: str) -> bytes:
    data = store.get(name)
    if data is None:
        raise CheckpointGoneError(name)
    return data


def _refused(store: LogStore, name: str, what: str) -> LakeRefused:
    return LakeRefused(
        f"the checkpoint {name} {what}",
        where=store.where,
        remedy="let Spark write a newer one",
    )


def _small(part: Any) -> Iterator[dict[str, Any]]:
    """Actions that aren't about files: few, as dicts."""
    kinds = [kind for kind in (*_OTHERS, "sidecar") if part.schema_arrow.get_field_index(kind) >= 0]
    for batch in part.iter_batches(CHECKPOINT_BATCH_ROWS, columns=kinds) if kinds else ():
        for kind in kinds:
            for body in bodies(batch.column(kind).drop_null()):
                yield {kind: body}


def _fields(part: Any, kind: str) -> list[str]:
    """Fields of a column that are needed and exist. Parsed statistics are needed only if some text
    is missing.
    """
    schema = part.schema_arrow
    if schema.get_field_index(kind) < 0:
        return []
    present = {child.name for child in schema.field(kind).type}
    fields = [child.name for child in COLUMNS[kind] if child.name in present]
    if kind == "add" and _PARSED in present and not ("stats" in present and _complete(part.metadata)):
        fields.append(_PARSED)
    return fields


def _complete(metadata: Any) -> bool:
    """Whether every file has its statistics as text: the Parquet footer counts the nulls."""
    nulls = {"add.path": 0, "add.stats": 0}
    for group in range(metadata.num_row_groups):
        chunks = metadata.row_group(group)
        for index in range(chunks.num_columns):
            chunk = chunks.column(index)
            if chunk.path_in_schema in nulls:
                if chunk.statistics is None or not chunk.statistics.has_null_count:
                    return False
                nulls[chunk.path_in_schema] += chunk.statistics.null_count
    return nulls["add.path"] == nulls["add.stats"]


def _with_text(actions: Any, part: Any) -> Any:
    """Statistics as text, made from the columns where only those exist."""
    children = dict(zip((child.name for child in actions.type), actions.flatten(), strict=True))
    if _PARSED not in children:
        return actions
    text, columns = children.pop("stats", pa.nulls(len(actions), pa.string())), children.pop(_PARSED)
    if pc.any(pc.and_(text.is_null(), columns.is_valid())).as_py():
        text = pc.coalesce(text, statistics_text(columns, _physical_types(part)))
    children["stats"] = text
    return pa.StructArray.from_arrays(list(children.values()), names=list(children), mask=actions.is_null())


def _physical_types(part: Any) -> list[str]:
    """The physical types of the leaves of parsed statistics, in order."""
    leaves = [part.schema.column(index) for index in range(len(part.schema))]
    return [leaf.physical_type for leaf in leaves if leaf.path.startswith(f"add.{_PARSED}.")]
