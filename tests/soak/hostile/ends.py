"""How a hostile run ends: silver equal to the source's own SELECT, by two comparisons that share nothing; what waits.

In:  the server, its road.
Out: Ends.compare(): words; SilverDiffers with each table that differs, waits for nothing that is named, or is doubled.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from tests.kit.changelogs import changes_of
from tests.kit.road import Road
from tests.replay.compare import compare
from tests.soak.hostile.tables import HOSTILE, table_of
from tests.soak.world import SilverDiffers
from tidegate.lake.standing import held
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import told
from tidegate.snapshot.work import logical_name, newest
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.verify.report import Outcome, TableResult
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

# What no snapshot can end: (cause, part of its reason).
NAMED: Final = (
    (Cause.FAULT, r"of the key holds .*, which no calendar has"),
    (Cause.UNLOGGED, r"foreign key .* it can't be followed: "),
    (Cause.UNLOGGED, r"its engine is \w+: |through the MERGE table"),
    (Cause.UNLOGGED, r"its virtual column .* is computed anew by whoever reads it"),
)
# Why a snapshot can't read a table.
UNREAD: Final = (
    r"it has no key whose columns are all NOT NULL, and \w+ can't show it as it was at one moment"
    r"|column .* of the key holds .*, which no calendar has|rows come to it through the MERGE table"
    r"|[Tt]ablespace .* discarded"
    r"|its virtual column .* has another value in each session's time zone or language"
    r"|column .*: bytes \w+ are not valid \w+; repair the value at the source"
)
_WRONG: Final = ("different", "ghost", "missing")
_BY_VERIFY: Final = (Outcome.DIFFERENT, Outcome.UNSETTLED)


class Ends:
    """The end of one run."""

    def __init__(self, server: Server, road: Road, folder: Path, wider: Collection[str]) -> None:
        """wider: tables whose silver may have columns that the source hasn't: of its owner, or of an older copy."""
        self._server, self._road, self._folder, self._wider = server, road, folder, wider

    def compare(self) -> str:
        """Raises SilverDiffers."""
        results = [
            item
            for item in compare(self._server, self._folder / "lake")
            if item.table.partition(".")[0] in HOSTILE and not item.outcome.startswith("held")
        ]
        wrong = [
            f"{item.outcome} {item.table}, {item.rows} rows: {item.detail}"
            for item in results
            if item.outcome in _WRONG
        ]
        wrong += self.said()
        if wrong:
            raise SilverDiffers("\n".join(wrong), len(wrong))
        equal = [item for item in results if item.outcome == "equal"]
        standings = held.held_tables(self._road.lake)
        named = f", {len(standings)} wait for what is named" if standings else ""
        return f"{len(equal)} tables with {sum(item.rows for item in equal)} rows equal in silver{named}"

    def said(self) -> list[str]:
        """What is wrong as tidegate itself tells."""
        return [
            *(f"verify: {words}" for words in self._by_verify()),
            *(f"changelog of {words}" for words in self._changelogs()),
            *(f"waits: {name}: {words}" for name, words in self.waiting().items()),
        ]

    def _unread(self) -> dict[str, str]:
        """Tables whose last snapshot failed, and why."""
        road = self._road
        last = newest(told(road.lake, road.pipeline.pipeline))
        return {logical_name(road.pipeline, it): it.reason for it in last if it.state is SnapshotState.FAILED}

    def waiting(self) -> dict[str, str]:
        """Tables that wait for nothing that is named, and what for; one that waits with another is named as that is."""
        standings, unread = held.held_tables(self._road.lake), self._unread()
        named = {
            name for name, state in standings.items() if is_named(state) or re.search(UNREAD, unread.get(name, ""))
        }
        return {
            name: f"{_said(state)}; its snapshot: {unread.get(name, 'none')}"
            for name, state in standings.items()
            if name not in named and not (state.cause is Cause.WAITS_WITH and state.partner in named)
        }

    def _by_verify(self) -> list[str]:
        road = self._road
        report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=10))
        return [
            f"{r.table} {r.outcome}: {r.reason} {r.differences[:2]}"
            for r in report.tables
            if r.outcome in _BY_VERIFY and not (r.silver in self._wider and _only_in_silver(r))
        ]

    def _changelogs(self) -> list[str]:
        """Those that have a change twice."""
        doubled = []
        for log in (self._folder / "lake" / "changelog").glob("*/*/_delta_log"):
            database, _, table = table_of(str(log.parent)).partition(".")
            try:
                changes_of(self._road.lake, database, table)
            except AssertionError as error:
                doubled.append(f"{database}.{table}: {error}")
        return doubled


def _said(state: Standing) -> str:
    return f"{state.cause} {state.fault} {state.needs} {state.partner}: {state.reason}"


def is_named(state: Standing) -> bool:
    """Whether no snapshot can end it."""
    return any(state.cause is cause and re.search(reason, state.reason) for cause, reason in NAMED)


def _only_in_silver(result: TableResult) -> bool:
    """Whether it differs by columns of silver that the source hasn't, and by nothing else."""
    return bool(result.columns) and not any(column.source for column in result.columns)
