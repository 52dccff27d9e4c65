"""A table's engine and its foreign keys: what CREATE and ALTER make of them.

In:  the statement, the Context that it ran in.
Out: the engine in lower case ("" for InnoDB), and the foreign keys that change rows of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate.schema.ddl.tree import Action, ChangeColumn, DropIndex, IndexDefinition, RenameColumn
from tidegate.schema.model.unlogged import (
    DropForeignKey,
    EngineOptions,
    ForeignKey,
    Reference,
    action_kept,
    engine_kept,
    generated_name,
    has_foreign_keys,
    keys_with_columns,
    logged_as,
)
from tidegate.schema.replay.context import Context


def created_storage(
    storage: EngineOptions, definitions: Iterable[IndexDefinition], context: Context
) -> tuple[str, tuple[ForeignKey, ...]]:
    """(engine, foreign keys) of a new table."""
    engine = engine_kept(storage.engine or context.settings.engine)
    return engine, _with_keys((), definitions, engine, context)


def altered_storage(
    engine: str,
    keys: tuple[ForeignKey, ...],
    actions: Sequence[Action],
    definitions: Iterable[IndexDefinition],
    context: Context,
) -> tuple[str, tuple[ForeignKey, ...]]:
    """The same for a vanished table. definitions: of the statement's new indexes."""
    dropped: set[str] = set()
    for action in actions:
        if isinstance(action, EngineOptions) and action.engine:
            engine = engine_kept(action.engine)
        elif isinstance(action, DropForeignKey) or (isinstance(action, DropIndex) and action.may_be_constraint):
            dropped.add(action.name.lower())
    left = tuple(key for key in keys if key.name.lower() not in dropped)
    return engine, _with_keys(keys_with_columns(left, new_names(actions)), definitions, engine, context)


def _with_keys(
    keys: tuple[ForeignKey, ...], definitions: Iterable[IndexDefinition], engine: str, context: Context
) -> tuple[ForeignKey, ...]:
    """Those that change no row are kept for their names: DROP FOREIGN KEY names a constraint."""
    if not has_foreign_keys(engine):
        return ()
    all_keys = list(logged_as(keys, logged=context.logs_cascades))
    for definition in definitions:
        if definition.refers is not None:
            all_keys.append(_key(definition, definition.refers, all_keys, context))
    return tuple(all_keys)


def new_names(actions: Iterable[Action]) -> dict[str, str]:
    """Old names of columns, in lower case -> new ones."""
    pairs = [(action.old, action.new) for action in actions if isinstance(action, RenameColumn)]
    pairs += [(action.old, action.definition.name) for action in actions if isinstance(action, ChangeColumn)]
    return {old.lower(): new for old, new in pairs if old.lower() != new.lower()}


def _key(
    definition: IndexDefinition, refers: Reference, existing: Iterable[ForeignKey], context: Context
) -> ForeignKey:
    database, table = context.table
    return ForeignKey(
        refers.name or generated_name(table, existing),
        (refers.parent[0] or database, refers.parent[1]),
        action_kept(refers.on_delete),
        action_kept(refers.on_update),
        context.logs_cascades,
        definition.columns,
        refers.columns,
    )
