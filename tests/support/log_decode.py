"""`tidegate decode` without a process: files in, rows and everything it says out.

In:  paths of binlog files. Out: a Decoded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate.log_files.changes import LogChanges
from tidegate.log_files.log_file import BinlogFile, server_version
from tidegate.log_files.plans import LogPlans, ShownZeroDates
from tidegate.log_files.rows import RowOptions
from tidegate.log_files.schema import SchemaPlans
from tidegate.log_files.stats import FileStats

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "corpus" / "mysql9"
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*/events.binlog"))


@dataclass
class Decoded:
    """rows: lines as dictionaries. faults, notes: lines for stderr. unanswered: names of XA branches."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stats: list[dict[str, Any]] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    text: bytes = b""


def decoded(
    paths: Sequence[Path],
    *,
    lines: bool = True,
    zero_dates: str = "null",
    only: str = "",
    schema: Path | None = None,
) -> Decoded:
    """Decode files in order."""
    found = Decoded()
    plans = LogPlans(found.notes.append, ShownZeroDates(zero_dates))
    if schema:
        plans = SchemaPlans(found.notes.append, ShownZeroDates(zero_dates), server_version=server_version(paths))
        plans.read(schema)
    options = RowOptions(
        wanted=lambda database, table: not only or f"{database}.{table}" == only,
        lines=lines,
        report=lambda fault: found.faults.append(str(fault)),
    )
    changes, commit_ts, counted = LogChanges(plans, options), 0, []
    for path in paths:
        with BinlogFile(path, commit_ts) as log:
            counted.append(FileStats(log.name, log.size))
            for block in changes.decode(log, counted[-1]):
                found.text += bytes(block)
            commit_ts = log.commit_ts
    found.unanswered = changes.finish()
    for stats in counted:
        stats.close()
        found.stats.append(stats.as_dict())
    found.rows = [json.loads(line) for line in found.text.splitlines()]
    return found
