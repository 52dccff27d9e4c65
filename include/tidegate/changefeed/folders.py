"""The folders of a changefeed's path that may still get lines, and its schema files.

In:  the path; the commit_ts up to which all is captured.
Out: streams with the new files, new schema files, and the changefeed's checkpoint.

A look reads names only, and their number doesn't grow with the age of a changefeed. It reads the
folder of a table's newest version, and of those in force since the captured position; of folders by
date those since the day before. Files elsewhere are captured already: all rows under a version are
written before the next version's DDL is done, and a row is written after its commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from operator import itemgetter
from typing import Final

from tidegate.changefeed.lists import Lists
from tidegate.changefeed.storage_path import Listed, Storage
from tidegate.changefeed.stream import Stream
from tidegate.commit_ts import physical_ms
from tidegate.errors import SourceRefused, StreamCorrupt
from tidegate.limits import TICDC_LOOKS_THREADS, TIMESTAMP_AHEAD_SECONDS_MAX
from tidegate.remedy import REPORT
from tidegate.segments.crc32c import crc32c
from tidegate.table_names import folded
from tidegate.ticdc.layout import META, METADATA, data_name, date_end, schema_version
from tidegate.ticdc.pieces import Form
from tidegate.ticdc.schema_file import SchemaFile, schema_file

# Time zones are up to 14 hours apart, and clocks a little.
_DAYS_APART: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema file and its bytes; path: below the changefeed's."""

    path: str
    data: bytes
    file: SchemaFile


@dataclass(slots=True)
class TableFolders:
    """The known facts of one table, its name in lower case. schemas: by version; those made by a
    DDL, and the one found by the changefeed.
    """

    database: str
    table: str
    schemas: dict[int, Schema] = field(default_factory=dict)
    streams: dict[tuple[str, str], Stream] = field(default_factory=dict)
    live: int = 0  # the version in force at what is captured: folders of earlier ones are captured
    announced: bool = False  # whether this run has said what the changefeed found


class Folders:
    """A changefeed's path, as this run has seen it."""

    def __init__(self, storage: Storage, form: Form) -> None:
        self._storage, self._form = storage, form
        self._lists = Lists(storage)
        self._listed = storage.listed
        self._known: dict[str, list[Stream]] = {}  # by folder, as the last look left them
        self.tables: dict[tuple[str, str], TableFolders] = {}
        self.databases: dict[str, dict[int, Schema]] = {}

    def checkpoint_ts(self) -> int:
        """TiCDC's checkpoint: everything at or below it is written; 0 before there is one. Raises
        StreamCorrupt, SourceRefused.
        """
        data = self._storage.read(METADATA)
        if not data:
            return 0
        where = f"{self._storage.where}/{METADATA}"
        try:
            checkpoint = int(json.loads(data)["checkpoint-ts"])
        except (ValueError, KeyError, TypeError) as error:
            raise StreamCorrupt(f"no checkpoint-ts is in it: {data[:80]!r}", where=where, remedy=REPORT) from error
        # It would be believed: all rows that come until then would be passed over.
        if physical_ms(checkpoint) > (time.time() + TIMESTAMP_AHEAD_SECONDS_MAX) * 1000:
            raise SourceRefused(
                f"the checkpoint {checkpoint} is more than {TIMESTAMP_AHEAD_SECONDS_MAX} s ahead of this machine's"
                " clock",
                where=where,
                remedy="look who wrote it, and whether the clocks here and at PD are right",
            )
        return checkpoint

    def holds(self, path: str, start: int, end: int, checksum: int) -> bool:
        """Whether a data file has these very bytes. Raises SourceUnavailable, SourceRefused."""
        folder, _, name = path.rpartition("/")
        size = self._storage.after(folder, name.rpartition(".")[0]).get(name, 0)
        return size >= end and crc32c(self._storage.part(path, start, end)) == checksum

    @property
    def streams(self) -> Iterator[Stream]:
        """In order of their names: a look finds them in any."""
        for _, table in sorted(self.tables.items(), key=itemgetter(0)):
            yield from (stream for _, stream in sorted(table.streams.items(), key=itemgetter(0)))

    def look(self, captured_ts: int) -> None:
        """Take in what is new. Raises SourceUnavailable, SourceRefused, StreamCorrupt."""
        oldest = _oldest(captured_ts)
        self._known = {}
        for table in self.tables.values():
            for (folder, _), stream in table.streams.items():
                self._known.setdefault(folder, []).append(stream)
        with ThreadPoolExecutor(TICDC_LOOKS_THREADS, thread_name_prefix="look") as pool:
            if not self._storage.is_local:
                self._listed = self._lists.look(pool, lambda folder: self._captured(folder, oldest)).listed
            databases = self._listed("").folders
            tables: list[tuple[str, str]] = []
            for database, listed in zip(databases, pool.map(self._listed, databases), strict=True):
                tables += [(database, table) for table in listed.folders]
            shares = [tables[at::TICDC_LOOKS_THREADS] for at in range(TICDC_LOOKS_THREADS)]
            list(pool.map(lambda share: self._look_at_all(share, captured_ts, oldest), shares))
        self._listed = self._storage.listed

    @property
    def lists(self) -> int:
        """The requests of the last look to a store; 0 for a folder of this machine."""
        return self._lists.count

    def _captured(self, folder: str, oldest: date) -> str:
        """See Captured: the name up to which a folder has nothing new; "" when unknown."""
        parts = folder.split("/")
        if len(parts) < 3 or not parts[2].isdigit():
            return ""
        known = self.tables.get((folded(parts[0]), folded(parts[1])))
        live = str(known.live) if known else ""
        if len(parts[2]) == len(live) and parts[2] < live:
            return "/".join([*parts[:2], live])
        for at, part in enumerate(parts[3:], 3):
            if _is_past(part, oldest):
                return "/".join([*parts[:at], oldest.isoformat()[: len(part)]])
        # Of one writer what comes after its last file; of several, whose names have no order, all.
        match self._known.get(folder):
            case [stream] if not stream.writer and stream.last_name:
                return f"{folder}/{stream.last_name}"
        return ""

    def _look_at_all(self, tables: list[tuple[str, str]], captured_ts: int, oldest: date) -> None:
        for database, table in tables:
            self._look_at(database, table, captured_ts, oldest)

    def _look_at(self, database: str, table: str, captured_ts: int, oldest: date) -> None:
        folder = f"{database}/{table}"
        listed = self._listed(folder)
        if table == META:  # of a database, or a table of that name
            known = self.databases.setdefault(folded(database), {})
            self._take_schemas(folder, listed.files, known, captured_ts)
            if any(schema.file.table for schema in known.values()):
                raise SourceRefused(
                    "folders have ids of tables as names (use-table-id-as-path): such files don't show DROP DATABASE",
                    where=f"{self._storage.where}/{folder}",
                    remedy="create the changefeed without use-table-id-as-path, with a new path for a new lake",
                )
        versions = {int(name): name for name in listed.folders if name.isdigit()}
        # A table's first folder is the one of its schema files.
        understood = {META, *versions.values()} if META in listed.folders or table == META else set[str]()
        self._check_known(folder, [name for name in listed.folders if name not in understood])
        if META not in listed.folders and not versions:
            return
        known_as = folded(database), folded(table)
        folders = self.tables.setdefault(known_as, TableFolders(*known_as))
        if META in listed.folders:
            files = self._listed(f"{folder}/{META}").files
            self._take_schemas(f"{folder}/{META}", files, folders.schemas, captured_ts)
        live = max((version for version in {*versions, *folders.schemas} if version <= captured_ts), default=0)
        folders.live = live
        for version in [*folders.schemas]:
            if version < live:
                del folders.schemas[version]
        for key in [key for key in folders.streams if int(key[0].split("/")[2]) < live]:
            del folders.streams[key]
        for key in [key for key, stream in folders.streams.items() if stream.is_done and _is_past(key[0], oldest)]:
            del folders.streams[key]
        for version, name in versions.items():
            if version >= live:
                self._look_into(folders, f"{folder}/{name}", captured_ts, oldest)

    def _check_known(self, folder: str, others: list[str]) -> None:
        """A name with a slash is a deeper folder, and its rows would be nobody's. Raises SourceRefused."""
        if others:
            raise SourceRefused(
                f"{others[0]} isn't a table's folder with {META}. It may have rows of a table or a database with a"
                " slash in its name, and they can't be told apart",
                where=f"{self._storage.where}/{folder}",
                remedy="leave such names out of the changefeed (filter.rules); move other files away",
            )

    def _take_schemas(self, folder: str, files: Iterable[str], known: dict[int, Schema], captured_ts: int) -> None:
        """The versions for a window above: a table's newest at or below the captured position, and all above."""
        versions = {version: name for name in files if (version := schema_version(name)) is not None}
        live = max((version for version in versions if version <= captured_ts), default=0)
        for version, name in versions.items():
            if version in known or version < live:
                continue
            path = f"{folder}/{name}"
            data = self._storage.read(path)
            if data:
                known[version] = Schema(path, data, schema_file(data, f"{self._storage.where}/{path}"))

    def _look_into(self, table: TableFolders, folder: str, captured_ts: int, oldest: date) -> None:
        """A folder of a version, or below one: of a partition, of a date."""
        known = self._known.get(folder, [])
        listed = self._listed(folder)
        if len(known) == 1 and known[0].last_name and not known[0].stands_in(listed.files):
            listed = Listed(listed.folders, self._storage.after(folder, ""))  # all, not what a look has of them
        for stream in known:
            # TiCDC removes files itself, of days that are over.
            if not _is_past(folder, oldest + _DAYS_APART):
                stream.check_stands_in(listed.files)
            stream.found(listed.files, captured_ts)
        self._new_writers(table, folder, listed.files, captured_ts)
        for name in listed.folders:
            if name != META and not _is_past(name, oldest):
                self._look_into(table, f"{folder}/{name}", captured_ts, oldest)

    def _new_writers(self, table: TableFolders, folder: str, files: dict[str, int], captured_ts: int) -> None:
        writers = {said.writer for name in files if (said := data_name(name)) is not None}
        for writer in writers:
            if (folder, writer) not in table.streams:
                stream = Stream(self._storage, self._form, folder, writer, (table.database, table.table))
                table.streams[folder, writer] = stream
                stream.found(files, captured_ts)


def _oldest(captured_ts: int) -> date:
    return datetime.fromtimestamp(physical_ms(captured_ts) / 1000, UTC).date() - _DAYS_APART


def _is_past(folder: str, oldest: date) -> bool:
    """Whether a folder is of a date on which nothing is written any more."""
    ends = date_end(folder.rpartition("/")[2])
    return ends is not None and ends < oldest
