"""The content of a DDL statement as data. The reader writes it, and the replay follows it.

In:  nothing; these are values that reader.py makes.
Out: frozen values. Names are as written. Nothing here depends on existing tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.schema.model.columns import Generated, IndexKind
from tidegate.schema.model.partitions import PartitionAction, Partitioning
from tidegate.schema.model.unlogged import DropForeignKey, EngineOptions, Reference

TableName = tuple[str, str]  # (database, table)


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """A data type as written. Synonyms are resolved to base names; nothing is filled in.

    numbers: those in parentheses. members: of enum and set; bytes are in the column's character
    set. charset, collation: "" if not written. bin: the attribute BINARY. compressed: MariaDB's
    attribute COMPRESSED.
    """

    base: str
    numbers: tuple[int, ...] = ()
    members: tuple[str | bytes, ...] = ()
    unsigned: bool = False
    zerofill: bool = False
    charset: str = ""
    collation: str = ""
    bin: bool = False
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class Default:
    """A default: a literal's text, or an expression's. text None: DEFAULT NULL.

    is_bytes: text is 0x or 0b and digits: bytes in the column's character set, or a number.
    is_number: written without quotes. is_wide: its bytes aren't those of its text, even if this is
    ASCII (_ucs2'ab').
    """

    text: str | None
    is_expression: bool = False
    is_bytes: bool = False
    is_number: bool = field(default=False, compare=False)
    is_wide: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """Where ADD, MODIFY or CHANGE puts a column. after: "" means first."""

    after: str


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column in CREATE, ADD, MODIFY or CHANGE. nullable: None if nothing was written.

    refers: REFERENCES makes it a foreign key, which needs an index.
    """

    name: str
    type: TypeSpec
    nullable: bool | None = None
    default: Default | None = None
    generated: Generated = Generated.NO
    generation_expression: str = ""
    auto_increment: bool = False
    invisible: bool = False
    comment: str = ""
    index: IndexKind | None = None
    place: ColumnPlace | None = None
    on_update: str = ""
    refers: Reference | None = None


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index or a key's constraint. columns: "" stands for an expression. name: "" if the server
    makes one.

    prefixes: per column the length written after it; 0 for none. period: the last part is WITHOUT
    OVERLAPS. refers: the foreign key that needs this index.
    """

    kind: IndexKind
    name: str
    columns: tuple[str, ...]
    prefixes: tuple[int, ...]
    period: bool = False
    refers: Reference | None = None

    @property
    def made_for_key(self) -> bool:
        return self.refers is not None


@dataclass(frozen=True, slots=True)
class Charset:
    """A written character set and collation, each perhaps DEFAULT; "" if not written."""

    charset: str = ""
    collation: str = ""

    def __bool__(self) -> bool:
        return bool(self.charset or self.collation)


# --- actions of ALTER TABLE -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddColumn:
    definition: ColumnDefinition
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE; also MODIFY, then old is definition.name."""

    old: str
    definition: ColumnDefinition
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN c SET DEFAULT / DROP DEFAULT (default None)."""

    name: str
    default: Default | None


@dataclass(frozen=True, slots=True)
class SetVisibility:
    """ALTER COLUMN c SET VISIBLE / INVISIBLE."""

    name: str
    invisible: bool


@dataclass(frozen=True, slots=True)
class AddIndex:
    definition: IndexDefinition
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """name: "PRIMARY" for the primary key. may_be_constraint: DROP CONSTRAINT names an index, a
    check or a key.
    """

    name: str
    if_exists: bool = False
    may_be_constraint: bool = False


@dataclass(frozen=True, slots=True)
class RenameIndex:
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RenameTo:
    to: TableName


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET: every text column, and the table's default. charset: "" for the
    database's default.
    """

    charset: Charset


@dataclass(frozen=True, slots=True)
class TableDefaults:
    """The table's DEFAULT CHARACTER SET, for new columns."""

    charset: Charset


@dataclass(frozen=True, slots=True)
class TableComment:
    text: str


@dataclass(frozen=True, slots=True)
class SystemVersioning:
    """ADD or DROP SYSTEM VERSIONING."""

    on: bool


@dataclass(frozen=True, slots=True)
class SetNotNull:
    """The effect of ADD PERIOD on its two columns."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """An action that changes rows without row events; which rows, isn't known (IMPORT TABLESPACE
    ...).
    """

    reason: str


Action = (
    AddColumn
    | DropColumn
    | ChangeColumn
    | RenameColumn
    | SetDefault
    | SetVisibility
    | AddIndex
    | DropIndex
    | DropForeignKey
    | EngineOptions
    | RenameIndex
    | RenameTo
    | ConvertCharset
    | TableDefaults
    | TableComment
    | SetNotNull
    | SystemVersioning
    | PartitionAction
    | RowsChanged
)


# --- statements -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateTable:
    """query_at: the token at which a query begins, whose columns and rows the table also gets; None
    without one.

    period: columns of its PERIODs, which are NOT NULL whatever is written.
    """

    table: TableName
    columns: tuple[ColumnDefinition, ...]
    indexes: tuple[IndexDefinition, ...]
    charset: Charset
    if_not_exists: bool = False
    or_replace: bool = False
    temporary: bool = False
    query_at: int | None = None
    period: tuple[str, ...] = ()
    versioned: bool = False
    partitioning: Partitioning | None = None
    storage: EngineOptions = field(default_factory=EngineOptions)
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """MariaDB: it is no table, but the log has rows with its state."""

    table: TableName
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    view: TableName


@dataclass(frozen=True, slots=True)
class DropViews:
    views: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class CreateLike:
    table: TableName
    like: TableName
    if_not_exists: bool = False
    or_replace: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    table: TableName
    actions: tuple[Action, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTables:
    tables: tuple[TableName, ...]
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class RenameTables:
    """Pairs in the order in which they take effect. if_exists: MariaDB skips tables that don't
    exist.
    """

    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    table: TableName


@dataclass(frozen=True, slots=True)
class DefineDatabase:
    """CREATE or ALTER DATABASE."""

    database: str
    charset: Charset
    create: bool
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropDatabase:
    database: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """A statement that changes no table's columns and no rows. kind: its name, e.g. "CREATE
    TRIGGER".
    """

    kind: str


Statement = (
    CreateTable
    | CreateSequence
    | CreateView
    | DropViews
    | CreateLike
    | AlterTable
    | DropTables
    | RenameTables
    | Truncate
    | DefineDatabase
    | DropDatabase
    | Ignored
)


def starts_anew(statement: Statement) -> bool:
    """Whether a statement's tables are known after it, whatever they were: what held them doesn't
    matter any more.
    """
    match statement:
        case CreateTable(if_not_exists=False) | CreateLike(if_not_exists=False) | DropTables():
            return True
        case _:
            return False
