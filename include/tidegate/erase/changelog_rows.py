"""Erase a person's rows from a changelog: each change of them becomes a row `erased`, at its place.

In:  the changelog of a table, the subject's keys.
Out: a commit per file with rows of theirs, without a change of data: no reader gets rows again.

Places stay, so a reader that continues between two of them lacks nothing. A changelog's values are JSON. Therefore keys
are compared in its JSON form, under the columns of each version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.changelog.changelog_table import ERASED, ROW_OPS
from tidegate.changelog.packing import pieces_in_order
from tidegate.changelog.rows import shown_plans
from tidegate.delta.exchange import exchange
from tidegate.delta.table.live_file import LiveFile
from tidegate.erase.older_versions import OlderVersions
from tidegate.erase.subject import Subject, as_arrays
from tidegate.failpoint import failpoint
from tidegate.lake.control.files import write_pieces
from tidegate.lake.files import LakeFiles
from tidegate.log_files.as_json.column import json_column
from tidegate.schema.model.columns import TableVersion
from tidegate.table_names import Physical
from tidegate.tables.form import Table

_ASKED = ["op", "source", "database", "table", "version", "before", "after", "commit_ts"]
_EMPTIED = ("before", "after", "gtid", "note")


@dataclass(slots=True)
class ChangelogRows:
    """table: the changelog. physical: the table of the rows. rows: erased ones. files: rewritten ones."""

    lake: LakeFiles
    table: Table
    physical: Physical
    versions: Sequence[TableVersion]
    subject: Subject
    older: OlderVersions
    rows: int = 0
    files: int = 0
    _texts: dict[int, tuple[tuple[str, ...], set[tuple[Any, ...]]]] = field(default_factory=dict)

    @property
    def first_ts(self) -> int:
        """The smallest commit_ts that it has."""
        first = 1 << 62
        for file in self.lake.log(self.table.path).state().files:
            low, _ = file.bounds("commit_ts") or (0, 0)
            first = min(first, int(low))
        return first

    @property
    def line(self) -> str:
        """Counts of what was done."""
        return f"{self.older.line}: {self.rows} changes erased, in {self.files} files"

    def erase(self) -> None:
        """Raises CommitConflict, LakeUnavailable."""
        log = self.lake.log(self.table.path)
        for file in log.state().files:
            gone = sum(int(np.count_nonzero(self._matches(piece))) for piece in self._pieces(file))
            if not gone:
                continue
            made = write_pieces(self.lake, self.table, map(self._without, self._pieces(file)))
            exchange(log, [file], [made], operation="DELETE")
            failpoint("erase_after_changelog_commit")
            self.files += 1
            self.rows += gone

    def _pieces(self, file: LiveFile) -> Iterator[pa.Table]:
        return pieces_in_order(self.lake, self.table, [file])

    def _without(self, rows: pa.Table) -> pa.Table:
        gone = self._matches(rows)
        if not gone.any():
            return rows
        mask = pa.array(gone)
        for name in ("op", *_EMPTIED):
            at = rows.schema.get_field_index(name)
            value = pa.scalar(ERASED if name == "op" else None, pa.string())
            column = rows.column(at).combine_chunks()
            rows = rows.set_column(at, rows.schema.field(at), pc.if_else(mask, value, column))
        return rows

    def _matches(self, rows: pa.Table) -> np.ndarray:
        """Per row, whether a side of a change has one of the keys, and the source was asked later."""
        mask = np.zeros(rows.num_rows, np.bool_)
        for at, row in enumerate(rows.select(_ASKED).to_pylist()):
            place = (row["source"], row["database"], row["table"])
            if row["op"] in ROW_OPS and place == tuple(self.physical) and row["commit_ts"] <= self.subject.upto_ts:
                mask[at] = self._has_key(row["version"], row["before"]) or self._has_key(row["version"], row["after"])
        return mask

    def _has_key(self, version: int, text: str | None) -> bool:
        if text is None:
            return False
        names, keys = self._keys_of(version)
        return tuple(map(_hashed, map(json.loads(text).get, names))) in keys

    def _keys_of(self, number: int) -> tuple[tuple[str, ...], set[tuple[Any, ...]]]:
        """The names of a version's key, and the subject's keys as JSON values."""
        if number not in self._texts:
            version = {each.version: each for each in self.versions}.get(number, self.subject.newest)
            plans = {plan.column.name: plan for plan in shown_plans(version)}
            texts = list[list[str]]()
            for name, array in zip(version.key_names, as_arrays(self.subject.keys, version), strict=True):
                texts.append(json_column(plans[name], array).to_pylist())
            keys = {tuple(map(_hashed, map(json.loads, key))) for key in zip(*texts, strict=True)}
            self._texts[number] = (version.key_names, keys)
        return self._texts[number]


def _hashed(value: Any) -> Any:
    """A value that can be in a set."""
    return json.dumps(value) if isinstance(value, list | dict) else value
