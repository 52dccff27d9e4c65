"""A lake of tables whose files nobody reads, made by commits of their logs alone."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

from tidegate import tables
from tidegate.copies.backup import Backup
from tidegate.copies.place import place_of
from tidegate.copies.restore import Restore
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import add, metadata, moved, protocol
from tidegate.lake.files import LakeFiles

SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
CUTS_ID = "tidegate/shop/cuts"
ONE = tables.capture_app_id("one")


class FakeLake:
    """root: a folder or URL."""

    def __init__(self, root: str | Path, options: Mapping[str, str] | None = None) -> None:
        self.files = LakeFiles(str(root), dict(options or {}))
        self.place = place_of(str(root), options or {})

    def log(self, path: str) -> DeltaLog:
        return DeltaLog(self.files.uri(path), self.files.storage_options)

    def write(self, path: str, *, size: int = 10, app: tuple[str, int] | None = None) -> str:
        """A commit with a new file; its path in the table."""
        log, name = self.log(path), f"{uuid.uuid4().hex}.parquet"
        self.place.write(f"{path}/{name}", [b"x" * size])
        body = {"path": name, "size": size, "partitionValues": {}, "modificationTime": 1}
        state = log.state()
        made = [] if state.created else [protocol(()), metadata(SCHEMA, {})]
        log.commit(state, Change([*made, add(body, data_change=True)], "WRITE", dict([app]) if app else {}))
        return name

    def drop(self, path: str, name: str) -> None:
        """As a rewrite and VACUUM do: another file in its place, and it is gone."""
        log = self.log(path)
        log.update(lambda read: Change(moved([read.live[name, ""]], [], data_change=True), "DELETE"))
        self.place.remove(f"{path}/{name}")

    def fill(self) -> None:
        """Some of all that a lake has."""
        self.write(tables.SEGMENTS.path, app=(ONE, 1))
        self.write(tables.SCHEMA_HISTORY.path)
        self.write(tables.CUTS.path, app=(CUTS_ID, 7))
        for name in ("a", "b"):
            self.write(f"silver/d/{name}")
            self.write(f"silver/d/{name}")
        self.write("changelog/d/a")
        self.place.write("control/value_logs/one/log.json", [b"{}"])
        self.place.write("control/leases/shop.apply/1", [b"somebody's"])
        self.place.write("staging/rest.parquet", [b"scratch"])

    def versions(self) -> dict[str, tuple[int, frozenset[str]]]:
        """By table: its version, its live files. Each of them is there."""
        found = {}
        names = {file.path: file.size for file in self.place.files("")}
        for path in sorted({name.partition("/_delta_log/")[0] for name in names if "/_delta_log/" in name}):
            state = self.log(path).state()
            live = frozenset(file.local_path for file in state.files)
            assert all(f"{path}/{name}" in names for name in live), path
            found[path] = state.version, live
        return found


def backup(lake: FakeLake, target: FakeLake, lines: list[str] | None = None, *, silver: bool = True) -> Backup:
    work = Backup("shop", lake.files, target.files, (lines if lines is not None else []).append, silver=silver)
    work.run()
    return work


def restore(source: FakeLake, lake: FakeLake) -> Restore:
    work = Restore("shop", source.files, lake.files, [].append)
    work.check()
    work.run()
    return work
