"""`tidegate decode` beside `mysqlbinlog -vv`, which shares no code with it: row by row, value by value.

mysqlbinlog rounds FLOAT and VECTOR to six digits, drops the trailing zeros of BINARY, shows YEAR 0 as 1900, an integer
as signed with the unsigned value beside it, and can't read geometries; all else must be equal.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.log_decode import CORPUS, decoded
from tests.support.mysqlbinlog_text import TextRow, TextValue, rows_event_positions, rows_of, unquoted
from tidegate.binlog.format.table_map import TableMap, WireColumn, parse_table_map
from tidegate.binlog.index.event_index import index_pieces
from tidegate.log_files.log_file import BinlogFile
from tidegate.schema.model.charset_text import decode_text
from tidegate.schema.model.type_table import Wire

FILES = sorted(CORPUS.glob("*/*.binlog"))
XA = [path for path in FILES if path.name.startswith("xa.")]
needs_corpus = pytest.mark.skipif(not FILES, reason="the recorded corpus of MySQL 9 isn't beside the project")


def by_name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def table_maps(path: Path) -> dict[tuple[str, str], list[TableMap]]:
    """Every shape that a table has in the file."""
    found: dict[tuple[str, str], list[TableMap]] = {}
    with BinlogFile(path) as log:
        for piece in log.pieces():
            for index in index_pieces(piece.segment):
                for body in index.bodies:
                    table = parse_table_map(body)
                    shapes = found.setdefault((table.database, table.table), [])
                    if table not in shapes:
                        shapes.append(table)
    return found


def number(value: TextValue, ours: Any, _: WireColumn) -> bool:
    words = value.text.decode().replace("(", "").replace(")", "").split()
    return ours in [int(word) for word in words]


def near(value: TextValue, ours: Any, _: WireColumn) -> bool:
    return math.isclose(float(value.text), ours, rel_tol=1e-5, abs_tol=1e-37)


def exact_double(value: TextValue, ours: Any, _: WireColumn) -> bool:
    return float(value.text) == ours


def same_text(value: TextValue, ours: Any, _: WireColumn) -> bool:
    return value.text.decode().strip("'") == ours


def date(value: TextValue, ours: Any, _: WireColumn) -> bool:
    return value.text.decode().strip("'").replace(":", "-") == ours


def timestamp(value: TextValue, ours: Any, _: WireColumn) -> bool:
    whole, _, fraction = value.text.decode().partition(".")
    shown = dt.datetime.fromtimestamp(int(whole), dt.UTC).strftime("%Y-%m-%d %H:%M:%S") if int(whole) else None
    return (shown or "0000-00-00 00:00:00") + ("." + fraction if fraction else "") == ours


def bits(value: TextValue, ours: Any, wire: WireColumn) -> bool:
    theirs = int(value.text[2:-1], 2)
    if wire.length == 1:
        return ours is bool(theirs)
    return int.from_bytes(base64.b64decode(ours), "big") == theirs


def year(value: TextValue, ours: Any, _: WireColumn) -> bool:
    return int(value.text) == (ours or 1900)


def string(value: TextValue, ours: Any, wire: WireColumn) -> bool:
    theirs = unquoted(value.text)
    if wire.charset == "binary":
        raw = base64.b64decode(ours, validate=True)
        return raw.rstrip(b"\0") == theirs.rstrip(b"\0") and (wire.type != Wire.STRING or len(raw) == wire.length)
    if wire.charset is None:
        return (theirs.decode() if isinstance(ours, str) else {"base64": base64.b64encode(theirs).decode()}) == ours
    return decode_text(wire.charset, theirs) == ours


def enum(value: TextValue, ours: Any, wire: WireColumn) -> bool:
    theirs = int(value.text)
    if wire.members is None:
        return ours == theirs
    return ours == (decode_text(wire.charset or "utf8mb4", wire.members[theirs - 1]) if theirs else "")


def member_set(value: TextValue, ours: Any, wire: WireColumn) -> bool:
    theirs = int(value.text[2:-1], 2)
    if wire.members is None:
        return ours == theirs
    members = [decode_text(wire.charset or "utf8mb4", m) for i, m in enumerate(wire.members) if theirs >> i & 1]
    return ours == ",".join(members)


def json_text(value: TextValue, ours: Any, _: WireColumn) -> bool:
    theirs = unquoted(value.text).decode() if value.text[:1] == b"'" else value.text.decode()
    return ours in (theirs, json.dumps(theirs, ensure_ascii=False))  # a scalar is shown as SQL would have it


def vector(value: TextValue, ours: Any, _: WireColumn) -> bool:
    theirs = [float(word) for word in value.text[1:-1].split(b",")]
    return len(theirs) == len(ours) and all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(theirs, ours, strict=True))


RULES: dict[str, Callable[[TextValue, Any, WireColumn], bool]] = {
    **dict.fromkeys(("INT", "LONGINT", "TINYINT", "SHORTINT", "MEDIUMINT"), number),
    **dict.fromkeys(("STRING", "VARSTRING", "BLOB/TEXT"), string),
    **dict.fromkeys((f"{size}BLOB/{size}TEXT" for size in ("TINY", "MEDIUM", "LONG")), string),
    **dict.fromkeys(("DECIMAL", "TIME", "DATETIME"), same_text),
    "FLOAT": near,
    "DOUBLE": exact_double,
    "DATE": date,
    "TIMESTAMP": timestamp,
    "BIT": bits,
    "YEAR": year,
    "ENUM": enum,
    "SET": member_set,
    "JSON": json_text,
    "VECTOR": vector,
}


def differences(row: TextRow, ours: dict[str, Any], maps: list[TableMap]) -> list[str]:
    """What is not equal, under the shape of the table that fits best."""
    return min((_under(row, ours, table) for table in maps), key=len)


def _under(row: TextRow, ours: dict[str, Any], table: TableMap) -> list[str]:
    found = [] if (row.op, row.database, row.table) == (ours["op"], ours["database"], ours["table"]) else ["head"]
    for theirs, mine in ((row.before, ours["before"]), (row.after, ours["after"])):
        if theirs is None or mine is None:
            found += [] if theirs is mine else ["a side is missing"]
            continue
        names = {i: wire.name or f"@{i}" for i, wire in enumerate(table.columns, 1)}
        if not row.unread and [names.get(i) for i in theirs] != list(mine):
            found.append(f"columns {sorted(theirs)} against {list(mine)}")
            continue
        for i, value in theirs.items():
            shown, wire = mine[names[i]], table.columns[i - 1]
            if value.kind == "JSON" and value.text is not None and value.text.startswith((b"JSON_", b"@")):
                continue  # a partial update: tests of the decoder look at the value
            rule = RULES[value.kind.split("(")[0]]
            if not (shown is None if value.text is None else shown is not None and rule(value, shown, wire)):
                found.append(f"{names[i]} {value.kind}: {value.text!r:.80} against {shown!r:.80}")
    return found


@needs_corpus
@pytest.mark.parametrize("path", [path for path in FILES if path not in XA], ids=by_name)
def test_every_value_is_mysqlbinlogs(path: Path) -> None:
    found = decoded([path], zero_dates="text")
    theirs = list(rows_of(Path(f"{path}.txt").read_bytes()))
    if path.stem == "partial_json":  # its last updates lack the document that they change
        assert len(found.faults) == 1
        assert "the before image lacks their document" in found.faults[0]
        theirs = theirs[: len(found.rows)]
        assert len(theirs) >= 9
    else:
        assert not found.faults
    if theirs[0].unread:
        assert path.stem == "geometry"
        del found.rows[1:]
    assert len(theirs) == len(found.rows)
    maps = table_maps(path)
    for row, ours in zip(theirs, found.rows, strict=True):
        assert not differences(row, ours, maps[row.database, row.table])


@needs_corpus
@pytest.mark.parametrize("folder", ["plain", "zstd"])
def test_rows_of_xa_branches_are_mysqlbinlogs_without_those_rolled_back(folder: str) -> None:
    paths = [CORPUS / folder / name for name in ("xa.binlog", "xa.1.binlog")]
    found = decoded(paths)
    assert not found.faults
    assert not found.unanswered
    theirs = [row for path in paths for row in rows_of(Path(f"{path}.txt").read_bytes())]
    kept = [row for row in theirs if row.after[2].text != b"'xa rollback'"]
    maps = table_maps(paths[0])
    in_place = sorted(found.rows, key=lambda row: (row["file"] != "xa.binlog", row["pos"]))
    assert len(kept) == len(in_place) == len(theirs) - 1
    for row, ours in zip(kept, in_place, strict=True):
        assert not differences(row, ours, maps[row.database, row.table])
    answered = [row["after"]["v"] for row in found.rows]
    assert answered.index("binary xid") < answered.index("xa commit")
    assert answered[-1] == "detached then committed in next file"
    assert found.rows[-1]["file"] == "xa.binlog"


@needs_corpus
@pytest.mark.parametrize("path", sorted((CORPUS / "plain").glob("*.binlog")), ids=by_name)
def test_pos_is_where_mysqlbinlog_sees_the_rows_event(path: Path) -> None:
    positions = set(rows_event_positions(Path(f"{path}.txt").read_bytes()))
    assert {row["pos"] for row in decoded([path]).rows} <= positions


@needs_corpus
@pytest.mark.parametrize("path", sorted((CORPUS / "plain").glob("*.binlog")), ids=lambda path: path.stem)
def test_compressed_transactions_give_the_same_rows(path: Path) -> None:
    def rows(folder: str) -> list[dict[str, Any]]:
        beside = [path.parent.parent / folder / path.name]
        if path.name == "xa.1.binlog":
            beside.insert(0, path.parent.parent / folder / "xa.binlog")
        return [{**row, "commit_ts": 0, "pos": 0} for row in decoded(beside).rows]

    plain, compressed = rows("plain"), rows("zstd")
    assert len(plain) == len(compressed)
    if path.stem == "parallel":  # several sessions at once: their order is the server's
        plain, compressed = (sorted(side, key=str) for side in (plain, compressed))
    if path.stem not in ("partial_json", "parallel", "types", "gtid_tagged", "compression_toggle"):
        assert plain == compressed
