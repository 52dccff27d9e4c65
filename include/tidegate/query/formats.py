"""Changes as lines of JSON, in the forms of other tools.

In:  an Arrow table of changes (changelog/changelog_table.py).
Out: one line per change: plain (as `tidegate decode`), debezium (its envelope without schemas),
     canal (flat messages), maxwell.

Values are those of the changelog: what the log's image lacks isn't in an object. Statements have a
form of their own in each; words about the changelog itself (begin, gap, snapshot, erased) are lines of
plain alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from tidegate.changelog.changelog_table import BEGIN, DELETE, ERASED, GAP, INSERT, ROW_OPS, SNAPSHOT, UPDATE
from tidegate.commit_ts import physical_ms

Change = Mapping[str, Any]
_WORDS: Final = (BEGIN, GAP, SNAPSHOT, ERASED)
_DEBEZIUM: Final = {INSERT: "c", UPDATE: "u", DELETE: "d", "truncate": "t"}
_CANAL: Final = {"drop": "ERASE"}
_MAXWELL: Final = {"create": "table-create", "alter": "table-alter", "drop": "table-drop"}


def lines(rows: pa.Table, form: str, columns: Collection[str] | None = None) -> Iterator[str]:
    """columns: those of the row objects that are wanted; None: all. form: a key of FORMS."""
    write = FORMS[form]
    for row in rows.to_pylist():
        if row["op"] in _WORDS and write is not _plain:
            continue
        for side in ("before", "after"):
            if row[side] is not None:
                cells = json.loads(row[side])
                row[side] = cells if columns is None else {k: cells[k] for k in cells if k in columns}
        yield json.dumps(write(row), ensure_ascii=False, separators=(",", ":"))


def column_names(rows: pa.Table) -> set[str]:
    """The names of columns in the row objects of changes."""
    sides = [side for name in ("before", "after") for side in rows[name].to_pylist() if side is not None]
    return {name for side in sides for name in json.loads(side)}


def _plain(row: Change) -> dict[str, Any]:
    names = ("op", "database", "table", "commit_ts", "source", "file", "pos", "gtid", "before", "after")
    message = {name: row[name] for name in names}
    return message | ({"note": row["note"]} if row["note"] is not None else {})


def _debezium(row: Change) -> dict[str, Any]:
    at_ms = physical_ms(row["commit_ts"])
    source = {"connector": "mysql", "name": row["source"], "ts_ms": at_ms, "snapshot": "false", "db": row["database"]}
    source |= {name: row[name] for name in ("table", "gtid", "file", "pos")}
    if row["op"] in _DEBEZIUM:
        sides = {"before": row["before"], "after": row["after"]}
        return {**sides, "source": source, "op": _DEBEZIUM[row["op"]], "ts_ms": at_ms}
    return {"source": source, "ts_ms": at_ms, "databaseName": row["database"], "ddl": row["note"]}


def _canal(row: Change) -> dict[str, Any]:
    is_row, at_ms = row["op"] in ROW_OPS, physical_ms(row["commit_ts"])
    kind = _CANAL.get(row["op"], row["op"].upper())
    data = row["after"] if row["after"] is not None else row["before"]
    return {
        "data": [_texts(data)] if is_row else None,
        "database": row["database"],
        "es": at_ms,
        "id": row["commit_ts"],
        "isDdl": not is_row,
        "old": [_texts(_changed(row))] if row["op"] == UPDATE else None,
        "sql": "" if is_row else row["note"],
        "table": row["table"],
        "ts": at_ms,
        "type": kind,
    }


def _maxwell(row: Change) -> dict[str, Any]:
    message: dict[str, Any] = {"database": row["database"], "table": row["table"]}
    message |= {"type": _MAXWELL.get(row["op"], row["op"]), "ts": physical_ms(row["commit_ts"]) // 1000}
    message |= {"xid": row["commit_ts"], "position": f"{row['file']}:{row['pos']}", "gtid": row["gtid"]}
    if row["op"] not in ROW_OPS:
        return message | {"sql": row["note"]}
    message["data"] = row["after"] if row["after"] is not None else row["before"]
    return message | ({"old": _changed(row)} if row["op"] == UPDATE else {})


def _changed(row: Change) -> dict[str, Any]:
    """The old values of the columns that an update changed."""
    before, after = row["before"], row["after"]
    return {name: value for name, value in before.items() if name in after and after[name] != value}


def _texts(values: Mapping[str, Any]) -> dict[str, str | None]:
    """As canal has values: texts, or null; of a bit 0 or 1."""
    return {name: value if value is None else _as_text(value) for name, value in values.items()}


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, bool) else json.dumps(value)


FORMS: Final[Mapping[str, Callable[[Change], dict[str, Any]]]] = {
    "plain": _plain,
    "debezium": _debezium,
    "canal": _canal,
    "maxwell": _maxwell,
}
