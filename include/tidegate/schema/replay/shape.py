"""A table's columns and indexes, and their changes by CREATE and ALTER.

In:  a shape, a statement's actions (ddl/tree.py), and its Context.
Out: a new shape; the given one stays as it was. A changed or renamed column keeps its id, a new one gets
     a fresh id.

Order of effect in ALTER TABLE (sql/sql_table.cc, mysql_prepare_alter_table): DROP, CHANGE and RENAME
COLUMN name columns of the old table, all at once. Then ADD, and CHANGE with a place, take effect one by
one. AFTER names a column of the new table; a column still to be moved counts where it was. MariaDB also
changes columns added by the same statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

from tidegate.errors import DDLError
from tidegate.remedy import RECREATE
from tidegate.schema.ddl.expressions import renamed
from tidegate.schema.ddl.tree import (
    Action,
    AddColumn,
    AddIndex,
    ChangeColumn,
    ColumnDefinition,
    ConvertCharset,
    CreateTable,
    Default,
    DropColumn,
    DropIndex,
    IndexDefinition,
    RenameColumn,
    SetDefault,
    SetNotNull,
    SetVisibility,
    SystemVersioning,
    TableComment,
    TableDefaults,
)
from tidegate.schema.ddl.types import shown_type
from tidegate.schema.model.columns import Column, Generated, Index, IndexKind, TableVersion
from tidegate.schema.model.partitions import Partitioning, altered
from tidegate.schema.model.unlogged import ForeignKey
from tidegate.schema.replay.context import Context
from tidegate.schema.replay.default_texts import default_text, stays
from tidegate.schema.replay.implicit_timestamps import with_first_timestamp
from tidegate.schema.replay.indexes import (
    find,
    first_place,
    kept_indexes,
    key_of,
    members_became_text,
    renamed_columns,
    with_indexes,
    with_row_end,
)
from tidegate.schema.replay.storage import altered_storage, created_storage
from tidegate.schema.replay.table_charsets import converted, recoded, resolve_charset


@dataclass(frozen=True, slots=True)
class Shape:
    """Columns in table order, indexes in the order in which they were made, defaults, partitions if it has any.

    engine, foreign_keys, merged_by, comment: as TableVersion has them.
    """

    columns: tuple[Column, ...]
    indexes: tuple[Index, ...]
    charset: str
    collation: str
    partitioning: Partitioning | None = None
    engine: str = ""
    foreign_keys: tuple[ForeignKey, ...] = ()
    merged_by: tuple[str, ...] = ()
    comment: str | None = None

    @classmethod
    def of(cls, version: TableVersion) -> Shape:
        return cls(**{item.name: getattr(version.plain, item.name) for item in fields(cls)})

    @property
    def key(self) -> tuple[int, ...]:
        """Ids of the key's columns, as TableVersion.key says."""
        return key_of(self.columns, self.indexes)


def create(statement: CreateTable, context: Context, taken: Sequence[Column] = ()) -> Shape:
    """The shape of a new table. taken: columns from its query, which get ids of their own.

    A column that is both defined and taken is as defined, and stands where the query has it.
    """
    defaults = resolve_charset(statement.charset, context.defaults, context.server)
    columns = [_column(definition, context.new_id(), defaults, context) for definition in statement.columns]
    if taken:
        selected = {column.name.lower() for column in taken}
        own = [column for column in columns if column.name.lower() not in selected]
        columns = own + [_as_defined(find(columns, c.name), c, context) for c in taken]
    columns = _with_own_names(with_first_timestamp(columns, (), context))
    inline = [index for definition in statement.columns for index in _inline_indexes(definition)]
    definitions = [*inline, *statement.indexes]
    indexes = with_indexes((), definitions, columns, statement.period)
    indexes = with_row_end(indexes, columns, versioned=statement.versioned)
    engine, keys = created_storage(statement.storage, definitions, context)
    shape = _settled(columns, indexes, defaults, statement.period)
    shape = replace(shape, engine=engine, foreign_keys=keys, comment=statement.comment)
    return replace(shape, partitioning=statement.partitioning)


def _as_defined(defined: Column | None, taken: Column, context: Context) -> Column:
    return replace(defined, name=taken.name) if defined else replace(taken, id=context.new_id())


def alter(shape: Shape, actions: Iterable[Action], context: Context) -> Shape:
    """The shape after all actions of one ALTER TABLE. Raises DDLError when they don't fit the table."""
    actions = _without_needless(shape, actions)
    defaults, convert = _table_defaults(shape, actions, context)
    columns = _kept_columns(shape, actions, defaults, convert, context)
    _place_columns(shape, columns, actions, (defaults, convert), context)
    columns = _with_own_names(_with_new_names(shape, columns, actions))
    columns = with_first_timestamp(columns, shape.columns, context)
    became_text = set() if context.server.mariadb else members_became_text(shape.columns, columns)
    indexes = kept_indexes(shape.columns, shape.indexes, actions, columns, became_text)
    added: list[IndexDefinition] = []
    for action in actions:
        if isinstance(action, AddColumn | ChangeColumn):
            careful = isinstance(action, AddColumn) and action.if_not_exists
            added += _inline_indexes(action.definition, shape.indexes if careful else ())
        if isinstance(action, AddIndex) and not (action.if_not_exists and find(indexes, action.definition.name)):
            added.append(action.definition)
    not_null = [name for action in actions if isinstance(action, SetNotNull) for name in action.names]
    indexes = with_indexes(indexes, added, columns, not_null)
    switch = next((action.on for action in actions if isinstance(action, SystemVersioning)), None)
    versioned = any(index.hidden_end for index in shape.indexes) if switch is None else switch
    after = _settled(columns, with_row_end(indexes, columns, versioned=versioned), defaults, not_null)
    engine, keys = altered_storage(shape.engine, shape.foreign_keys, actions, added, context)
    partitioning = altered(shape.partitioning, actions, renamed_columns(actions))
    after = replace(after, partitioning=partitioning, engine=engine, foreign_keys=keys, merged_by=shape.merged_by)
    said = [action.text for action in actions if isinstance(action, TableComment)]
    return replace(after, comment=said[-1] if said else shape.comment)


def copy(shape: Shape, new_id: Callable[[], int]) -> Shape:
    """CREATE TABLE LIKE: the same columns with ids of their own, and no foreign keys."""
    ids = {column.id: new_id() for column in shape.columns}
    return Shape(
        tuple(replace(column, id=ids[column.id]) for column in shape.columns),
        tuple(replace(index, parts=tuple(ids.get(part, 0) for part in index.parts)) for index in shape.indexes),
        shape.charset,
        shape.collation,
        shape.partitioning,
        shape.engine,
        comment=shape.comment,
    )


def _settled(
    columns: list[Column], indexes: tuple[Index, ...], defaults: tuple[str, str], not_null: Iterable[str]
) -> Shape:
    """Columns of the primary key, and those named in not_null, are NOT NULL whatever was written."""
    forced = {part for index in indexes if index.kind is IndexKind.PRIMARY for part in index.parts}
    forced |= {column.id for name in not_null if (column := find(columns, name))}
    settled = tuple(replace(c, nullable=False) if c.id in forced and c.nullable else c for c in columns)
    return Shape(settled, indexes, *defaults)


def _column(definition: ColumnDefinition, column_id: int, defaults: tuple[str, str], context: Context) -> Column:
    kind, charset, collation = shown_type(definition.type, defaults, context.server)
    nullable = definition.nullable
    if nullable is None:
        implicit = context.implicit_timestamps and definition.type.base == "timestamp" and not definition.generated
        nullable = not (implicit or definition.auto_increment)
    default = definition.default or Default(None)
    return Column(
        id=column_id,
        name=definition.name,
        type=kind,
        nullable=nullable,
        charset=charset,
        collation=collation,
        default=default_text(default, kind, charset, mariadb=context.server.mariadb),
        default_is_expression=default.is_expression,
        generated=definition.generated,
        generation_expression=definition.generation_expression,
        auto_increment=definition.auto_increment,
        invisible=definition.invisible,
        comment=definition.comment,
        on_update=definition.on_update,
    )


def _with_own_names(columns: list[Column]) -> list[Column]:
    """Expressions with columns' names as the table writes them: `A` may be written for `a`."""
    return _renamed(columns, {column.name.lower(): column.name for column in columns})


def _with_new_names(shape: Shape, columns: list[Column], actions: list[Action]) -> list[Column]:
    """Remaining expressions follow the renamed columns; those of the statement have the new names already."""
    now = {column.id: column.name for column in columns}
    names = {column.name.lower(): now[column.id] for column in shape.columns if column.id in now}
    if all(old == new.lower() for old, new in names.items()):
        return columns
    of_added = _changes_of_added(shape, actions)
    written = {_existing(shape, a.old).id for a in actions if isinstance(a, ChangeColumn) and a not in of_added}
    old = {column.id for column in shape.columns} - written
    return [_renamed([column], names)[0] if column.id in old else column for column in columns]


def _renamed(columns: list[Column], names: dict[str, str]) -> list[Column]:
    return [
        replace(
            column,
            generation_expression=renamed(column.generation_expression, names)
            if column.generated is not Generated.NO
            else column.generation_expression,
            default=renamed(column.default, names)
            if column.default_is_expression and column.default
            else column.default,
        )
        if column.generation_expression or column.default_is_expression
        else column
        for column in columns
    ]


def _inline_indexes(definition: ColumnDefinition, existing: Iterable[Index] = ()) -> list[IndexDefinition]:
    """The indexes of a column's own definition; with IF NOT EXISTS none of a name in `existing`."""
    definitions, kind = [], definition.index
    name = "PRIMARY" if kind is IndexKind.PRIMARY else ""
    if kind is not None and not find(existing, name or definition.name):
        definitions.append(IndexDefinition(kind, name, (definition.name,), (0,)))
    if definition.refers:
        definitions.append(IndexDefinition(IndexKind.PLAIN, "", (definition.name,), (0,), refers=definition.refers))
    return definitions


def _without_needless(shape: Shape, actions: Iterable[Action]) -> list[Action]:
    """IF EXISTS and IF NOT EXISTS as MariaDB means them: against the table as it was."""
    kept: list[Action] = []
    for action in actions:
        match action:
            case AddColumn(definition, if_not_exists=True):
                earlier = (a.definition.name.lower() for a in kept if isinstance(a, AddColumn))
                if find(shape.columns, definition.name) or definition.name.lower() in earlier:
                    kept += map(AddIndex, _inline_indexes(definition, shape.indexes))  # the column goes, not its key
                    continue
            case ChangeColumn(old, if_exists=True) | RenameColumn(old, if_exists=True):
                if not find(shape.columns, old):
                    continue
            case DropColumn(name, if_exists=True):
                if not find(shape.columns, name):
                    continue
            case DropIndex(name, if_exists, may_be_constraint):
                if (if_exists or may_be_constraint) and not find(shape.indexes, name):
                    continue
        kept.append(action)
    return kept


def _table_defaults(
    shape: Shape, actions: list[Action], context: Context
) -> tuple[tuple[str, str], tuple[str, str] | None]:
    """(the table's defaults after the statement, what CONVERT TO makes of its columns or None)."""
    defaults, convert, given = (shape.charset, shape.collation), None, False
    collated = False  # by a COLLATE of this statement, which a mere CHARACTER SET after it leaves alone
    for action in actions:
        if isinstance(action, ConvertCharset):
            base = context.defaults if not action.charset.charset else defaults
            convert = resolve_charset(action.charset, base, context.server, context.defaults)
            defaults = convert if not (given and context.server.mariadb) else defaults
            collated = bool(action.charset.collation) and not context.server.mariadb
        elif isinstance(action, TableDefaults) and action.charset:
            resolved = resolve_charset(action.charset, defaults, context.server, context.defaults)
            if not (collated and not action.charset.collation and resolved[0] == defaults[0]):
                defaults = resolved
            given = True
            collated = collated or bool(action.charset.collation)
    return defaults, convert


def _kept_columns(
    shape: Shape,
    actions: list[Action],
    defaults: tuple[str, str],
    convert: tuple[str, str] | None,
    context: Context,
) -> list[Column]:
    """The remaining old columns, each where it was; _place_columns moves those with a place."""
    by_old: dict[int, Action] = {}
    mariadb = context.server.mariadb
    details, of_added = _details(actions), _changes_of_added(shape, actions)
    for action in actions:
        match action:
            case ChangeColumn() if action in of_added:
                pass
            case DropColumn(name) | ChangeColumn(name) | RenameColumn(name):
                by_old[_existing(shape, name).id] = action
    columns: list[Column] = []
    for column in shape.columns:
        match by_old.get(column.id):
            case DropColumn():
                pass
            case ChangeColumn(_, definition):
                columns.append(_redefined(definition, column.id, defaults, convert, context))
            case RenameColumn(_, new):
                columns.append(converted(replace(column, name=new), convert, mariadb=mariadb))
            case _:
                columns.append(_detailed(converted(column, convert, mariadb=mariadb), details, mariadb=mariadb))
    return columns


def _changes_of_added(shape: Shape, actions: list[Action]) -> list[Action]:
    """Changes of columns that the same statement adds. The new name counts there: the old one may be anything."""
    dropped = {action.name.lower() for action in actions if isinstance(action, DropColumn)}
    kept = {column.name.lower() for column in shape.columns} - dropped
    added: set[str] = set()
    changes: list[Action] = []
    for action in actions:
        if isinstance(action, AddColumn):
            added.add(action.definition.name.lower())
        elif isinstance(action, ChangeColumn) and action.old.lower() not in kept:
            changes += [action] if action.definition.name.lower() in added else []
    return changes


def _existing(shape: Shape, name: str) -> Column:
    column = find(shape.columns, name)
    if column is None:
        raise DDLError(f"the table has no column {name!r}", remedy=RECREATE)
    return column


def _details(actions: list[Action]) -> dict[str, list[SetDefault | SetVisibility]]:
    """ALTER COLUMN ... SET DEFAULT and the like, by the column's name in lower case."""
    details: dict[str, list[SetDefault | SetVisibility]] = {}
    for action in actions:
        if isinstance(action, (SetDefault, SetVisibility)):
            details.setdefault(action.name.lower(), []).append(action)
    return details


def _detailed(column: Column, details: dict[str, list[SetDefault | SetVisibility]], *, mariadb: bool) -> Column:
    """The new form of a column; in MariaDB it may be one that the same statement adds."""
    for action in details.get(column.name.lower(), ()):
        if isinstance(action, SetVisibility):
            column = replace(column, invisible=action.invisible)
        else:
            gone, default = action.default is None, action.default or Default(None)
            text = default_text(default, column.type, column.charset, mariadb=mariadb)
            column = replace(column, default=text, default_is_expression=default.is_expression, no_default=gone)
    return column


def _redefined(
    definition: ColumnDefinition,
    column_id: int,
    defaults: tuple[str, str],
    convert: tuple[str, str] | None,
    context: Context,
) -> Column:
    column = _column(definition, column_id, defaults, context)
    return recoded(column, definition.type, convert, context.server, grows=not context.server.mariadb)


def _place_columns(
    shape: Shape,
    columns: list[Column],
    actions: list[Action],
    charsets: tuple[tuple[str, str], tuple[str, str] | None],
    context: Context,
) -> None:
    """New columns, and changed ones with a place, one after the other. charsets: as _table_defaults gives them."""
    defaults, convert = charsets
    details, of_added = _details(actions), _changes_of_added(shape, actions)
    for action in actions:
        if isinstance(action, AddColumn) or (isinstance(action, ChangeColumn) and action in of_added):
            if not isinstance(action, AddColumn):
                columns[:] = [c for c in columns if c.name.lower() != action.definition.name.lower()]
            column = _column(action.definition, context.new_id(), defaults, context)
            column = recoded(column, action.definition.type, convert, context.server, grows=False)
            if not stays(column, mariadb=context.server.mariadb):
                column = _detailed(column, details, mariadb=context.server.mariadb)
        elif isinstance(action, ChangeColumn) and action.definition.place is not None:
            column = next(c for c in columns if c.id == _existing(shape, action.old).id)
            columns.remove(column)
        else:
            continue
        place = action.definition.place
        if place is None:
            columns.append(column)
        elif not place.after:
            columns.insert(first_place(columns, shape.columns, shape.indexes, context.server), column)
        else:
            before = find(columns, place.after)
            if before is None:
                raise DDLError(f"the table has no column {place.after!r}", remedy=RECREATE)
            columns.insert(columns.index(before) + 1, column)
    if len({column.name.lower() for column in columns}) != len(columns):
        raise DDLError("the statement gives two columns one name", remedy=RECREATE)
