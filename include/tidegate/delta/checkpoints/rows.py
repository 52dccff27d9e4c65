"""Actions as columns and back: the Arrow types of a checkpoint, and forms that other writers give
them.

In:  a checkpoint's columns from any writer; actions as in the log's JSON.
Out: the same in the types of Delta's own checkpoints; or dicts as in the log's JSON (no nulls, maps
     as objects).

PROTOCOL.md, "Checkpoint Schema". Unknown columns and fields are left out. If a reader must know
one, a table feature says so, and unknown features are refused (write.py, features.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_TEXT_MAP: Final = pa.map_(pa.string(), pa.string())
_TEXTS: Final = pa.list_(pa.string())

_VECTOR: Final = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
        "maxRowIndex": pa.int64(),
    }
)
_ADD: Final = pa.struct(
    {
        "path": pa.string(),
        "partitionValues": _TEXT_MAP,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "tags": _TEXT_MAP,
        "deletionVector": _VECTOR,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
        "clusteringProvider": pa.string(),
        "stats": pa.string(),
    }
)
# Without statistics and tags: a checkpoint's tombstones are for VACUUM alone (PROTOCOL.md, "Checkpoints").
_REMOVE: Final = pa.struct(
    {
        "path": pa.string(),
        "deletionTimestamp": pa.int64(),
        "dataChange": pa.bool_(),
        "extendedFileMetadata": pa.bool_(),
        "partitionValues": _TEXT_MAP,
        "size": pa.int64(),
        "deletionVector": _VECTOR,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
    }
)
# Kind of action -> type of its column, in the order of Delta's own checkpoints.
COLUMNS: Final[Mapping[str, Any]] = {
    "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
    "add": _ADD,
    "remove": _REMOVE,
    "metaData": pa.struct(
        {
            "id": pa.string(),
            "name": pa.string(),
            "description": pa.string(),
            "format": pa.struct({"provider": pa.string(), "options": _TEXT_MAP}),
            "schemaString": pa.string(),
            "partitionColumns": _TEXTS,
            "configuration": _TEXT_MAP,
            "createdTime": pa.int64(),
        }
    ),
    "protocol": pa.struct(
        {
            "minReaderVersion": pa.int32(),
            "minWriterVersion": pa.int32(),
            "readerFeatures": _TEXTS,
            "writerFeatures": _TEXTS,
        }
    ),
    "domainMetadata": pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()}),
}
SCHEMA: Final = pa.schema(list(COLUMNS.items()))


def table(columns: Mapping[str, Any]) -> pa.Table:
    """Rows of a checkpoint from some columns of equal length. The other columns are null."""
    rows = len(next(iter(columns.values())))
    return pa.table(
        [columns[name] if name in columns else pa.nulls(rows, kind) for name, kind in COLUMNS.items()], schema=SCHEMA
    )


def column(kind: str, bodies: Sequence[Mapping[str, Any]]) -> Any:
    """Bodies of actions of one kind as a column. Raises ValueError, TypeError or OverflowError for other forms."""
    return _told_nothing_new(kind, pa.array(bodies, COLUMNS[kind]))


def conformed(kind: str, array: Any) -> Any:
    """Another writer's column in our types. Raises ValueError for one that doesn't fit."""
    return _told_nothing_new(kind, _cast(array, COLUMNS[kind]))


def _told_nothing_new(kind: str, actions: Any) -> Any:
    """File actions with dataChange false, as in every checkpoint."""
    if kind not in ("add", "remove"):
        return actions
    names = [field.name for field in actions.type]
    children = [
        pa.repeat(pa.scalar(False), len(actions)) if name == "dataChange" else child
        for name, child in zip(names, actions.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(actions.type), mask=actions.is_null())


def _cast(array: Any, wanted: Any) -> Any:
    """One array in another type. Fields of structs go by name; missing ones are null."""
    if not pa.types.is_struct(wanted):
        return array if array.type == wanted else array.cast(wanted)
    children_by_name = {field.name: child for field, child in zip(array.type, array.flatten(), strict=True)}
    children = [
        _cast(children_by_name[field.name], field.type)
        if field.name in children_by_name
        else pa.nulls(len(array), field.type)
        for field in wanted
    ]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())


def key(actions: Any) -> Any:
    """The identity of each logical file in an add or remove column: path, NUL, id of its deletion
    vector; null for a row without a file.

    PROTOCOL.md, "Derived Fields". A path is a URI, so it has no NUL.
    """
    children = dict(zip((field.name for field in actions.type), actions.flatten(), strict=True))
    path = children["path"].cast(pa.string())
    if "deletionVector" not in children:
        return pc.binary_join_element_wise(path, "", "\0")
    vector = children["deletionVector"]
    fields = dict(zip((field.name for field in vector.type), vector.flatten(), strict=True))
    offset = fields["offset"].cast(pa.string()) if "offset" in fields else pa.nulls(len(actions), pa.string())
    tail = pc.fill_null(pc.binary_join_element_wise("@", offset, ""), "")
    ids = pc.binary_join_element_wise(
        fields["storageType"].cast(pa.string()), fields["pathOrInlineDv"].cast(pa.string()), tail, ""
    )
    return pc.binary_join_element_wise(path, pc.fill_null(ids, ""), "\0")


def bodies(actions: Any) -> list[dict[str, Any]]:
    """The values of a struct column as in the log's JSON: without nulls, except those in maps.

    It works column by column: a table may have 100,000 files. actions: no null among them.
    """
    dense: dict[str, list[Any]] = {}
    sparse: dict[str, list[Any]] = {}
    for field, child in zip(actions.type, actions.flatten(), strict=True):
        if child.null_count == len(child):
            continue
        values = _values(child)
        (sparse if child.null_count else dense)[field.name] = values
    names = tuple(dense)
    made = [dict(zip(names, row, strict=True)) for row in zip(*dense.values(), strict=True)]
    made = made or [{} for _ in range(len(actions))]
    for name, values in sparse.items():
        for body, value in zip(made, values, strict=True):
            if value is not None:
                body[name] = value
    return made


def _values(child: Any) -> list[Any]:
    if not pa.types.is_struct(child.type):
        values: list[Any] = child.to_pylist(maps_as_pydicts="strict")
        return values
    present = iter(bodies(child.drop_null()))
    return [next(present) if valid else None for valid in child.is_valid().to_pylist()]
