"""Golden cases (tests/golden/README.md): where they are, and decoding one.

In:  a case's folder.
Out: its table versions, its changes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kit.decoding import ALL_TIME, segment_of_file
from tests.support.servers import ROOT
from tidegate.binlog.statements.branches import prewrites
from tidegate.schema.model.columns import Column, Generated, TableVersion
from tidegate.segments.prewrites import within_segment
from tidegate.segments.result import DecodedSegment, Known
from tidegate.tables.prewrites_table import PrewriteState

# Another folder: to look at recordings before they become cases.
GOLDEN = Path(os.environ.get("TIDEGATE_GOLDEN", ROOT / "tests" / "golden"))
CASES = sorted(path.parent for path in GOLDEN.glob("*/events.binlog"))

_DATABASE = "golden"


def versions_of(case: Path) -> list[TableVersion]:
    """The table versions of schema.json, with what it leaves out."""
    return [_version(row) for row in json.loads((case / "schema.json").read_text())]


def _version(row: dict[str, Any]) -> TableVersion:
    columns = [Column(**(cell | {"generated": Generated(cell.get("generated", ""))})) for cell in row["columns"]]
    return TableVersion(
        source="test",
        database=row.get("database", _DATABASE),
        table=row["table"],
        version=row["version"],
        commit_ts=row["commit_ts"],
        file="binlog.000042",
        pos=4,
        kind="baseline",
        ddl="",
        columns=tuple(columns),
        key=tuple(row["key_columns"]),
        charset="utf8mb4",
    )


def decoded(case: Path, decode: Callable[..., DecodedSegment]) -> DecodedSegment:
    """All changes of all tables of a case, those of XA branches that it commits included."""
    versions: dict[tuple[str, str], list[TableVersion]] = {}
    for version in versions_of(case):
        versions.setdefault((version.database, version.table), []).append(version)
    made = segment_of_file((case / "events.binlog").read_bytes())
    windows = dict.fromkeys(versions, ALL_TIME)
    found = decode(made, versions, windows)
    answered, _ = within_segment("test", prewrites(made))
    committed = {one.start_ts: one.answer_ts for one in answered if one.state is PrewriteState.COMMITTED}
    if not committed:
        return found
    later = decode(made, versions, windows, known=Known(answers=committed))
    return DecodedSegment((*found.changes, *later.changes), (*found.problems, *later.problems), found.ledger)
