"""One live file of a Delta table, as its `add` action says it.

In:  `add` actions as in the log's JSON (PROTOCOL.md, "Add File and Remove File").
Out: LiveFile and VectorDescriptor, plain data that travels to workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from tidegate.errors import LakeRefused

# How most writers begin a file's statistics. Parsing all of it for 20,000 files takes a second.
_ROWS_FIRST: Final = re.compile(r'\{"numRecords":(\d+)[,}]')

Bounds = tuple[Any, Any]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class VectorDescriptor:
    """PROTOCOL.md, "Deletion Vector Descriptor Schema". storage_type: u (file by uuid), i (inline), p (absolute path).

    size: bytes of the vector without length and checksum. cardinality: positions in it.
    """

    storage_type: str
    path_or_inline: str
    offset: int | None
    size: int
    cardinality: int

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> VectorDescriptor:
        offset = action.get("offset")
        return cls(
            str(action["storageType"]),
            str(action["pathOrInlineDv"]),
            None if offset is None else int(offset),
            int(action["sizeInBytes"]),
            int(action["cardinality"]),
        )

    def as_action(self) -> dict[str, Any]:
        """The log's JSON form."""
        offset = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline,
            **offset,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }

    @property
    def unique_id(self) -> str:
        """With a path, this identifies a logical file in the log."""
        tail = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline}{tail}"


@dataclass(frozen=True)
class LiveFile:
    """One live file. action: its `add` action as in the Delta log's JSON.

    Answers from the statistics are kept, but not the parsed text: a lake has many files.
    """

    action: Mapping[str, Any]
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> Mapping[str, Any]:
        return dict(self.action)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        object.__setattr__(self, "action", state)
        object.__setattr__(self, "_known", {})

    @property
    def path(self) -> str:
        """As in the log: URL-encoded and relative to the table, or an absolute URL (in a shallow
        clone).
        """
        return str(self.action["path"])

    @property
    def local_path(self) -> str:
        """Decoded, relative to the table. Raises LakeRefused for a file outside the table's folder."""
        path = self.path
        if "://" in path or path.startswith(("/", "file:")):
            raise LakeRefused(
                "a data file lies outside of the table's folder",
                where=path,
                remedy="set apply.writer: merge in the pipeline file",
            )
        return unquote(path)

    @property
    def size(self) -> int:
        """Bytes of the Parquet file."""
        return int(self.action["size"])

    @property
    def identity(self) -> tuple[str, int, int]:
        """(path, bytes, when it was written). A file with other rows has another one, even under a
        reused name.

        Deletion vectors don't change it.
        """
        return self.path, self.size, self.written_ms

    @property
    def written_ms(self) -> int:
        """When its Parquet file was written, Unix milliseconds; 0 if its writer didn't say."""
        return int(self.action.get("modificationTime") or 0)

    @property
    def partition_values(self) -> Mapping[str, str | None]:
        return self.action.get("partitionValues") or {}

    @property
    def rows(self) -> int | None:
        """Rows in the Parquet file, deleted ones included; None if the statistics don't say."""
        if "rows" not in self._known:
            first = _ROWS_FIRST.match(self.action.get("stats") or "")
            count = first[1] if first else self._statistics().get("numRecords")
            self._known["rows"] = None if count is None else int(count)
        known: int | None = self._known["rows"]
        return known

    @property
    def live_rows(self) -> int | None:
        """Rows without those in the deletion vector; None if the statistics don't say."""
        vector = self.deletion_vector
        dead = vector.cardinality if vector else 0
        return None if self.rows is None else self.rows - dead

    @property
    def deletion_vector(self) -> VectorDescriptor | None:
        descriptor = self.action.get("deletionVector")
        return VectorDescriptor.of(descriptor) if descriptor else None

    def bounds(self, column: str) -> Bounds | None:
        """(min, max) of a top-level column as the statistics' JSON has them, fractions as Decimal; None when unknown.

        Wide bounds: no value lies outside, but strings and timestamps may be cut (PROTOCOL.md, "Per-file Statistics").
        """
        name = f"bounds {column}"
        if name not in self._known:
            statistics = self._statistics()
            low = (statistics.get("minValues") or {}).get(column)
            high = (statistics.get("maxValues") or {}).get(column)
            self._known[name] = None if low is None or high is None else (low, high)
        known: Bounds | None = self._known[name]
        return known

    def kept(self, question: Hashable, answer: Callable[[], Answer]) -> Answer:
        """A caller's small answer that depends on the action alone: computed once."""
        if question not in self._known:
            self._known[question] = answer()
        known: Answer = self._known[question]
        return known

    def nulls(self, column: str) -> int | None:
        """How many rows, perhaps with deleted ones, are NULL in a top-level column; None if it
        isn't known.
        """
        name = f"nulls {column}"
        if name not in self._known:
            count = (self._statistics().get("nullCount") or {}).get(column)
            self._known[name] = count if isinstance(count, int) else None
        known: int | None = self._known[name]
        return known

    def _statistics(self) -> dict[str, Any]:
        text = self.action.get("stats")
        statistics = json.loads(text, parse_float=Decimal) if text else {}
        return statistics if isinstance(statistics, dict) else {}
