"""A run of maintain that trims control/snapshots, to be killed at a point: for a process of its own (forks.py)."""

from __future__ import annotations

import os
from datetime import datetime

from tests.unit.snapshot.test_event_log import event, said
from tidegate.lake.control.upkeep import compact, rewrite
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress.events import EventKind
from tidegate.snapshot.progress.worth_keeping import worth_keeping
from tidegate.tables import SNAPSHOTS


def trim(folder: str, oldest: datetime, point: str) -> None:
    """Old snapshots are trimmed, somebody appends, then the table's files are packed."""
    os.environ["TIDEGATE_FAILPOINT"] = point
    lake = LakeFiles(folder)
    rewrite(lake, SNAPSHOTS, lambda rows: worth_keeping(rows, oldest))
    said(lake, event(EventKind.REQUESTED, 95, "beside", "s3"))
    compact(lake, SNAPSHOTS, files_min=2)
