"""`tidegate decode` against the servers' own SELECT: lines, applied in their order, give the rows that the server had.

Seven servers, MySQL 5.6 to 9.7 and MariaDB 10.2 to 11.4 (tests/golden/README.md). Names and types come from the DDL in
the log itself, by an empty --schema: most of these servers write no names into their events.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.support.log_decode import GOLDEN, decoded

TRUTHS = [path for path in GOLDEN if path.with_name("truth.json").exists()]
# Lines are what was logged: history rows of a system-versioned table too, which SELECT leaves out. In the other case
# the CREATE TABLE is in an earlier file.
NOT_REPLAYED = {"mariadb105_system_versioned", "mariadb114_system_versioned", "mysql97_gtid_tagged_4"}
Row = dict[str, Any]


def lives(path: Path) -> list[dict[str, Any]]:
    """Tables that one version and this file tell all of."""
    tables = json.loads(path.with_name("truth.json").read_text())["tables"]
    versions = [table["table"] for table in tables]
    return [
        table
        for table in tables
        if versions.count(table["table"]) == 1 and table.get("version") == 1 and "end" in table and "start" not in table
    ]


def same(ours: Any, theirs: Any, srid: int = 0) -> bool:
    if isinstance(theirs, dict):
        if "base64" in theirs:
            return ours == theirs["base64"]
        return (ours, srid) == (theirs["wkb"], theirs["srid"])
    if isinstance(theirs, float) and ours is not None:
        return ours == theirs or struct.pack("<f", ours) == struct.pack("<f", theirs)
    if isinstance(theirs, str) and isinstance(ours, int):
        return str(ours) == theirs
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


def replay(lines: list[Row]) -> list[tuple[Row, Row]]:
    """(row, its SRIDs) of what is left after all changes."""
    rows: list[tuple[Row, Row]] = []
    for line in lines:
        srids = line.get("srid", {})
        if line["op"] == "insert":
            rows.append((line["after"], srids))
            continue
        before = line["before"]
        found = next(i for i, (row, _) in enumerate(rows) if all(row.get(k, v) == v for k, v in before.items()))
        row, known = rows.pop(found)
        if line["op"] == "update":
            rows.append((row | line["after"], {**known, **srids}))
    return rows


def matches(row: Row, srids: Row, columns: list[str], end: list[Any]) -> bool:
    """In all columns that the log told of the row."""
    cells = dict(zip(columns, end, strict=True))
    return all(same(row[name], cells[name], srids.get(name, 0)) for name in row if name in cells)


@pytest.mark.parametrize("path", TRUTHS, ids=lambda path: path.parent.name)
def test_lines_applied_in_order_give_what_select_gave(path: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.sql"
    empty.write_text("")
    found = decoded([path], zero_dates="text", schema=empty)
    faulty = {fault.split(" at ")[0].split(".")[-1] for fault in found.faults}
    for life in lives(path):
        if life["table"] in faulty or path.parent.name in NOT_REPLAYED:
            continue
        lines = [line for line in found.rows if line["table"] == life["table"]]
        rows, left = replay(lines), list(life["end"])
        assert len(rows) == len(left)
        for row, srids in rows:
            assert "@1" not in row  # or nothing would be compared
            named = [end for end in left if matches(row, srids, life["columns"], end)]
            assert named, f"{life['table']}: {row} is none of {left[:5]}"
            left.remove(named[0])


def test_most_tables_are_compared() -> None:
    assert sum(len(lives(path)) for path in TRUTHS) > 100
