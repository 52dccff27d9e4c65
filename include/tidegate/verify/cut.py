"""The newest published cut, and whether it holds all that a source has written.

In:  a lake: its cuts and bronze/segments; positions of the sources.
Out: a Cut, or VerifyError when none covers the positions in time; the commit_ts up to which a read saw everything; a
     table's version for readers, apply's newer windows left out; the columns that silver's owner has added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tidegate import tables
from tidegate.commit_ts import time_text
from tidegate.delta.table.actions import made_by_us
from tidegate.delta.table.arrow_types import type_changes
from tidegate.errors import CutNotYet, VerifyError
from tidegate.lake.bronze.captured_places import CapturedPlaces
from tidegate.lake.cuts.published import Cut, cut_at
from tidegate.lake.figures.status import cut_ts
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import table_rows
from tidegate.lake.silver.silver_tables import renamed_columns
from tidegate.limits import VERIFY_POLL_SECONDS, VERIFY_TOLD_SECONDS
from tidegate.masks.masking import MASK_METADATA
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.segment import Server
from tidegate.table_names import Physical


def newest_cut(lake: LakeFiles, pipeline: str) -> Cut | None:
    """The cut with the largest cut_ts; None before the first."""
    try:
        return cut_at(lake, pipeline)
    except CutNotYet:
        return None


class LakeReader(CapturedPlaces):
    """root: absolute path or URL of the lake; options: delta-rs storage options; servers: per source."""

    def __init__(self, root: str, options: Mapping[str, str], pipeline: str, servers: Mapping[str, Server]) -> None:
        super().__init__(LakeFiles(root, dict(options)), servers)
        self.pipeline = pipeline

    def newest_cut(self) -> Cut | None:
        """The cut with the largest cut_ts; None before the first."""
        return newest_cut(self.lake, self.pipeline)

    def version_found(self, path: str, version: int) -> int:
        """The newest version of a silver table that is the cut's, or other people's change of it.

        A cut names a version again only when apply has written the table. A person's DELETE in a table that rests
        would therefore never be seen. Later writes of apply belong to the next cut.
        """
        log, windows = self.lake.log(path), tables.app_id(self.pipeline, "")
        while (actions := log.actions(version + 1)) is not None and not _of_a_window(actions, windows):
            version += 1
        return version

    def owners_columns(self, table: Physical, path: str, extra: Sequence[str]) -> tuple[str, ...]:
        """Those of silver's columns beyond the source's that the source never had; none where its columns of earlier
        aren't known. path: of silver in the lake.
        """
        if not extra:
            return ()
        rows = [row for row in table_rows(self.lake, *table.pair) if row["source"] == table.source]
        known = {column.silver.lower() for row in rows for column in TableVersion.from_row(row).columns}
        known |= {name.lower() for name in renamed_columns(self.lake.log(path).state())}
        return tuple(name for name in extra if known and name.lower() not in known)

    def widened_columns(self, path: str, names: Collection[str]) -> frozenset[str]:
        """Those whose types silver's owner has widened by Delta's own ALTER COLUMN ... TYPE: their values stay."""
        if not names:
            return frozenset()
        fields = self.lake.log(path).state().schema["fields"]
        widened = {str(field["name"]) for field in fields if type_changes(field)}
        return frozenset(widened.intersection(names))

    def masked_columns(self, path: str, extra: Sequence[str]) -> tuple[str, ...]:
        """Those of a silver table's columns beyond the compared ones whose values are masked."""
        if not extra:
            return ()
        fields = self.lake.log(path).state().schema["fields"]
        masked = {str(field["name"]) for field in fields if (field.get("metadata") or {}).get(MASK_METADATA)}
        return tuple(name for name in extra if name in masked)

    def wait(
        self,
        positions: Mapping[str, tuple[str, int]],
        timeout_seconds: float,
        report: Callable[[str], None] = lambda _: None,
    ) -> Cut:
        """The newest cut, once it covers all positions. report: told what is waited for, where it isn't there soon.

        Raises VerifyError when none does in time.
        """
        until, told_at = time.monotonic() + timeout_seconds, time.monotonic() + VERIFY_TOLD_SECONDS
        needed: dict[str, int] = {}
        while True:
            for source, (file, offset) in positions.items():
                resolved = needed.get(source) or self.covered_by(source, file, offset)
                if resolved is not None:
                    needed[source] = resolved
            newest = cut_ts(self.lake)
            if len(needed) == len(positions) and newest >= max(needed.values(), default=0):
                cut = self.newest_cut()
                if cut is not None:
                    return cut
            if time.monotonic() >= until:
                raise _too_late(positions, needed, newest, timeout_seconds)
            if time.monotonic() >= told_at:
                told_at = until
                report(f"{_waited_for(positions, needed)}, up to {timeout_seconds:g} s")
            time.sleep(VERIFY_POLL_SECONDS)


def _of_a_window(actions: Sequence[Mapping[str, Any]], windows: str) -> bool:
    """Whether apply made a commit, and not just to have the same rows in other files. windows: how
    its ids begin.
    """
    if any(str(action["txn"]["appId"]).startswith(windows) for action in actions if "txn" in action):
        return True
    changes = any(
        "metaData" in action
        or any(action[kind].get("dataChange", True) for kind in ("add", "remove") if kind in action)
        for action in actions
    )
    return changes and made_by_us(actions)


def _uncaptured(positions: Mapping[str, tuple[str, int]], needed: Mapping[str, int]) -> str | None:
    """The first source whose position isn't in bronze yet."""
    return next((source for source in positions if source not in needed), None)


def _waited_for(positions: Mapping[str, tuple[str, int]], needed: Mapping[str, int]) -> str:
    if (source := _uncaptured(positions, needed)) is not None:
        file, offset = positions[source]
        return f"waits until capture of {source} has landed {file}:{offset} in the lake"
    return (
        f"waits until apply has come to {time_text(max(needed.values()))}" if needed else "waits for apply's first cut"
    )


def _too_late(
    positions: Mapping[str, tuple[str, int]], needed: Mapping[str, int], newest: int, seconds: float
) -> VerifyError:
    if (source := _uncaptured(positions, needed)) is not None:
        file, offset = positions[source]
        return VerifyError(
            f"not captured up to {file}:{offset} after {seconds:g} s",
            where=source,
            remedy="is capture running? `tidegate status` says; or give a larger --timeout",
        )
    at = f"the newest cut is {newest} ({time_text(newest)})" if newest else "there is no cut"
    last = max(needed.values(), default=0)
    wanted = f"{last} ({time_text(last)})" if last else "any"
    return VerifyError(
        f"{at}, not {wanted}, after {seconds:g} s",
        remedy="is apply running? `tidegate status` says; or give a larger --timeout",
    )
