"""Silver beside the source, by a reader that shares no code with tidegate's road, nor with `tidegate verify`.

In:  a server, a lake.
Out: per table an outcome. The source's rows come by its own SELECT as text, silver's by delta-rs' query engine; both
     are brought to the same plain text per value and compared as multisets.
"""

from __future__ import annotations

import contextlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pymysql
from deltalake import DeltaTable, QueryBuilder

from tidegate import tables
from tidegate.local.server import Server
from tidegate.table_names import splits

Rows = Counter[tuple[str | None, ...]]
_SYSTEM: Final = ("mysql", "sys", "information_schema", "performance_schema", tables.WATERMARK_DATABASE)
_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "decimal"})
_MOMENTS: Final = frozenset({"date", "datetime", "timestamp"})
_WORDS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
_SAID: Final = frozenset({"time", "json", "uuid", "inet4", "inet6"})


@dataclass(frozen=True, slots=True)
class Found:
    """outcome: equal, held, dropped, empty (no silver, no rows), different, ghost (silver has rows, the source no
    table), missing (rows, but no silver), unreadable (the source itself can't read it).
    """

    table: str
    outcome: str
    detail: str = ""
    rows: int = 0


def compare(server: Server, lake: Path) -> list[Found]:
    """Every table of the source, and every one that silver shows as live."""
    server.query(f"SET GLOBAL max_allowed_packet = {1 << 30}")  # HEX of what needs more is NULL
    states = _states(lake)
    found = []
    at_source = set(tables_at(server))
    for name in sorted(at_source):
        state = states.get(f"{name[0]}.{name[1]}", {})
        if state.get("state") in ("held", "released"):
            found.append(Found(".".join(name), "held", _why(state)))
            continue
        found.append(_one(server, lake, name))
    live = {name for name, state in states.items() if state["state"] not in ("dropped", "left")}
    for name in sorted({*_silver_tables(lake, at_source, states)} - at_source):
        dotted = ".".join(name)
        state = states.get(dotted, {})
        if state.get("state") in ("held", "released"):
            found.append(Found(dotted, "held gone", _why(state)))
        elif dotted in live or dotted not in states:
            rows = sum(_silver(lake, name, None).values())
            found.append(Found(dotted, "ghost" if rows else "empty", rows=rows))
        else:
            rows = sum(_silver(lake, name, None).values())
            found.append(Found(dotted, "ghost" if rows else "dropped", rows=rows))
    return found


def _one(server: Server, lake: Path, name: tuple[str, str]) -> Found:
    dotted = ".".join(name)
    try:
        cells = _cells(server, *name)
        wanted = _source(server, name, cells)
    except pymysql.err.MySQLError as error:
        return Found(dotted, "unreadable", str(error)[:200])
    rows = sum(wanted.values())
    if not (lake / tables.silver_path(*name) / "_delta_log").is_dir():
        return Found(dotted, "missing" if rows else "empty", rows=rows)
    try:
        got = _silver(lake, name, cells)
    except (KeyError, ValueError, TypeError) as error:
        return Found(dotted, "different", f"{type(error).__name__}: {error}"[:300], rows)
    if got == wanted:
        return Found(dotted, "equal", rows=rows)
    lacking, extra = list((wanted - got).elements()), list((got - wanted).elements())
    return Found(
        dotted, "different", f"{len(lacking)} lacking {lacking[:2]}, {len(extra)} extra {extra[:2]}"[:900], rows
    )


def _states(lake: Path) -> dict[str, dict[str, Any]]:
    path = lake / "control" / "table_states"
    if not (path / "_delta_log").is_dir():
        return {}
    events = pa.table(QueryBuilder().register("t", DeltaTable(str(path))).execute("SELECT * FROM t"))
    return {str(event["table"]): event for event in sorted(events.to_pylist(), key=lambda event: event["recorded_at"])}


def _why(state: dict[str, Any]) -> str:
    return f"{state['fault'] or state['cause']}: {state['reason']}"


def _silver_tables(
    lake: Path, at_source: Iterable[tuple[str, str]], states: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """The folder of a long name ends in a digest: such a table is known by its name elsewhere, or is a KeyError."""
    names = {*at_source, *(name for dotted in states for name in splits(dotted))}
    known = {tables.silver_path(*name): name for name in names}
    for log in (lake / "silver").glob("*/*/_delta_log"):
        database, table = log.parent.parent.name, log.parent.name
        if "~~" in f"{database}{table}":
            yield known[f"{tables.SILVER_FOLDER}/{database}/{table}"]
        else:
            yield _named(database), _named(table)


def _named(folder: str) -> str:
    """A folder's name back to the table's: ~hex~ are odd characters."""
    parts = folder.split("~")
    return "".join(part if at % 2 == 0 else chr(int(part, 16)) for at, part in enumerate(parts))


def tables_at(server: Server) -> Iterator[tuple[str, str]]:
    """(database, table) of all base tables that are not the server's own."""
    rows = server.query(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type IN"
        " ('BASE TABLE', 'SYSTEM VERSIONED') AND table_schema NOT IN %s",
        (_SYSTEM,),
    )
    return ((str(database), str(table)) for database, table in rows)


def use_memory_tables(server: Server) -> None:
    """A server that was started again logs at their next use that they are empty."""
    for database, table in server.query(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE engine = 'MEMORY'"
        " AND table_schema NOT IN %s",
        (_SYSTEM,),
    ):
        with contextlib.suppress(pymysql.err.MySQLError):
            server.query(f"SELECT 1 FROM `{database}`.`{table}` LIMIT 1")


# --- one value, both sides --------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Cell:
    """A column: SQL that gives its text, and what makes one form of it and of silver's value."""

    name: str
    sql: str
    source: Callable[[str], str | None]
    silver: Callable[[Any], str | None]


def _cells(server: Server, database: str, table: str) -> list[Cell]:
    columns = server.query(
        "SELECT column_name, data_type, column_type, datetime_precision FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        (database, table),
    )
    return [_cell(str(name), str(kind).lower(), _word(whole).lower()) for name, kind, whole, _ in columns]


def _word(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _cell(name: str, kind: str, whole: str) -> Cell:
    column = "`" + name.replace("`", "``") + "`"
    if kind in _NUMBERS:
        return Cell(name, f"CAST({column} AS CHAR)", _number, _number)
    if kind == "bit":
        return Cell(name, f"CAST({column} + 0 AS CHAR)", str, _bits)
    if kind in ("float", "double"):  # no CAST: MySQL's has 16 digits, and the largest double is infinite then
        return Cell(name, f"{column} + 0e0", _real, _real)
    if kind in _MOMENTS:
        return Cell(name, f"CAST({column} AS CHAR)", _moment, _silver_moment)
    if kind in _WORDS:
        return Cell(name, f"HEX(CONVERT({column} USING utf8mb4))", str, _hex)
    if kind in _SAID:
        return Cell(name, f"HEX(CONVERT(CAST({column} AS CHAR) USING utf8mb4))", str, _hex)
    if kind == "vector":
        return Cell(name, f"HEX({column})", str, lambda value: struct.pack(f"<{len(value)}f", *value).hex().upper())
    if "geom" in kind or kind.endswith(("point", "linestring", "polygon")):
        return Cell(name, f"HEX({column})", str, _geometry)
    return Cell(name, f"HEX({column})", str, _hex)


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return format(Decimal(str(value)).normalize() + 0, "f")


def _real(value: Any) -> str:
    return repr(float(value) or 0.0)


def _bits(value: Any) -> str:
    return str(int.from_bytes(value, "big") if isinstance(value, bytes) else int(value))


def _moment(text: str) -> str | None:
    head, _, fraction = text.partition(".")
    try:
        found = datetime.strptime(head, "%Y-%m-%d %H:%M:%S" if " " in head else "%Y-%m-%d")  # noqa: DTZ007
    except ValueError:
        return None  # no calendar has it
    return f"{found:%Y-%m-%d %H:%M:%S}.{fraction.ljust(6, '0')}"


def _silver_moment(value: Any) -> str:
    if not isinstance(value, datetime):
        assert isinstance(value, date)
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return f"{value.replace(tzinfo=None):%Y-%m-%d %H:%M:%S}.{value.microsecond:06d}"


def _hex(value: Any) -> str:
    return (value if isinstance(value, bytes) else str(value).encode()).hex().upper()


def _geometry(value: bytes) -> str:
    """EWKB back to the server's SRID and WKB; MariaDB may have no bytes at all (sql_mode '')."""
    if not value:
        return ""
    order, kind = struct.unpack_from("<BI", value)
    if not kind & 0x20000000:
        return (bytes(4) + value).hex().upper()
    return (value[5:9] + struct.pack("<BI", order, kind & ~0x20000000) + value[9:]).hex().upper()


# --- rows ---------------------------------------------------------------------------------------------
def _source(server: Server, name: tuple[str, str], cells: list[Cell]) -> Rows:
    table = ".".join("`" + part.replace("`", "``") + "`" for part in name)
    with server.connect(init_command="SET time_zone = '+00:00', sql_mode = ''") as connection:
        cursor = connection.cursor()
        cursor.execute(f"SELECT {', '.join(cell.sql for cell in cells)} FROM {table}")
        rows = cursor.fetchall()
    made = [cell.source for cell in cells]
    return Counter(
        tuple(None if v is None else make(_word(v)) for make, v in zip(made, row, strict=True)) for row in rows
    )


def _silver(lake: Path, name: tuple[str, str], cells: list[Cell] | None) -> Rows:
    """Live rows; without cells each counts as the same."""
    table = DeltaTable(str(lake / tables.silver_path(*name)))
    stay = any(item.name == tables.DELETED for item in table.schema().fields)  # tables.soft_delete
    live = f" WHERE {tables.DELETED} IS NOT TRUE" if stay else ""
    found = pa.table(QueryBuilder().register("t", table).execute(f"SELECT * FROM t{live}"))
    if cells is None:
        return Counter({(): found.num_rows})
    columns = _columns(found)
    values = []
    for cell in cells:
        if cell.name not in columns:
            raise KeyError(f"silver has no column {cell.name}")
        values.append([None if v is None else cell.silver(v) for v in found.column(columns[cell.name]).to_pylist()])
    if not cells:
        return Counter({(): found.num_rows})
    return Counter(zip(*values, strict=True))


def _columns(found: pa.Table) -> dict[str, int]:
    """The source's name of each column -> its place: odd characters of it are ~hex~, as in a folder's name."""
    return {_named(name): at for at, name in enumerate(found.column_names)}
