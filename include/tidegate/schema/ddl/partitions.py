"""Read how a table is partitioned: PARTITION BY, and ALTER TABLE's actions on partitions.

In:  a cursor at such a clause.
Out: a Partitioning or an action (model/partitions.py). An unreadable clause is skipped, and the
     result says so: columns and keys don't depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidegate.errors import DDLError
from tidegate.schema.ddl.tokens import Cursor, TokenKind
from tidegate.schema.ddl.types import octets, read_bytes
from tidegate.schema.model.partitions import (
    COLUMN,
    CURRENT,
    DEFAULT,
    MAX,
    SYSTEM_TIME,
    TEXT,
    AddPartitions,
    CoalescePartitions,
    DefinePartitions,
    DropPartitions,
    Node,
    Partition,
    PartitionAction,
    Partitioning,
    PartitionToTable,
    ReorganizePartitions,
    TableToPartition,
    TruncatePartitions,
    UnknownPartitions,
)

_FUNCTIONS: Final = frozenset(
    {
        "abs", "ceiling", "ceil", "floor", "mod", "datediff", "day", "dayofmonth", "dayofweek", "dayofyear", "hour",
        "minute", "second", "month", "quarter", "time_to_sec", "to_days", "to_seconds", "unix_timestamp", "weekday",
        "year", "yearweek", "microsecond",
    }
)  # fmt: skip
_ASCII_INTRODUCERS: Final = frozenset({"_UTF8MB4", "_UTF8MB3", "_UTF8", "_ASCII", "_LATIN1"})
_DIGITS_MAX: Final = 20  # a 64-bit number has at most so many


def read_partitioning(cursor: Cursor) -> Partitioning:
    """A clause after its words PARTITION BY. The caller skips what couldn't be read."""
    before = cursor.at
    try:
        return _partitioning(cursor)
    except (DDLError, RecursionError) as error:
        cursor.at = before
        return Partitioning(unknown=f"its PARTITION BY can't be read: {_what(error)}")


def read_partition_action(cursor: Cursor, word: str) -> PartitionAction:
    """An action after its first words, `word` PARTITION. The cursor may stop anywhere after them."""
    before = cursor.at
    try:
        return _READERS[word](cursor)
    except (DDLError, RecursionError) as error:
        cursor.at = before
        return UnknownPartitions(f"{word} PARTITION can't be read: {_what(error)}")


def _what(error: DDLError | RecursionError) -> str:
    return error.what if isinstance(error, DDLError) else "an expression is nested too deeply"


def read_names(cursor: Cursor) -> tuple[str, ...]:
    """Names of partitions, up to a word that isn't a name; () for ALL."""
    _skip_log_words(cursor)
    if cursor.take("ALL"):
        return ()
    names = [cursor.name()]
    while cursor.take_mark(","):
        names.append(cursor.name())
    return tuple(names)


def read_new_partition(cursor: Cursor) -> Partition | None:
    """`name VALUES ...`; None if it can't be read."""
    before = cursor.at
    try:
        return _definition(cursor, named=True)
    except (DDLError, RecursionError):
        cursor.at = before
        return None


def _skip_log_words(cursor: Cursor) -> None:
    cursor.take_any("NO_WRITE_TO_BINLOG", "LOCAL")


def _add(cursor: Cursor) -> PartitionAction:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    _skip_log_words(cursor)
    if cursor.take("PARTITIONS"):
        return AddPartitions(count=cursor.length("a number"))
    return AddPartitions(_definitions(cursor), if_not_exists=if_not_exists)


def _drop(cursor: Cursor) -> PartitionAction:
    if_exists = cursor.take("IF", "EXISTS")
    return DropPartitions(read_names(cursor), if_exists)


def _truncate(cursor: Cursor) -> PartitionAction:
    return TruncatePartitions(read_names(cursor))


def _reorganize(cursor: Cursor) -> PartitionAction:
    _skip_log_words(cursor)
    if cursor.ended:
        return ReorganizePartitions((), ())
    names = read_names(cursor)
    if not cursor.take("INTO"):
        raise cursor.lost("INTO")
    return ReorganizePartitions(names, _definitions(cursor))


def _coalesce(cursor: Cursor) -> PartitionAction:
    _skip_log_words(cursor)
    return CoalescePartitions(cursor.length("a number"))


_READERS: Final[dict[str, Callable[[Cursor], PartitionAction]]] = {
    "ADD": _add,
    "DROP": _drop,
    "TRUNCATE": _truncate,
    "REORGANIZE": _reorganize,
    "COALESCE": _coalesce,
}


def read_to_table(cursor: Cursor, database: str) -> PartitionToTable:
    """After CONVERT PARTITION."""
    name = cursor.name()
    if not cursor.take("TO", "TABLE"):
        raise cursor.lost("TO TABLE")
    return PartitionToTable(name, cursor.table(database))


def read_to_partition(cursor: Cursor, database: str) -> TableToPartition:
    """After CONVERT TABLE."""
    other = cursor.table(database)
    partition = read_new_partition(cursor) if cursor.take("TO", "PARTITION") else None
    return TableToPartition(other, partition, not without_validation(cursor))


def without_validation(cursor: Cursor) -> bool:
    """Whether WITHOUT VALIDATION follows. Everything up to it is skipped."""
    without = False
    while not cursor.ended:
        without = without or (cursor.now.upper == "WITHOUT" and cursor.ahead().upper == "VALIDATION")
        cursor.skip_one()
    return without


def definition_at(cursor: Cursor) -> int:
    """The place of PARTITION BY or REMOVE PARTITIONING, outside of parentheses; 0 if there is none."""
    depth, before = 0, ""
    for at in range(cursor.at, len(cursor.tokens)):
        token = cursor.tokens[at]
        if token.kind == TokenKind.MARK:
            depth += (token.text == "(") - (token.text == ")")
        elif not depth and (before, token.upper) in (("PARTITION", "BY"), ("REMOVE", "PARTITIONING")):
            return at - 1
        before = token.upper
    return 0


def read_definition(cursor: Cursor) -> DefinePartitions:
    """The partitioning at definition_at. Everything after it is skipped."""
    if cursor.take("REMOVE", "PARTITIONING"):
        return DefinePartitions(None)
    cursor.at += 2
    definition = DefinePartitions(read_partitioning(cursor))
    while not cursor.ended:
        cursor.skip_one()
    return definition


# --- the clause -------------------------------------------------------------------------------------


def _partitioning(cursor: Cursor) -> Partitioning:
    method, expressions = _method(cursor)
    count, sub = 1, ""
    while not cursor.ended:
        if cursor.take("PARTITIONS"):
            count = cursor.length("a number")
        elif cursor.take("SUBPARTITION", "BY"):
            sub, _ = _method(cursor)
        elif cursor.is_mark("(") and cursor.ahead().upper == "PARTITION":
            return Partitioning(method, expressions, _definitions(cursor), sub)
        elif cursor.take("SUBPARTITIONS"):
            cursor.length("a number")
        elif method == SYSTEM_TIME:
            cursor.skip_one()  # INTERVAL 1 DAY STARTS '...' AUTO, LIMIT 1000
        else:
            break
    if method in ("hash", "key", "linear hash", "linear key"):
        return Partitioning(method, expressions, tuple(Partition(f"p{n}") for n in range(count)), sub)
    if method == SYSTEM_TIME:
        made = (Partition("p0"), Partition("pn", ((CURRENT,),)))
        return Partitioning(method, expressions, made, sub)
    raise cursor.lost("partitions")


def _method(cursor: Cursor) -> tuple[str, tuple[Node, ...]]:
    linear = "linear " if cursor.take("LINEAR") else ""
    word = cursor.take_any("RANGE", "LIST", "HASH", "KEY", "SYSTEM_TIME").lower()
    if not word:
        raise cursor.lost("RANGE, LIST, HASH, KEY or SYSTEM_TIME")
    if word == SYSTEM_TIME:
        return word, ()
    if word == "key" and cursor.take("ALGORITHM"):
        cursor.take_mark("=")
        cursor.next()
    if word == "key" or cursor.take_any("COLUMNS"):
        cursor.expect_mark("(")
        columns: list[Node] = []
        while not cursor.take_mark(")"):
            columns.append((COLUMN, cursor.name()))
            cursor.take_mark(",")
        return (linear + word if word == "key" else f"{word} columns"), tuple(columns)
    cursor.expect_mark("(")
    expression = _sum(cursor)
    cursor.expect_mark(")")
    return linear + word, (expression,)


def _definitions(cursor: Cursor) -> tuple[Partition, ...]:
    """`(PARTITION p ..., ...)`."""
    cursor.expect_mark("(")
    partitions = []
    while True:
        partitions.append(_definition(cursor))
        while not (cursor.ended or cursor.is_mark(",") or cursor.is_mark(")")):
            cursor.skip_one()  # ENGINE, COMMENT, subpartitions ...
        if cursor.take_mark(")"):
            return tuple(partitions)
        cursor.expect_mark(",")


def _definition(cursor: Cursor, *, named: bool = False) -> Partition:
    """named: whether the word PARTITION has been read."""
    if not named and not cursor.take("PARTITION"):
        raise cursor.lost("PARTITION")
    name = cursor.name()
    if cursor.take("VALUES", "LESS", "THAN"):
        bound = (_value(cursor),) if cursor.now.upper == "MAXVALUE" else _values(cursor)
        return Partition(name, (bound,))
    if cursor.take("VALUES", "IN"):
        if cursor.now.upper == "DEFAULT":
            return Partition(name, ((_value(cursor),),))
        return Partition(name, _list(cursor))
    cursor.take_any("VALUES")
    if cursor.take("DEFAULT"):
        return Partition(name, ((DEFAULT,),))
    if cursor.take("CURRENT"):
        return Partition(name, ((CURRENT,),))
    cursor.take("HISTORY")
    return Partition(name)


def _list(cursor: Cursor) -> tuple[tuple[Node, ...], ...]:
    """`(1, 2)` or `((1, 'a'), (2, 'b'))`."""
    cursor.expect_mark("(")
    values: list[tuple[Node, ...]] = []
    while True:
        before = cursor.at
        if cursor.is_mark("("):
            tuple_of = _values(cursor)
            if not (cursor.is_mark(",") or cursor.is_mark(")")):  # (1 + 2) * 3
                cursor.at = before
                tuple_of = (_value(cursor),)
            values.append(tuple_of)
        else:
            values.append((_value(cursor),))
        if cursor.take_mark(")"):
            return tuple(values)
        cursor.expect_mark(",")


def _values(cursor: Cursor) -> tuple[Node, ...]:
    cursor.expect_mark("(")
    nodes = [_value(cursor)]
    while cursor.take_mark(","):
        nodes.append(_value(cursor))
    cursor.expect_mark(")")
    return tuple(nodes)


def _value(cursor: Cursor) -> Node:
    if cursor.take("MAXVALUE"):
        return MAX
    if cursor.take("DEFAULT"):
        return DEFAULT
    return _sum(cursor)


# --- expressions ------------------------------------------------------------------------------------


def _sum(cursor: Cursor) -> Node:
    left = _product(cursor)
    while True:
        if cursor.take_mark("+"):
            left = ("+", left, _product(cursor))
        elif cursor.take_mark("-"):
            left = ("-", left, _product(cursor))
        else:
            return left


def _product(cursor: Cursor) -> Node:
    left = _factor(cursor)
    while True:
        if cursor.take_mark("*"):
            left = ("*", left, _factor(cursor))
        elif cursor.take_mark("%") or cursor.take("MOD"):
            left = ("mod", left, _factor(cursor))
        elif cursor.take("DIV"):
            left = ("div", left, _factor(cursor))
        else:
            return left


def _factor(cursor: Cursor) -> Node:
    if cursor.take_mark("-"):
        inner = _factor(cursor)
        return -inner if isinstance(inner, int) else ("negative", inner)
    if cursor.take_mark("+"):
        return _factor(cursor)
    if cursor.take_mark("("):
        inner = _sum(cursor)
        cursor.expect_mark(")")
        return inner
    if (text := _hexadecimal(cursor)) is not None:
        return (TEXT, text)
    token = cursor.now
    if token.kind == TokenKind.NUMBER:
        if not (token.text.isascii() and token.text.isdigit()) or len(token.text) > _DIGITS_MAX:
            raise cursor.lost("a whole number")
        return int(cursor.next().text)
    introduced = token.upper in _ASCII_INTRODUCERS or token.upper in ("DATE", "TIMESTAMP")
    if introduced and cursor.ahead().kind == TokenKind.STRING:
        charset, token = cursor.next(), cursor.now
        if charset.upper in ("_ASCII", "_LATIN1") and not token.text.isascii():
            raise cursor.lost("a text in a character set that is known here")
    if token.kind == TokenKind.STRING:
        return (TEXT, cursor.next().text)
    if cursor.take("NULL"):
        return None
    if token.kind == TokenKind.WORD and cursor.ahead().text == "(" and cursor.ahead().kind == TokenKind.MARK:
        return _call(cursor)
    return (COLUMN, cursor.name())


def _hexadecimal(cursor: Cursor) -> str | None:
    """0x6d, X'6d' and _latin1 0x6d; None for anything else. Here the servers take it as a text, never as a number.

    Only printable ASCII is read: it is the same text in every character set whose order is known (partition_rows.py).
    """
    at = cursor.at
    if cursor.now.upper in _ASCII_INTRODUCERS:
        cursor.next()
    literal = read_bytes(cursor)
    if literal[:2] not in ("0x", "0X"):
        cursor.at = at
        return None
    try:
        text = octets(literal).decode("ascii")
    except ValueError:
        text = ""
    if not text.isprintable() or not text:
        cursor.at = at
        raise cursor.lost("a text in ASCII")
    return text


def _call(cursor: Cursor) -> Node:
    name = cursor.now.text.lower()
    if name not in _FUNCTIONS:
        raise cursor.lost("a function that is known here")
    cursor.next()
    cursor.expect_mark("(")
    arguments = [_sum(cursor)]
    while cursor.take_mark(","):
        arguments.append(_sum(cursor))
    cursor.expect_mark(")")
    return (name, *arguments)
