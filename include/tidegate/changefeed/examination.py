"""The part of `tidegate check` for a changefeed: whether its files can be read, and which tables will wait.

In:  a pipeline, the name of a TiCDC source in it, its store's options.
Out: lines; nothing is written, and of the files their names, schema files and first lines are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from tidegate.capture.standing import SourceAnswer
from tidegate.changefeed.folders import Folders, TableFolders
from tidegate.changefeed.storage_path import Storage
from tidegate.commit_ts import physical_ms, time_text
from tidegate.config import Pipeline, Protocol, TicdcSource
from tidegate.errors import TidegateError
from tidegate.limits import CLOCK_SKEW_SECONDS_MAX, TICDC_CHUNK_BYTES_MIN, TICDC_DAY_LISTS_MAX
from tidegate.mysql.checking.examination import Line, SourceVerdict, failed
from tidegate.text_layout import age_text, counted
from tidegate.ticdc.pieces import Form
from tidegate.ticdc.schema_file import SchemaFile, has_members, is_list


def changefeed_lines(pipeline: Pipeline, source: str, options: dict[str, str]) -> Iterator[Line]:
    """Raises SourceUnavailable, SourceRefused, StreamCorrupt."""
    entry = pipeline.sources[source]
    assert isinstance(entry, TicdcSource), "whoever asks looks at its kind"
    folders = Folders(Storage(entry.path.rstrip("/"), options), Form.of(entry))
    checkpoint_ts = folders.checkpoint_ts()
    if not checkpoint_ts:
        text = (
            f"{entry.path} has no checkpoint yet: a changefeed writes its file `metadata` some seconds after it begins"
        )
        yield Line(source, SourceVerdict.CAUTION, text)
        return
    late = time.time() - physical_ms(checkpoint_ts) / 1000
    verdict = (
        SourceVerdict.CAUTION
        if late > max(10 * entry.look_seconds, 10 * CLOCK_SKEW_SECONDS_MAX)
        else SourceVerdict.NOTE
    )
    written = f"{entry.path} is written up to {time_text(checkpoint_ts)}, {age_text(max(late, 0.0))} ago"
    yield Line(source, verdict, written + ("; is the changefeed running?" if verdict is SourceVerdict.CAUTION else ""))
    folders.look(checkpoint_ts)
    yield from _files(source, folders)
    if folders.lists:
        folders.look(checkpoint_ts)  # as capture does: the first look finds names that later ones pass by
        yield _lists_line(source, folders.lists, entry.look_seconds)
    kept = {name: table for name, table in folders.tables.items() if pipeline.tables.keeps(*name)}
    if not kept:
        read = pipeline.tables.include_as_read
        text = f"tables.include matches no table that the changefeed has written ({read})"
        yield Line(source, SourceVerdict.CAUTION, text)
    yield from _tables(source, entry, list(kept.values()))


def asked_checkpoint(entry: TicdcSource, options: Callable[[], dict[str, str]]) -> SourceAnswer:
    """For `tidegate status`: there is no server to ask, so how old the newest capture is says how far it is behind."""
    try:
        storage = Storage(entry.path.rstrip("/"), options())
        written_ts = Folders(storage, Form.of(entry)).checkpoint_ts()
    except TidegateError as error:
        return SourceAnswer(error=str(error), fault=type(error).__name__)
    return SourceAnswer(error=f"a changefeed has no end to ask for; it is written up to {time_text(written_ts)}")


def _lists_line(source: str, lists: int, look_seconds: float) -> Line:
    day = round(lists * 86_400 / look_seconds)
    text = f"a look asks the store for {lists} list{'s' * (lists > 1)}: {day:,} a day (look_seconds: {look_seconds:g})"
    if day <= TICDC_DAY_LISTS_MAX:
        return Line(source, SourceVerdict.NOTE, text)
    return Line(source, SourceVerdict.CAUTION, f"{text}; a longer look_seconds, or files that expire, cost less")


def _files(source: str, folders: Folders) -> Iterator[Line]:
    """The first lines of each table's newest files, read as capture reads them."""
    for name, table in folders.tables.items():
        try:
            for stream in table.streams.values():
                stream.fill(TICDC_CHUNK_BYTES_MIN)
        except TidegateError as error:
            yield failed(source, error, (".".join(name),))


def _tables(source: str, entry: TicdcSource, tables: list[TableFolders]) -> Iterator[Line]:
    newest = [table.schemas[max(table.schemas)].file for table in tables if table.schemas]
    yield Line(source, SourceVerdict.NOTE, f"{counted(len(newest), 'table matches', 'tables match')} tables.include")
    without_ddl = [file for file in newest if not file.query]
    asked = [
        (
            SourceVerdict.NOTE if entry.all_rows or entry.sql_conn_id else SourceVerdict.HELD,
            _rows_from_before(entry),
            without_ddl,
        ),
        (
            SourceVerdict.HELD,
            "no primary key: TiCDC writes rows again after a restart, and nobody could tell which ones are new",
            [file for file in newest if not any(column.get("ColumnIsPk") for column in file.columns)],
        ),
        (
            SourceVerdict.HELD,
            "columns of type ENUM or SET whose members the files don't tell: protocol csv has their names",
            [file for file in without_ddl if not _tells_members(entry) and _has_list(file)],
        ),
    ]
    for verdict, text, files in asked:
        names = tuple(sorted(f"{file.database}.{file.table}" for file in files if file.columns))
        if names:
            yield Line(source, verdict, text, names)


def _rows_from_before(entry: TicdcSource) -> str:
    text = "there when the changefeed began"
    if entry.all_rows:
        return f"{text}, without rows, as all_rows says"
    if entry.sql_conn_id:
        return f"{text}: rows from before are read by a snapshot, once apply has run"
    return f"{text}: rows from before aren't in its files (see sql_conn_id and all_rows)"


def _tells_members(entry: TicdcSource) -> bool:
    return entry.protocol is Protocol.CSV or (entry.sql_conn_id is not None and not entry.all_rows)


def _has_list(file: SchemaFile) -> bool:
    return any(is_list(column) and not has_members(column) for column in file.columns)
