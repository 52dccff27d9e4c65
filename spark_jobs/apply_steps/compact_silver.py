"""Small files and deleted rows of the tables just written are packed, within the window's share of work.

In:  tables written by the positional writer, silver as it is now.
Out: perhaps one more commit per table, without a change of data. Never an error: a failure is tried
     again later.

The cut is published before this, so no reader waits for it. The next window does wait. Therefore, if every window
writes many tables, only some are packed after each. tidegate/upsert/worth_rewriting.py decides which files are worth
it. The unused part of a table's share is saved for a larger file. If another writer has changed the files meanwhile,
the commit is dropped, and a later window looks again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.plan import TablePlan
from spark_jobs.window.window import Window
from tidegate.delta.exchange import exchange
from tidegate.errors import CommitConflict
from tidegate.limits import UPKEEP_PER_WINDOW_SECONDS, UPKEEP_SAVED_BYTES_MAX, UPKEEP_SECONDS_MIN
from tidegate.merge.past import past_of
from tidegate.upsert.files.abandoned import delete_added
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import rewrite
from tidegate.upsert.fitness import why_not
from tidegate.upsert.target import UpsertTarget, misfit
from tidegate.upsert.worth_rewriting import TIER_FILES, choose

log = logging.getLogger(__name__)

# A window leaves one or two files, and a rewrite takes TIER_FILES of them. After the first window of an application it
# is enough to look after every fourth.
_LOOK_EVERY: Final = TIER_FILES // 2


@dataclass(slots=True)
class Upkeep:
    """windows: with writes to a table since its files were looked at. saved: bytes a table may
    rewrite.
    """

    windows: dict[str, int] = field(default_factory=dict)
    saved: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compaction:
    """One commit of moved rows. files: live, before and after. bytes, rows: of the rewritten
    files; bytes as the budget counts them.
    """

    version: int
    files_before: int
    files_after: int
    bytes: int
    rows: int


def compact_silver(app: Application, window: Window, plans: Mapping[str, TablePlan], written: Collection[str]) -> None:
    """Pack tables written by the positional writer, longest waiting first."""
    if not app.pipeline.apply.upkeep_bytes:
        return
    kept = app.memory(Upkeep)
    targets = [plans[name].target for name in window.tables if name in written]
    due = sorted(_due(kept, targets), key=lambda target: -kept.windows[target.name])
    now = time.monotonic()
    end = now + max(UPKEEP_SECONDS_MIN, UPKEEP_PER_WINDOW_SECONDS * (now - window.began))

    def pack(target: UpsertTarget) -> None:
        if time.monotonic() < end:
            _compact(app, kept, target)

    if due:
        with ThreadPoolExecutor(app.pipeline.apply.parallel_tables, thread_name_prefix="upkeep") as pool:
            list(pool.map(pack, due))


def _due(kept: Upkeep, targets: Sequence[UpsertTarget | None]) -> Iterator[UpsertTarget]:
    """The tables whose files are looked at now. Counts, for each table, the windows that wrote to
    it since its last look.
    """
    for target in (given for given in targets if given is not None):
        wrote = kept.windows[target.name] = kept.windows.get(target.name, 0) + 1
        if wrote >= _LOOK_EVERY or target.name not in kept.saved:
            yield target


def _compact(app: Application, kept: Upkeep, target: UpsertTarget) -> None:
    """Each window with writes to the table has earned it a share."""
    earned = kept.windows.pop(target.name) * app.pipeline.apply.upkeep_bytes
    budget = min(kept.saved.get(target.name, 0) + earned, UPKEEP_SAVED_BYTES_MAX)
    kept.saved[target.name] = budget
    try:
        done = compact(app, target.path, target.phases[-1].layout, budget)
    except Exception as error:  # noqa: BLE001 - the rows are in silver: no fault of packing may stop them
        log.warning("%s: not compacted: %s", target.name, error, extra={"table": target.name})
        return
    if done is not None:
        kept.saved[target.name] = budget - done.bytes


def compact(app: Application, path: str, layout: FileLayout, budget_bytes: int) -> Compaction | None:
    """Rewrite the files that are worth it, within the budget, in one commit. None: no file was
    worth it, or the commit came too late.
    """
    log = app.lake.log(path)
    snapshot = log.state()
    ended_in = past_of(layout.schema.names).ended_in
    chosen = choose(snapshot.files, budget_bytes, layout.key, ended_in, layout.row_bytes_min)
    if not chosen or why_not(snapshot) or misfit(snapshot, layout):
        return None
    removes = [file for group in chosen for file in group.files]
    adds = [add for group in chosen for add in rewrite(app.lake, path, group.files, layout)]
    try:
        version = exchange(log, removes, adds, operation="OPTIMIZE").version
    except CommitConflict:
        delete_added(app.lake, path, adds)
        return None
    after = len(snapshot.files) - len(removes) + len(adds)
    rows = sum(file.live_rows or 0 for file in removes)
    return Compaction(version, len(snapshot.files), after, sum(group.bytes for group in chosen), rows)
