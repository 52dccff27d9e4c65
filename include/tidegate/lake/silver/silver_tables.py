"""Silver tables made, emptied and given columns by commits alone: no file is read or rewritten.

In:  a table's Delta log and its shape.
Out: one commit each. If two make the same change at once, it is made once.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from tidegate.computed.row_expressions import identities
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import clustering, metadata, protocol, remove
from tidegate.delta.table.arrow_types import delta_json
from tidegate.delta.table.state import Action, TableState
from tidegate.errors import CommitConflict, SchemaMismatch
from tidegate.merge.column import SOURCE_METADATA, SilverColumn
from tidegate.merge.silver_sql import NAMES_PROPERTY, ROWS_PROPERTY, SilverShape, clusterable
from tidegate.schema.model.renamed import from_text
from tidegate.tables import SHARDS, SYSTEM_PREFIX

# What Delta itself gives a table with deletion vectors. The first two come from older protocols.
_FEATURES: Final = frozenset({"appendOnly", "invariants", "deletionVectors"})
_CLUSTERED: Final = frozenset({"clustering", "domainMetadata"})
_NTZ: Final = "timestampNtz"
_ID: Final = "delta.columnMapping.id"
_PHYSICAL: Final = "delta.columnMapping.physicalName"
_HIGHEST: Final = "delta.columnMapping.maxColumnId"
_CHECK: Final = "delta.constraints."
_RULES: Final = (ROWS_PROPERTY, NAMES_PROPERTY)
# In SQL: a text literal, which names nothing; a quoted name; a plain name.
_WORD: Final = re.compile(r"('(?:[^'\\]|\\.|'')*')|`([^`]+)`|([^\W\d]\w*)")
# Characters with a meaning in Spark's Parquet readers; Delta refuses them in names.
_REFUSED_CHARACTERS: Final = " ,;{}()\n\t="
_RENAME: Final = "rename the column at the source, or leave the table out (tables.exclude)"


def create_silver(log: DeltaLog, shape: SilverShape) -> TableState:
    """The table. It is made if it is missing."""
    nothing = log.state()
    if nothing.created:
        return nothing
    try:
        return log.commit(nothing, Change(_made(shape), "CREATE TABLE"))
    except CommitConflict:  # another maker was first
        return log.state()


def new_silver(shape: SilverShape) -> TableState:
    """The table that create_silver would make. Raises SchemaMismatch, as it does."""
    return TableState("new").after(0, _made(shape))


def _made(shape: SilverShape) -> list[Action]:
    features = _FEATURES | (_CLUSTERED if shape.cluster_by else frozenset()) | _asked(shape.all_columns)
    actions: list[Action] = [
        protocol(features),
        metadata(_schema(shape.all_columns), shape.properties, description=shape.comment or ""),
    ]
    if shape.cluster_by:
        actions.append(clustering(shape.cluster_by))
    return actions


def add_columns(log: DeltaLog, columns: Sequence[SilverColumn], done: tuple[str, int] | None = None) -> TableState:
    """Add columns at the end, null in every present row. A column that exists stays as it is.

    done: (application id, version); if the table has this version or a later one, nothing is
    added.
    """

    def decide(read: TableState) -> Change | None:
        if done is not None and read.transaction(done[0]) >= done[1]:
            return None
        actions = columns_added(read, columns)
        return Change(actions, "ADD COLUMNS") if actions else None

    return log.update(decide)


def columns_added(read: TableState, columns: Sequence[SilverColumn]) -> list[Action]:
    """The actions of add_columns; none when there is nothing to add."""
    held = {field["name"] for field in read.schema["fields"]}
    missing = [column for column in columns if column.name not in held]
    if not missing:
        return []
    fields = [*read.schema["fields"], *map(_field, missing)]
    return [*_with_features(read, _asked(missing)), _with_fields(read, fields)]


def features_added(read: TableState, shape: SilverShape) -> list[Action]:
    """An action with the features the table lacks for a shape's columns and clustering; [] if it
    lacks none.
    """
    return _with_features(read, _asked(shape.all_columns) | (_CLUSTERED if shape.cluster_by else frozenset()))


def clustering_asked(read: TableState, names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` the table can be clustered by, as its files name them. () if there are none,
    or if the table has partitions.
    """
    if read.partition_columns:
        return ()
    physical = _physical_names(read.schema["fields"])
    columns = [(str(field["name"]), field["type"]) for field in read.schema["fields"]]
    return tuple(physical[name] for name in clusterable(names, columns))


def cluster_by(log: DeltaLog, names: Sequence[str]) -> TableState:
    """From here on the table is clustered by `names`, as far as possible. No file changes."""

    def decide(read: TableState) -> Change | None:
        asked = clustering_asked(read, names)
        if not asked or asked == read.clustering_columns:
            return None
        return Change([*_with_features(read, _CLUSTERED), clustering(asked)], "CLUSTER BY")

    return log.update(decide)


def describe_silver(log: DeltaLog, shape: SilverShape) -> TableState:
    """Give the table and its columns the shape's comments. A column that only one of them has stays
    as it is.
    """

    def decide(read: TableState) -> Change | None:
        changed = described(read, shape) if read.created else None
        return None if changed is None else Change([changed], "CHANGE COLUMN")

    return log.update(decide)


def described(read: TableState, shape: SilverShape) -> Action | None:
    """The action of describe_silver; None when there is nothing to do."""
    own = {column.name: column for column in shape.all_columns}
    fields = [_described(field, own.get(field["name"])) for field in read.schema["fields"]]
    now = str(read.metadata.get("description") or "")
    text = now if shape.comment is None else shape.comment
    rules = {name: text for name, text in read.configuration.items() if name != NAMES_PROPERTY}
    configuration = with_rules(read.configuration, {**rules, **_names(shape)})
    if fields == read.schema["fields"] and text == now and configuration == read.configuration:
        return None
    changed = _with_fields(read, fields)["metaData"]
    mapped = with_rules(changed["configuration"], configuration)  # this also has the highest column number
    return {"metaData": {**changed, "configuration": mapped, "description": text}}


def empty_silver(
    log: DeltaLog,
    transaction: tuple[str, int],
    shape: SilverShape | None = None,
    sources: AbstractSet[str] | None = None,
    *,
    rows: tuple[str, int] | None = None,
) -> TableState:
    """Remove all rows, in one commit under a transaction. Nothing happens if its version is
    recorded already.

    shape: the columns from here on; None: the present ones. sources: as in reshaped. rows: under
    which application id rows are recorded, and up to where none is wanted any more.
    """
    return log.update(_once(transaction, lambda read: _emptied(read, shape, sources), rows))


def has_shards(read: TableState) -> bool:
    """Whether the shard columns belong to the key of the table's rows."""
    return {field["name"] for field in read.schema["fields"]}.issuperset(SHARDS)


def _once(
    transaction: tuple[str, int],
    actions: Callable[[TableState], Sequence[Action]],
    rows: tuple[str, int] | None,
) -> Callable[[TableState], Change | None]:
    app_id, version = transaction

    def decide(read: TableState) -> Change | None:
        if read.transaction(app_id) >= version:
            return None
        along = dict([rows] if rows is not None and read.transaction(rows[0]) < rows[1] else [])
        return Change(actions(read), "DELETE", {app_id: version, **along})

    return decide


def _emptied(read: TableState, shape: SilverShape | None, sources: AbstractSet[str] | None) -> list[Action]:
    gone: list[Action] = [remove(file, data_change=True) for file in read.files]
    return gone if shape is None else [*gone, *reshaped(read, shape, sources)]


def reshaped(read: TableState, shape: SilverShape, sources: AbstractSet[str] | None = None) -> list[Action]:
    """Give the table the shape's columns and clustering. Columns of its owner stay.

    sources: the source's columns until now; None: unknown, and all columns beyond the shape go.
    Raises SchemaMismatch as create_silver does, and if a constraint names a column that goes.
    """
    own = owners_columns(read, shape, sources)
    fields = [*map(_field, shape.all_columns), *(field for field in read.schema["fields"] if field["name"] in own)]
    check_constraints(read, {field["name"] for field in fields})
    changed = _with_fields(read, fields)
    changed["metaData"]["configuration"] = with_rules(changed["metaData"]["configuration"], shape.rules)
    names = _physical_names(json.loads(changed["metaData"]["schemaString"])["fields"])
    domains: list[Action] = []
    if shape.cluster_by or "clustering" in read.features:
        domains.append(clustering([names[name] for name in shape.cluster_by]))
    return [*features_added(read, shape), changed, *domains]


def owners_columns(read: TableState, shape: SilverShape, sources: AbstractSet[str] | None) -> list[str]:
    """Columns that silver's owner added, in their order: the shape lacks them, and the source never
    had them.

    sources: as in reshaped.
    """
    if sources is None:
        return []
    ours = sources | {column.name for column in shape.all_columns} | identities(read.schema["fields"]).keys()
    ours |= renamed_columns(read)
    names = (str(field["name"]) for field in read.schema["fields"])
    return [name for name in names if name not in ours and not name.startswith(SYSTEM_PREFIX)]


def check_constraints(read: TableState, names: AbstractSet[str]) -> None:
    """Raise SchemaMismatch if a CHECK constraint of silver names a column that isn't among `names`
    any more.
    """
    lost = {str(field["name"]).lower() for field in read.schema["fields"]} - {name.lower() for name in names}
    for name, text in sorted(read.configuration.items()):
        if name.startswith(_CHECK) and (odd := sorted(lost & _named(text))):
            raise SchemaMismatch(
                f"silver's constraint {name.removeprefix(_CHECK)} ({text}) names column {odd[0]}, which is dropped",
                where=read.place,
                remedy="drop the constraint from silver, then `tidegate release`",
            )


def _named(expression: str) -> set[str]:
    """The words of a SQL expression that may be columns."""
    return {(quoted or plain).lower() for _, quoted, plain in _WORD.findall(expression)}


def _physical_names(fields: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Column -> its name in files and clustering."""
    mapped = {str(field["name"]): (field.get("metadata") or {}).get(_PHYSICAL) for field in fields}
    return {name: physical or name for name, physical in mapped.items()}


def _with_fields(read: TableState, fields: Sequence[Mapping[str, Any]]) -> Action:
    """The table's metadata with other columns."""
    configuration = read.configuration
    # With column mapping an owner's column may have any name, so the present names aren't checked.
    known = {str(field["name"]) for field in read.schema["fields"]}
    mapped = _mapped(_checked(fields, known), configuration)
    text = json.dumps({"type": "struct", "fields": mapped}, ensure_ascii=False, separators=(",", ":"))
    names = {field["name"] for field in fields}
    partitions = list(read.partition_columns) if names.issuperset(read.partition_columns) else []
    changed = {"schemaString": text, "partitionColumns": partitions, "configuration": configuration}
    return {"metaData": {**read.metadata, **changed}}


def with_rules(configuration: Mapping[str, str], rules: Mapping[str, str]) -> dict[str, str]:
    """A table's properties, with the entries of its rules (SilverShape.rules) replaced by `rules`."""
    others = {name: value for name, value in configuration.items() if name not in _RULES}
    return others | {name: rules[name] for name in _RULES if name in rules}


def renamed_in(read: TableState) -> Mapping[str, str]:
    """The names of a table's renamed columns, by the source's names in lower case."""
    return from_text(read.configuration.get(NAMES_PROPERTY, "")) if read.created else {}


def renamed_columns(read: TableState) -> set[str]:
    """The renamed columns of a table: those whose metadata says so. An owner's column of the same
    name doesn't.
    """
    names = set(renamed_in(read).values())
    ours = (field["name"] for field in read.schema["fields"] if SOURCE_METADATA in (field.get("metadata") or {}))
    return names.intersection(ours) if names else names


def _mapped(fields: Sequence[Mapping[str, Any]], configuration: dict[str, str]) -> list[Mapping[str, Any]]:
    """In a table with column mapping, new columns get a number and a name for files (PROTOCOL.md,
    "Column Mapping"). The properties record the highest number.
    """
    if configuration.get("delta.columnMapping.mode", "none") == "none":
        return list(fields)
    mapped, highest = list[Mapping[str, Any]](), int(configuration.get(_HIGHEST, 0))
    for field in fields:
        known = dict(field.get("metadata") or {})
        if _ID not in known:
            highest += 1
            known |= {_ID: highest, _PHYSICAL: f"col-{uuid.uuid4()}"}
        mapped.append({**field, "metadata": known})
    configuration[_HIGHEST] = str(highest)
    return mapped


def _with_features(read: TableState, asked: frozenset[str]) -> list[Action]:
    """A protocol action if the table lacks a feature. Silver's protocol lists features by name."""
    return [] if asked <= read.features else [protocol(read.features | asked)]


def _asked(columns: Sequence[SilverColumn]) -> frozenset[str]:
    """Features for the columns' types."""
    return frozenset({_NTZ} if any(column.type == "timestamp_ntz" for column in columns) else ())


def _checked(fields: Sequence[Mapping[str, Any]], known: AbstractSet[str] = frozenset()) -> list[Mapping[str, Any]]:
    """Raise SchemaMismatch for names that readers refuse, or take for another column's. Names in
    `known` may stay.
    """
    seen: dict[str, str] = {}
    for name in (str(field["name"]) for field in fields):
        if name not in known and (refused := [char for char in name if char in _REFUSED_CHARACTERS]):
            raise SchemaMismatch(f"Delta takes no column {name!r}: it has {refused[0]!r}", remedy=_RENAME)
        if (other := seen.setdefault(name.lower(), name)) is not name:
            raise SchemaMismatch(f"columns {other!r} and {name!r} are the same to readers of Delta", remedy=_RENAME)
    return list(fields)


def _field(column: SilverColumn) -> dict[str, Any]:
    """A column as in the schema's JSON."""
    return {"name": column.name, "type": delta_json(column.type), "nullable": True, "metadata": column.metadata}


def _names(shape: SilverShape) -> dict[str, str]:
    return {NAMES_PROPERTY: shape.names} if shape.names else {}


def _schema(columns: Sequence[SilverColumn]) -> dict[str, Any]:
    return {"type": "struct", "fields": _checked(list(map(_field, columns)))}


def _described(field: Mapping[str, Any], column: SilverColumn | None) -> Mapping[str, Any]:
    if column is None:
        return field
    said = {"comment": column.comment, SOURCE_METADATA: column.source}
    others = {key: value for key, value in (field.get("metadata") or {}).items() if key not in said}
    return {**field, "metadata": others | {key: text for key, text in said.items() if text}}
