"""The kinds of objects in a Delta log's folder, and the content of `_last_checkpoint`.

In:  a listing of the folder; the text of `_last_checkpoint`.
Out: whole checkpoints, versions of commits; the hint, read and written. Pure.

PROTOCOL.md: "Delta Log Entries", "Checkpoint Naming Scheme", "Last Checkpoint File Schema".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from tidegate.delta.stores.store import Entry

LOG: Final = "_delta_log"  # the folder in a table's
LAST_CHECKPOINT: Final = "_last_checkpoint"
SIDECARS: Final = "_sidecars"

_CLASSIC: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_PART: Final = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
_NAMED: Final = re.compile(r"(\d{20})\.checkpoint\.[^.]+\.(?:json|parquet)")
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKSUM: Final = re.compile(r"(\d{20})\.crc")
_COMPACTED: Final = re.compile(r"(\d{20})\.\d{20}\.compacted\.json")


@dataclass(frozen=True, slots=True)
class LogCheckpoint:
    """A complete checkpoint. files: one, or all parts in order."""

    version: int
    files: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Hint:
    """The content of `_last_checkpoint`. actions: in the checkpoint, tombstones included. adds:
    live files; None if unknown.
    """

    version: int
    actions: int
    bytes: int
    adds: int | None = None

    def text(self) -> str:
        """The file's text, with the checksum that readers may ask for ("JSON checksum")."""
        document: dict[str, Any] = {"version": self.version, "size": self.actions, "sizeInBytes": self.bytes}
        if self.adds is not None:
            document["numOfAddFiles"] = self.adds
        return json.dumps(document | {"checksum": checksum(document)}, separators=(",", ":"))


def commit_name(version: int) -> str:
    """The name of a version's commit."""
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The name of a version's classic checkpoint, in one file."""
    return f"{version:020d}.checkpoint.parquet"


def commit_version(name: str) -> int | None:
    """The version in a commit's name; None for any other name."""
    match = _COMMIT.fullmatch(name)
    return int(match[1]) if match else None


def checkpoints(entries: Iterable[Entry]) -> list[LogCheckpoint]:
    """The complete checkpoints of a listing, the newest first. If a version has several, the
    cheapest to read comes first.

    An empty file is no checkpoint. Parts are none if one is missing.
    """
    ranked: list[tuple[int, int, LogCheckpoint]] = []
    parts: dict[tuple[int, int], dict[int, Entry]] = {}
    for entry in entries:
        if not entry.size:
            continue
        if match := _CLASSIC.fullmatch(entry.name):
            ranked.append((int(match[1]), 2, LogCheckpoint(int(match[1]), (entry,))))
        elif match := _NAMED.fullmatch(entry.name):
            ranked.append((int(match[1]), 1, LogCheckpoint(int(match[1]), (entry,))))
        elif match := _PART.fullmatch(entry.name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = entry
    for (version, count), pieces in parts.items():
        if set(pieces) == set(range(1, count + 1)):
            ranked.append((version, 0, LogCheckpoint(version, tuple(pieces[part] for part in range(1, count + 1)))))
    return [checkpoint for _, _, checkpoint in sorted(ranked, key=lambda each: (each[0], each[1]), reverse=True)]


def expires_at(name: str) -> int | None:
    """The smallest version at which a kept checkpoint makes an object of the log needless; None:
    never.

    A checkpoint's own commit stays, for its commitInfo (PROTOCOL.md, "Metadata Cleanup").
    """
    if match := _COMPACTED.fullmatch(name):
        return int(match[1])
    for kind in (_COMMIT, _CHECKSUM, _CLASSIC, _NAMED, _PART):
        if match := kind.fullmatch(name):
            return int(match[1]) + 1
    return None


def hinted(data: bytes | None) -> int | None:
    """The version that `_last_checkpoint` names; None if it is missing, torn or has another form.

    It is only a hint: the caller checks that the checkpoint exists, and looks for later ones.
    """
    try:
        return int(json.loads(data or b"")["version"])
    except (ValueError, TypeError, KeyError):
        return None


def told(data: bytes | None) -> Hint | None:
    """Everything in `_last_checkpoint`; None if it is missing, torn or incomplete."""
    try:
        hint = json.loads(data or b"")
        adds = hint.get("numOfAddFiles")
        return Hint(int(hint["version"]), int(hint["size"]), int(hint["sizeInBytes"]), adds and int(adds))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def checksum(document: Mapping[str, Any]) -> str:
    """MD5 of a JSON object in canonical form, without its own `checksum` (PROTOCOL.md, "JSON
    checksum").
    """
    pairs = sorted((path, value) for path, value in _leaves(document) if path != '"checksum"')
    return hashlib.md5(",".join(f"{path}={value}" for path, value in pairs).encode(), usedforsecurity=False).hexdigest()


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        children = [(_quoted(name), item) for name, item in value.items()]
    elif isinstance(value, list):
        children = [(str(index), item) for index, item in enumerate(value)]
    else:
        yield path, _quoted(value) if isinstance(value, str) else json.dumps(value)
        return
    for name, item in children:
        yield from _leaves(item, f"{path}+{name}" if path else name)


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="")}"'
