"""MySQL's partial JSON updates: differences applied to a document.

In:  a value from binlog/kernel/partial_rows.py for a column of PARTIAL_UPDATE_ROWS. It is 0xFF, the
     length (u32) of the before image's document, this document, and the differences; or it is a
     plain document.
Out: the new document's text, as SELECT shows it. DecodeError if a difference doesn't apply: then
     the log isn't what the server wrote.

A difference (mysql-server sql/json_diff.cc, Json_diff::write_binary) is an operation (u8), a path
(packed length, text), and, except for REMOVE, a value (packed length, binary JSON).
apply_json_diffs there says how each one applies. A document is a tree of dicts and lists. Its
leaves are their own text already: nothing below them can change.
"""

from __future__ import annotations

import json
import re
from typing import Final

from tidegate.columnar.cursor import ByteCursor
from tidegate.columnar.json_text import JsonReader, is_container, json_text, quoted
from tidegate.columnar.kernel.layout import PATCHED
from tidegate.errors import DecodeError
from tidegate.remedy import REFILL, REPORT

Tree = dict[str, "Tree"] | list["Tree"] | str
Leg = str | tuple[bool, int]  # a member's name; or (counted from the end, number of the cell)
_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_LEG: Final = re.compile(
    r"""\.(?P<quoted>"(?:[^"\\]|\\.)*")|\.(?P<name>[^\s."\[\]*]+)|\[(?P<cell>\d{1,10})\]|\[(?P<last>last)(?:-(?P<back>\d{1,10}))?\]""",
    re.DOTALL,
)


def patched_json_text(data: bytes) -> str:
    """The text of a plain document, or of a document after its differences."""
    if data[:1] != bytes([PATCHED]):
        return json_text(data)
    cursor = ByteCursor(data, 1)
    tree = read_tree(cursor.take(cursor.unsigned(4)))
    while cursor:
        _apply(tree, cursor)
    return "".join(_written(tree))


def read_tree(document: bytes) -> Tree:
    """Binary JSON as a tree."""
    reader = JsonReader(document)
    return _tree(reader, *reader.root, 0)


def _tree(reader: JsonReader, kind: int, at: int, end: int, depth: int = 0) -> Tree:
    if not is_container(kind):
        return reader.leaf(kind, at, end)
    keys, places = reader.members(kind, at, end, depth)
    values = [_tree(reader, *place, depth + 1) for place in places]
    return values if keys is None else dict(zip(keys, values, strict=True))


def _written(tree: Tree) -> list[str]:
    """Text in pieces. Members are in the server's order, so an added member is put into its place."""
    if isinstance(tree, str):
        return [tree]
    made: list[str] = []
    if isinstance(tree, list):
        for i, value in enumerate(tree):
            made.append(", " if i else "[")
            made += _written(value)
        return [*made, "]"] if tree else ["[]"]
    for i, key in enumerate(sorted(tree, key=_key_order)):
        made += [", " if i else "{", quoted(key), ": "]
        made += _written(tree[key])
    return [*made, "}"] if tree else ["{}"]


def _key_order(key: str) -> tuple[int, bytes]:
    data = key.encode()
    return len(data), data


def _apply(tree: Tree, cursor: ByteCursor) -> None:
    operation = cursor.unsigned(1)
    if operation not in (_REPLACE, _INSERT, _REMOVE):
        raise DecodeError(f"JSON difference of kind {operation} is not known", remedy=REPORT)
    path = cursor.text(cursor.packed())
    value = "" if operation == _REMOVE else read_tree(cursor.take(cursor.packed()))
    legs = read_path(path)
    parent: Tree | None = tree
    for leg in legs[:-1]:
        parent = _child(parent, leg)
    if not legs or parent is None or not _change(operation, parent, legs[-1], value):
        raise DecodeError(
            f"JSON difference at {path[:80]} doesn't apply to the document before it",
            remedy=REFILL.after(REPORT),
        )


def read_path(path: str) -> list[Leg]:
    """A path without wildcards or ranges (mysql-server sql-common/json_path.cc,
    Json_path::to_string).
    """
    if path[:1] != "$":
        raise _bad(path)
    legs: list[Leg] = []
    at = 1
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise _bad(path)
        at = match.end()
        if match["quoted"]:
            try:
                legs.append(str(json.loads(match["quoted"], strict=False)))
            except ValueError:
                raise _bad(path) from None
        elif match["name"]:
            legs.append(match["name"])
        else:
            legs.append((bool(match["last"]), int(match["cell"] or match["back"] or 0)))
    return legs


def _bad(path: str) -> DecodeError:
    return DecodeError(f"JSON path {path[:80]} can't be read", remedy=REPORT)


def _cell(array: list[Tree], leg: Leg) -> tuple[int, bool] | None:
    """(index of a cell, whether it is in the array). An index outside becomes the nearer end."""
    if isinstance(leg, str):
        return None
    from_end, number = leg
    within = number < len(array)
    if from_end:
        return (len(array) - 1 - number if within else 0), within
    return min(number, len(array)), within


def _child(tree: Tree | None, leg: Leg) -> Tree | None:
    if isinstance(tree, dict):
        return tree.get(leg) if isinstance(leg, str) else None
    if isinstance(tree, list):
        cell = _cell(tree, leg)
        return tree[cell[0]] if cell and cell[1] else None
    return None


def _change(operation: int, parent: Tree, leg: Leg, value: Tree) -> bool:
    """Apply one difference. Returns whether it was possible."""
    if isinstance(parent, dict):
        if not isinstance(leg, str) or (leg in parent) != (operation != _INSERT):
            return False
        if operation == _REMOVE:
            del parent[leg]
        else:
            parent[leg] = value
        return True
    cell = _cell(parent, leg) if isinstance(parent, list) else None
    if cell is None or not isinstance(parent, list):
        return False
    at, within = cell
    if operation == _INSERT:
        parent.insert(at, value)
        return True
    if not within:
        return False
    if operation == _REMOVE:
        del parent[at]
    else:
        parent[at] = value
    return True
