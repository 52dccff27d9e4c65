"""The tables of a copy: the version of each, and the marks by which it is known again.

In:  copied tables.
Out: CopyManifest, as JSON in the copy's paper (lake/format/unfinished.py).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from tidegate import __version__
from tidegate.errors import LakeRefused


@dataclass(frozen=True, slots=True)
class Copied:
    """A table as it was copied. mark: of the version's commit alone."""

    version: int
    table_id: str
    mark: str


@dataclass(frozen=True, slots=True)
class CopyManifest:
    """tables: by path in the lake. small: files of no table, path -> size. lacks: path of a table
    -> why it isn't in the copy. silver: whether the copy was to have it. cut_ts: the newest cut in
    it. lake_format: its format.
    """

    tables: Mapping[str, Copied]
    small: Mapping[str, int] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    silver: bool = True
    cut_ts: int = 0
    lake_format: int = 0
    release: str = __version__
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_json(self) -> dict[str, Any]:
        """For the paper."""
        tables = {path: [copied.version, copied.table_id, copied.mark] for path, copied in self.tables.items()}
        return {
            "id": self.id,
            "at": self.at,
            "release": self.release,
            "format": self.lake_format,
            "cut_ts": self.cut_ts,
            "silver": self.silver,
            "lacks": dict(self.lacks),
            "small": dict(self.small),
            "tables": tables,
        }

    @classmethod
    def of_json(cls, document: Mapping[str, Any], where: str) -> Self:
        """Raises LakeRefused."""
        try:
            manifest = cls(
                {path: Copied(int(v), str(table), str(mark)) for path, (v, table, mark) in document["tables"].items()},
                {path: int(size) for path, size in document["small"].items()},
                document["lacks"],
                bool(document["silver"]),
                int(document["cut_ts"]),
                int(document["format"]),
                str(document["release"]),
                str(document["at"]),
                str(document["id"]),
            )
            for path in (*manifest.tables, *manifest.small):
                if path.startswith("/") or ".." in path.split("/"):  # a restore would write outside of its lake
                    raise ValueError(path)  # noqa: TRY301 - unreadable as all else
            return manifest  # noqa: TRY300
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise LakeRefused(
                "the backup's description of itself can't be read", where=where, remedy="use another backup"
            ) from error
