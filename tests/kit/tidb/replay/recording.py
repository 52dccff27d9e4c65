"""A recorded stream of TiDB binlogs: a folder with payloads in order of arrival, and the DDL jobs.

In:  binlog.bin (u64 little-endian length, payload, and again), ddl_jobs.jsonl, and if present: index.jsonl (the pump
     of each payload), manifest.json (MVCC's answers about orphans).
Out: payloads with their pumps, jobs by id, answers. UsageError for a folder that is none, StreamCorrupt for broken
     files.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidegate.errors import StreamCorrupt, UsageError
from tidegate.tidb.jobs import Job
from tidegate.tidb.records.mvcc import NOTHING, fate
from tidegate.tidb.records.pairing import ROLLED_BACK

_LENGTH: Final = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class RecordedState:
    """folder: the files of tables as they were at tso."""

    tso: int
    folder: str


class Recording:
    """orphans: start_ts -> MVCC's answer, None for an unknown one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("binlog.bin", "ddl_jobs.jsonl"):
            if not (folder / name).is_file():
                raise UsageError(f"there is no {name} in {folder}", remedy="give the folder of a recorded stream")
        self.jobs = {job.id: job for job in self._jobs()}
        manifest = self._manifest()
        try:
            self.orphans = {
                orphan["start_ts"]: _fate(orphan["mvcc"], orphan["start_ts"]) for orphan in manifest.get("orphans", ())
            }
            self.checkpoints = [
                RecordedState(checkpoint["tso"], checkpoint["dir"]) for checkpoint in manifest.get("checkpoints", ())
            ]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self._broken(
                "manifest.json", f"its orphans or checkpoints aren't as they should be: {error!r}"
            ) from None

    def _jobs(self) -> Iterator[Job]:
        for number, line in enumerate(self._lines("ddl_jobs.jsonl"), 1):
            try:
                yield Job.from_text(line)
            except StreamCorrupt as error:
                error.where = error.where or f"{self._folder / 'ddl_jobs.jsonl'}:{number}"
                raise

    def payloads(self) -> Iterator[tuple[str, bytes]]:
        """(pump, payload) in order of arrival."""
        pumps = self._pumps()
        with (self._folder / "binlog.bin").open("rb") as file:
            while head := file.read(_LENGTH.size):
                size = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else -1
                payload = file.read(size) if 0 <= size <= 1 << 32 else b""
                if len(payload) != size:
                    raise StreamCorrupt("binlog.bin is cut off", where=str(self._folder), remedy="copy it again")
                yield next(pumps, "0"), payload

    def _pumps(self) -> Iterator[str]:
        if not (self._folder / "index.jsonl").is_file():
            return
        for number, line in enumerate(self._lines("index.jsonl"), 1):
            try:
                entry = json.loads(line)
                pump = str(entry["pump"]) if entry["seq"] >= 0 else None
            except (ValueError, KeyError, TypeError) as error:
                raise self._broken(f"index.jsonl:{number}", f"it names no pump: {error!r}") from None
            if pump is not None:
                yield pump

    def _lines(self, name: str) -> list[str]:
        try:
            text = (self._folder / name).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise self._broken(name, f"it isn't UTF-8: {error}") from None
        return [line for line in text.split("\n") if line]

    def _manifest(self) -> dict[str, Any]:
        if not (self._folder / "manifest.json").is_file():
            return {}
        try:
            manifest = json.loads("\n".join(self._lines("manifest.json")))
        except ValueError as error:
            raise self._broken("manifest.json", f"it is no JSON: {error}") from None
        return manifest if isinstance(manifest, dict) else {}

    def _broken(self, name: str, what: str) -> StreamCorrupt:
        return StreamCorrupt(what, where=str(self._folder / name), remedy="copy it again")


def _fate(answer: dict[str, Any], start_ts: int) -> int | None:
    """It was asked for when the recording's TiDB had nothing to do any more: what it had nothing of never came."""
    known_fate = fate(answer, start_ts)
    return ROLLED_BACK if known_fate == NOTHING else known_fate
