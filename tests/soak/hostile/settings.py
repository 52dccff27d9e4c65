"""The pipeline file of a hostile run, edited at random while the run goes on.

In:  the file, what it says of lake and source.
Out: Settings.edit(): some other valid file; calm(): all tables, nothing left out, every DDL followed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

_DDL: Final = ("add_column", "drop_column", "rename_column", "change_type", "change_key", "rename_table", "truncate")
_MORE_DDL: Final = ("drop_table", "drop_partition", "move_partition")


class Settings:
    """excluded, soft_delete, changelog: silver's tables by name, as the file has them now."""

    def __init__(self, file: Path, head: str, include: Sequence[str]) -> None:
        self._file, self._head, self._include = file, head, include
        self.excluded: set[str] = set()
        self.soft_delete: set[str] = set()
        self.changelog: set[str] = set()
        self._ever_soft: set[str] = set()
        self._more: dict[str, dict[str, Any]] = {"capture": {}, "apply": {}, "ddl": {}}
        self.write()

    def edit(self, rng: random.Random, tables: Sequence[str]) -> str:
        """tables: `database.table` of those at the source. Says what was done, in words."""
        kind = rng.choice(["exclude", "include", "soft_delete", "changelog", "capture", "apply", "apply", "ddl"])
        name = rng.choice(list(tables)) if tables else ""
        value: Any = ""
        match kind:
            case "exclude" if name:
                self.excluded.add(name)
            case "include" if self.excluded:
                self.excluded.discard(name := rng.choice(sorted(self.excluded)))
            case "soft_delete" if name:
                self.soft_delete.symmetric_difference_update({name})
                self._ever_soft.add(name)
            case "changelog" if name:
                self.changelog.symmetric_difference_update({name})
            case "capture":
                name, value = rng.choice(
                    [
                        ("segment_bytes", 4096),
                        ("segment_bytes", 1 << 20),
                        ("compression", "lz4"),
                        ("compression", "zstd"),
                    ]
                )
                self._more[kind][name] = value
            case "apply":
                name, value = rng.choice(
                    [
                        *[("writer", word) for word in ("auto", "merge", "positional")],
                        *[("parallel_tables", 1), ("parallel_tables", 3), ("window_bytes", 1 << 20)],
                        *[("driver_decode_bytes", 0), ("driver_decode_bytes", None), ("upkeep_bytes", 1 << 20)],
                        *[("zero_dates", "null"), ("unlogged_columns", "null"), ("unlogged_columns", "stop")],
                    ]
                )
                self._more[kind][name] = value
            case "ddl":
                name = rng.choice([*_DDL, *_MORE_DDL])
                value = rng.choice(["apply", "apply", "ask", "stop"])
                self._more[kind][name] = value
            case _:
                pass
        self.write()
        return f"{kind} {name} {value}"

    def calm(self) -> None:
        """Tables that ever kept deleted rows do so again: one that has such rows would wait for a person."""
        self.soft_delete |= self._ever_soft
        self.excluded.clear()
        self._more["ddl"].clear()
        self.write()

    def write(self) -> None:
        """Replace the file."""
        more = {
            "capture": {"land_seconds": 0.1, "heartbeat_seconds": 0.5} | self._more["capture"],
            "apply": {"mode": "batch"} | self._more["apply"],
            "ddl": self._more["ddl"],
        }
        lines = [f"tables: {self._tables()}", *(f"{section}: {json.dumps(keys)}" for section, keys in more.items())]
        self._file.write_text(self._head + "\n".join(lines) + "\n")

    def _tables(self) -> str:
        return json.dumps(
            {
                "include": self._include,
                "exclude": [_pattern(name) for name in sorted(self.excluded)],
                "soft_delete": [_pattern(name) for name in sorted(self.soft_delete)],
                "changelog": [_pattern(name) for name in sorted(self.changelog)],
            }
        )


def _pattern(name: str) -> str:
    database, _, table = name.partition(".")
    return f"{database}.{table}"
