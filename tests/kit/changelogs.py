"""A changelog as a reader that isn't ours has it, played to the rows that it leaves.

In:  a lake, a table.
Out: its rows in order; what a table is after all changes, as a bag of rows; silver's rows in the same form.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.readers import READERS, by_polars
from tidegate import tables
from tidegate.changelog.changelog_table import PLACE, ROW_OPS, changelog
from tidegate.lake.files import LakeFiles


def changes_of(lake: LakeFiles, database: str, table: str) -> list[dict[str, Any]]:
    """In order; no two at one place."""
    found: pa.Table = READERS["DuckDB"](lake.uri(changelog(database, table).path))
    rows = found.sort_by([(name, "ascending") for name in PLACE]).to_pylist()
    places = [tuple(row[name] for name in PLACE) for row in rows]
    assert len(set(places)) == len(places), "a change is in it twice"
    for row in rows:
        row |= {side: row[side] and json.loads(row[side]) for side in ("before", "after")}
    return rows


def played(rows: list[dict[str, Any]]) -> Counter[str]:
    """Of changes with whole images; each must fit what was there before it."""
    there = Counter[str]()
    for row in rows:
        if row["op"] in ("truncate", "drop"):
            there.clear()
        if row["before"] is not None and row["op"] in ROW_OPS:
            text = _text(row["before"])
            assert there[text], f"a row changes that isn't there: {row}"
            there[text] -= 1
        if row["after"] is not None:
            there[_text(row["after"])] += 1
    return +there


def silver_rows(lake: LakeFiles, database: str, table: str) -> Counter[str]:
    """In the form of a changelog's objects; moments without the digits of a second that are zero."""
    found = by_polars(lake.uri(tables.silver_path(database, table)))
    for at, kind in enumerate(found.schema):  # as digits that give the same FLOAT back
        if pa.types.is_float32(kind.type):
            shown = [None if value is None else float(str(np.float32(value))) for value in found[at].to_pylist()]
            found = found.set_column(at, kind.name, pa.array(shown, pa.float64()))
    rows = found.to_pylist()
    return Counter(_text({name: _shown(value) for name, value in row.items() if name[:4] != "_tg_"}) for row in rows)


def _text(row: dict[str, Any]) -> str:
    return json.dumps({name: _bare(value) for name, value in row.items()}, sort_keys=True)


def _bare(value: Any) -> Any:
    """As text whatever silver's type; a moment's last zeros depend on its column's digits."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    is_moment = isinstance(value, str) and len(value) > 19 and value[4:5] == value[7:8] == "-" and value[19] == "."
    return value.rstrip("0").rstrip(".") if is_moment else value


def _shown(value: Any) -> Any:
    match value:
        case bool() | int() | float() | str() | None:
            return value
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ", "microseconds")
        case date():
            return value.isoformat()
    raise AssertionError(f"{value!r} is shown in no known way")
