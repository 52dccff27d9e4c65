"""What the recorded servers themselves said that their tables hold, beside what the decoded changes add up to.

In:  golden cases with a truth.json (tests/golden/README.md): rows by SELECT at both ends of each table version's life.
Out: for each decoder: start rows + changes in log order = end rows, value by value; and what must be held, is.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.decoding import DECODERS
from tests.support.seeds import share
from tests.unit.binlog.golden import CASES, decoded, versions_of
from tidegate.segments.result import DecodedSegment
from tidegate.silver_names import silver_column
from tidegate.tables import COMMIT_TS, OP, OP_DELETE, ORDINAL

TRUTHS = [case for case in CASES if (case / "truth.json").exists()]
_GEOMETRIES = ("point", "linestring", "polygon", "multi", "geom")
# The default policy: a date that isn't one is NULL.
_IMPOSSIBLE = None


def plain(value: Any, kind: str) -> Any:
    """A decoded value as truth.json writes it."""
    if isinstance(value, bytes):
        coded = base64.b64encode(value).decode()
        return coded if kind.startswith(_GEOMETRIES) else {"base64": coded}
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return value.isoformat() if isinstance(value, dt.date) else value


def said(value: Any, kind: str) -> Any:
    """The server's value as a decoded one is compared: dates of one form, impossible ones by policy."""
    if value is None:
        return None
    if kind.startswith(_GEOMETRIES):
        return _ewkb(value["srid"], base64.b64decode(value["wkb"]))
    if not kind.startswith(("date", "timestamp")):
        return value
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        return _IMPOSSIBLE
    if kind.startswith(("timestamp", "datetime")):
        return moment.isoformat(" ", "microseconds")
    return moment.date().isoformat()


def _ewkb(srid: int, wkb: bytes) -> str:
    """WKB, or PostGIS's EWKB where there is a spatial reference: its number behind the kind, whose bit 29 says so."""
    if srid:
        kind = int.from_bytes(wkb[1:5], "little") | 1 << 29
        wkb = wkb[:1] + kind.to_bytes(4, "little") + srid.to_bytes(4, "little") + wkb[5:]
    return base64.b64encode(wkb).decode()


class Rows:
    """A table's rows: by key, or without one as a multiset."""

    def __init__(self, columns: list[str], key: list[str], rows: list[list[Any]]) -> None:
        self.key = [columns.index(name) for name in key]
        self.by_key: dict[str, list[Any]] = {}
        self.bag: Counter[str] = Counter()
        for row in rows:
            self.put(row)

    def put(self, row: list[Any]) -> None:
        if self.key:
            self.by_key[json.dumps([row[i] for i in self.key])] = row
        else:
            self.bag[json.dumps(row)] += 1

    def drop(self, row: list[Any]) -> None:
        if self.key:
            del self.by_key[json.dumps([row[i] for i in self.key])]
            return
        text = json.dumps(row)
        assert self.bag[text] > 0, f"a row that isn't there is deleted: {text}"
        self.bag[text] -= 1

    def all(self) -> list[str]:
        rows = [json.dumps(row) for row in self.by_key.values()] + list(self.bag.elements())
        return sorted(rows)


@lru_cache(maxsize=4)
def changes(case: Path, which: int) -> DecodedSegment:
    return decoded(case, DECODERS[which])


@pytest.mark.parametrize("which", range(len(DECODERS)), ids=[decode.__name__ for decode in DECODERS])
@pytest.mark.parametrize("case", share(TRUTHS), ids=lambda case: case.name)
def test_changes_add_up_to_what_the_server_selects(case: Path, which: int) -> None:
    truth = json.loads((case / "truth.json").read_text())["tables"]
    found = changes(case, which)
    held = {row["table"]: row["held"] for row in truth if "held" in row}
    assert {problem.table: problem.error for problem in found.problems} == held, found.problems
    kinds = {(v.table, v.version): {c.name: c.type for c in v.columns} for v in versions_of(case)}
    lives = {(row["table"], row["version"]): row for row in truth}
    batches: dict[tuple[str, int], list[pa.RecordBatch]] = {}
    for change in found.changes:
        batches.setdefault((change.table, change.version), []).append(change.batch)
    assert batches.keys() <= lives.keys()
    for name, life in lives.items():
        if "end" not in life:
            continue
        columns, types = life["columns"], kinds[name]
        start, end = (
            [[said(v, types[c]) for v, c in zip(row, columns, strict=True)] for row in life.get(side, [])]
            for side in ("start", "end")
        )
        rows = Rows(columns, life["key"], start)
        in_order = sorted(
            (change for batch in batches.get(name, ()) for change in batch.to_pylist()),
            key=lambda change: (change[COMMIT_TS], change[ORDINAL]),
        )
        for change in in_order:
            row = [plain(change[silver_column(column)], types[column]) for column in columns]
            (rows.drop if change[OP] == OP_DELETE else rows.put)(row)
        assert rows.all() == Rows(columns, life["key"], end).all(), name


def test_there_are_recorded_truths() -> None:
    servers = {json.loads((case / "truth.json").read_text())["recorded"]["server"].split("-")[0] for case in TRUTHS}
    assert len(servers) >= 5, servers
