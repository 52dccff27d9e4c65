"""The actions of ALTER TABLE.

In:  a cursor after the table's name.
Out: its actions, in the order written. Actions that don't affect columns, keys or rows are left
     out.
"""

from __future__ import annotations

from typing import Final

from tidegate.schema.ddl.columns import read_column, read_constraint, read_default, starts_constraint
from tidegate.schema.ddl.partitions import (
    definition_at,
    read_definition,
    read_names,
    read_partition_action,
    read_to_partition,
    read_to_table,
    without_validation,
)
from tidegate.schema.ddl.tokens import Cursor, TokenKind
from tidegate.schema.ddl.tree import (
    Action,
    AddColumn,
    AddIndex,
    ChangeColumn,
    Charset,
    ConvertCharset,
    DropColumn,
    DropIndex,
    RenameColumn,
    RenameIndex,
    RenameTo,
    RowsChanged,
    SetDefault,
    SetNotNull,
    SetVisibility,
    SystemVersioning,
    TableComment,
    TableDefaults,
    TableName,
)
from tidegate.schema.ddl.types import read_charset, starts_charset
from tidegate.schema.model.partitions import DropPartitions, ExchangePartition, TruncatePartitions
from tidegate.schema.model.unlogged import SEQUENCE, DropForeignKey, EngineOptions

_PARTITION_WORK: Final = frozenset({"ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR"})
# Actions for which ALTER IGNORE doesn't check keys and checks; and words with which it does.
_KEEPS_ROWS: Final = (
    AddColumn,
    RenameColumn,
    RenameIndex,
    RenameTo,
    SetDefault,
    SetVisibility,
    TableComment,
    TableDefaults,
)
_LOOKS: Final = frozenset({"CHECK", "CONSTRAINT", "FORCE", "KEY", "ORDER", "PRIMARY", "UNIQUE"})
_COMMENT_MAX: Final = 2048  # characters of a table's comment; a server that isn't strict cuts it there


def read_actions(cursor: Cursor, database: str, touched: list[TableName], *, ignore: bool) -> tuple[Action, ...]:
    """All actions up to the end. ignore: ALTER IGNORE, which deletes rows a key or a check refuses,
    without row events.
    """
    actions: list[Action] = []
    tokens, partitions_at = cursor.tokens, definition_at(cursor)
    if partitions_at:  # it comes after the last action, without a comma
        cursor.tokens = [*tokens[:partitions_at], tokens[-1]]
    while not cursor.ended:
        if cursor.take_mark(","):
            continue
        before = cursor.at
        read = _action(cursor, database, touched)
        actions.extend(read)
        _skip_rest(cursor, database, actions, is_index=any(isinstance(action, AddIndex) for action in read))
        if cursor.at == before:
            raise cursor.lost("an action of ALTER TABLE")
    if partitions_at:
        cursor.tokens, cursor.at = tokens, partitions_at
        actions.append(read_definition(cursor))
    looks = any(token.upper in _LOOKS for token in tokens)
    if ignore and (looks or not all(isinstance(action, _KEEPS_ROWS) for action in actions)):
        what = "ALTER IGNORE TABLE deletes rows that its keys or checks refuse"
        actions.append(RowsChanged(what))
    return tuple(actions)


def read_storage(cursor: Cursor, database: str) -> EngineOptions:
    """ENGINE [=] x, UNION [=] (t, ...), SEQUENCE [=] 1. The cursor stays if none of them is here."""
    word = cursor.now.upper
    value = cursor.ahead(2 if cursor.ahead().text == "=" else 1)
    if word == "ENGINE" or (word == "TYPE" and cursor.ahead().text == "="):
        cursor.at += 2 if cursor.ahead().text == "=" else 1
        return EngineOptions(cursor.next().text.lower())
    if word == "SEQUENCE" and cursor.server.mariadb and value.kind == TokenKind.NUMBER:
        cursor.at += 3 if cursor.ahead().text == "=" else 2
        return EngineOptions(SEQUENCE if value.text == "1" else "")
    if word != "UNION" or value.text != "(":
        return EngineOptions()
    cursor.next()
    cursor.take_mark("=")
    cursor.expect_mark("(")
    names: list[TableName] = []
    while not cursor.take_mark(")"):
        names.append(cursor.table(database))
        cursor.take_mark(",")
    return EngineOptions("", tuple(names))


def read_comment(cursor: Cursor) -> TableComment | None:
    """A table's COMMENT [=] 'text'. If it isn't here: None, and the cursor stays."""
    if not cursor.take("COMMENT"):
        return None
    cursor.take_mark("=")
    return TableComment(cursor.next().text[:_COMMENT_MAX])


def _skip_rest(cursor: Cursor, database: str, actions: list[Action], *, is_index: bool) -> None:
    """Read up to the next comma: options that follow an action without a comma (ALGORITHM,
    PARTITION BY, charset, ENGINE).

    is_index: they follow an index, so a comment isn't the table's.
    """
    while not (cursor.ended or cursor.is_mark(",")):
        if starts_charset(cursor):
            actions.append(TableDefaults(_charset(cursor)))
        elif storage := read_storage(cursor, database):
            actions.append(storage)
        elif not is_index and (comment := read_comment(cursor)) is not None:
            actions.append(comment)
        else:
            cursor.skip_one()


def _action(cursor: Cursor, database: str, touched: list[TableName]) -> list[Action]:
    word = cursor.now.upper
    if cursor.take("ADD"):
        return _add(cursor)
    if cursor.take("DROP"):
        return _drop(cursor)
    if cursor.take("MODIFY"):
        cursor.take("COLUMN")
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.name()
        return [ChangeColumn(name, read_column(cursor, name), if_exists)]
    if cursor.take("CHANGE"):
        cursor.take("COLUMN")
        if_exists = cursor.take("IF", "EXISTS")
        old = cursor.name()
        return [ChangeColumn(old, read_column(cursor), if_exists)]
    if cursor.take("RENAME"):
        return [_rename(cursor, database, touched)]
    if cursor.take("ALTER"):
        return _alter_column(cursor)
    if cursor.take("CONVERT"):
        return _convert(cursor, database, touched)
    if word in ("TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT"):
        return _rows_changed(cursor, database, touched, word)
    if word == "DEFAULT" or starts_charset(cursor):
        cursor.take("DEFAULT")
        return (
            [TableDefaults(_charset(cursor))] if cursor.now.upper in ("CHARSET", "CHARACTER", "CHAR", "COLLATE") else []
        )
    if word in ("COALESCE", "REORGANIZE") and cursor.ahead().upper == "PARTITION":
        cursor.at += 2
        return _partitions(cursor, word)
    if word in _PARTITION_WORK and cursor.ahead().upper == "PARTITION":
        _skip_all(cursor)
        return []
    if storage := read_storage(cursor, database):
        return [storage]
    if (comment := read_comment(cursor)) is not None:
        return [comment]
    if word == "CONNECTION":  # CONNECTION 'x' COLLATE y: skip the string, then options go on
        cursor.next()
    cursor.skip_one()
    return []


def _partitions(cursor: Cursor, word: str) -> list[Action]:
    action = read_partition_action(cursor, word)
    _skip_all(cursor)
    return [action]


def _skip_all(cursor: Cursor) -> None:
    while not cursor.ended:
        cursor.skip_one()


def _charset(cursor: Cursor) -> Charset:
    """[DEFAULT] CHARACTER SET x [COLLATE y], in either order."""
    charset = Charset()
    while True:
        if starts_charset(cursor):
            charset = read_charset(cursor, charset)
        elif cursor.now.upper == "DEFAULT" and cursor.ahead().upper in ("CHARSET", "CHARACTER", "COLLATE"):
            cursor.next()
        else:
            return charset


def _add(cursor: Cursor) -> list[Action]:
    if starts_constraint(cursor):
        if_not_exists = _if_not_exists_ahead(cursor)
        return _add_constraint(cursor, if_not_exists)
    if cursor.now.upper == "PARTITION" and _is_partition(cursor):
        cursor.next()
        return _partitions(cursor, "ADD")
    if cursor.now.upper == "SYSTEM" and cursor.ahead().upper == "VERSIONING":
        cursor.at += 2
        return [SystemVersioning(on=True)]
    cursor.take("COLUMN")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    if not cursor.is_mark("("):
        return [AddColumn(read_column(cursor), if_not_exists)]
    cursor.next()
    actions: list[Action] = []
    while True:
        if starts_constraint(cursor):
            actions.extend(_add_constraint(cursor, if_not_exists=False))
        else:
            actions.append(AddColumn(read_column(cursor), if_not_exists))
        if cursor.take_mark(")"):
            return actions
        cursor.expect_mark(",")


def _add_constraint(cursor: Cursor, if_not_exists: bool) -> list[Action]:
    constraint = read_constraint(cursor)
    if isinstance(constraint, tuple):
        return [SetNotNull(constraint)] if constraint else []
    return [AddIndex(constraint, if_not_exists)]


def _if_not_exists_ahead(cursor: Cursor) -> bool:
    """Whether it is ADD INDEX IF NOT EXISTS, ADD CONSTRAINT IF NOT EXISTS ...: among the words
    before the parts.
    """
    return any(cursor.ahead(n).upper == "IF" and cursor.ahead(n + 1).upper == "NOT" for n in range(1, 5))


def _is_partition(cursor: Cursor) -> bool:
    """Whether it is ADD PARTITION (...), IF NOT EXISTS (...), PARTITIONS n. A column of this name
    must be quoted.
    """
    after = cursor.ahead()
    return after.text == "(" or after.upper in ("IF", "PARTITIONS", "NO_WRITE_TO_BINLOG", "LOCAL")


def _drop(cursor: Cursor) -> list[Action]:
    if cursor.take("PRIMARY", "KEY"):
        return [DropIndex("PRIMARY")]
    word, after = cursor.now.upper, cursor.ahead().upper
    if word in ("INDEX", "KEY", "CONSTRAINT"):
        cursor.next()
        if_exists = cursor.take("IF", "EXISTS")
        return [DropIndex(cursor.name(), if_exists, may_be_constraint=word == "CONSTRAINT")]
    if cursor.take("FOREIGN", "KEY"):
        cursor.take("IF", "EXISTS")
        return [DropForeignKey(cursor.name())]
    if word == "CHECK":
        cursor.skip_item()
        return []
    if word == "PARTITION" and cursor.ahead().text not in ("", ","):
        cursor.next()
        partition_actions = _partitions(cursor, "DROP")
        return (
            partition_actions
            if isinstance(partition_actions[0], DropPartitions)
            else [RowsChanged("DROP PARTITION deletes rows")]
        )
    if word == "SYSTEM" and after == "VERSIONING":
        cursor.at += 2
        return [SystemVersioning(on=False)]
    if word == "PERIOD" and after in ("FOR", "IF"):
        cursor.skip_item()
        return []
    cursor.take("COLUMN")
    if_exists = cursor.take("IF", "EXISTS")
    return [DropColumn(cursor.name(), if_exists)]


def _rename(cursor: Cursor, database: str, touched: list[TableName]) -> Action:
    if cursor.now.upper == "COLUMN":
        cursor.next()
        if_exists = cursor.take("IF", "EXISTS")
        old = cursor.name()
        if not cursor.take("TO"):
            raise cursor.lost("TO")
        return RenameColumn(old, cursor.name(), if_exists)
    if cursor.now.upper in ("INDEX", "KEY"):
        cursor.next()
        cursor.take("IF", "EXISTS")
        old = cursor.name()
        if not cursor.take("TO"):
            raise cursor.lost("TO")
        return RenameIndex(old, cursor.name())
    if not (cursor.take_any("TO", "AS") or cursor.take_mark("=")):
        pass  # RENAME new_name
    to = cursor.table(database)
    touched.append(to)
    return RenameTo(to)


def _alter_column(cursor: Cursor) -> list[Action]:
    if cursor.now.upper in ("INDEX", "KEY", "CHECK", "CONSTRAINT") and cursor.ahead().upper not in ("SET", "DROP"):
        cursor.skip_item()
        return []
    cursor.take("COLUMN")
    cursor.take("IF", "EXISTS")
    name = cursor.name()
    if cursor.take("SET", "DEFAULT"):
        return [SetDefault(name, read_default(cursor))]
    if cursor.take("DROP", "DEFAULT"):
        return [SetDefault(name, None)]
    if cursor.take("SET"):
        return [SetVisibility(name, invisible=cursor.next().upper == "INVISIBLE")]
    raise cursor.lost("SET or DROP")


def _convert(cursor: Cursor, database: str, touched: list[TableName]) -> list[Action]:
    if cursor.take("TO"):
        return [ConvertCharset(_charset(cursor))]
    if cursor.take("PARTITION"):  # MariaDB: CONVERT PARTITION p TO TABLE t, CONVERT TABLE t TO PARTITION p
        split = read_to_table(cursor, database)
        touched.append(split.other)
        _skip_all(cursor)
        return [split]
    if not cursor.take("TABLE"):
        raise cursor.lost("TABLE or PARTITION")
    grown = read_to_partition(cursor, database)
    touched.append(grown.other)
    return [grown]


def _rows_changed(cursor: Cursor, database: str, touched: list[TableName], word: str) -> list[Action]:
    """TRUNCATE / EXCHANGE PARTITION, DISCARD / IMPORT [PARTITION] TABLESPACE: they change rows
    without row events.
    """
    cursor.next()
    if word == "TRUNCATE" and cursor.take("PARTITION"):
        partition_actions = _partitions(cursor, word)
        return (
            partition_actions
            if isinstance(partition_actions[0], TruncatePartitions)
            else [RowsChanged("TRUNCATE PARTITION deletes rows")]
        )
    if word == "EXCHANGE" and cursor.take("PARTITION"):
        names = read_names(cursor)
        if len(names) != 1 or not cursor.take("WITH", "TABLE"):
            raise cursor.lost("WITH TABLE")
        other = cursor.table(database)
        touched.append(other)
        return [ExchangePartition(names[0], other, not without_validation(cursor))]
    _skip_all(cursor)
    return [RowsChanged(f"{word} changes rows without row events")]
