"""What a TiCDC changefeed writes to a local path, written by the rules of its papers and of its encoders.

In:  tables, DDL and transactions, each with its commit_ts; when a file is written, under which name.
Out: the folder: schema files, data files of canal-json or csv with their index files, the checkpoint.

No line of the product is in it: tests compare what the product makes of the files with what was written here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

BEGIN = 433_305_438_660_591_626


def ts(number: int) -> int:
    """A commit_ts; a second apart from the next."""
    return BEGIN + (number * 1000 << 18)


class Cell(NamedTuple):
    """A value as each protocol has it: canal's text, and csv's, quoted or not. None of both: NULL."""

    canal: str | None
    csv: str | None
    quoted: bool = False


NULL = Cell(None, None)


def number(value: object) -> Cell:
    return Cell(str(value), str(value))


def text(value: str) -> Cell:
    return Cell(value, value, quoted=True)


class Change(NamedTuple):
    """new: None of a delete. old: None of an insert."""

    commit_ts: int
    new: Mapping[str, Cell] | None
    old: Mapping[str, Cell] | None = None


@dataclass
class TableFiles:
    """columns: name -> cells of a schema file. number: of the last data file of each folder and writer."""

    columns: Mapping[str, Mapping[str, str]]
    version: int
    number: dict[str, int] = field(default_factory=dict)


@dataclass
class Changefeed:
    path: Path
    protocol: str = "canal-json"
    terminator: str = "\r\n"
    width: int = 6
    csv: Mapping[str, Any] = field(default_factory=dict)
    canal: frozenset[str] = frozenset()  # options of canal-json that are on
    tables: dict[tuple[str, str], TableFiles] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        self._files: dict[str, bytes] = {}

    # --- schema files ------------------------------------------------------------------------------

    def ddl(
        self, name: str, version: int, query: str, action: int, columns: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """name: database.table, or a database. columns: of the table from now on; as they are when left out."""
        database, _, table = name.partition(".")
        if table and columns is None:
            there = self.tables.get((database, table))
            columns = there.columns if there else {}
        if table:
            self.tables[database, table] = TableFiles(columns or {}, version)
        shown = [{"ColumnName": column, **cells} for column, cells in (columns or {}).items()]
        said = {
            "Table": table,
            "Schema": database,
            "Version": 1,
            "TableVersion": version,
            "Query": query,
            "Type": action,
            "TableColumns": shown or None,
            "TableColumnsTotal": len(shown),
        }
        folder = "/".join(part for part in (database, table, "meta") if part)
        self.write(f"{folder}/schema_{version}_{hash(json.dumps(shown)) % 10**10:010}.json", json.dumps(said, indent=4))

    def found(self, name: str, version: int, columns: Mapping[str, Mapping[str, str]]) -> None:
        """A table that was there when the changefeed began."""
        self.ddl(name, version, "", 0, columns)

    # --- data files --------------------------------------------------------------------------------

    def rows(self, name: str, *changes: Change, folder: str = "", writer: str = "", version: int = 0) -> Path:
        """One more data file. folder: below the version's: partition, date."""
        database, _, table = name.partition(".")
        files = self.tables[database, table]
        at = "/".join(part for part in (database, table, str(version or files.version), folder) if part)
        number = files.number[f"{at}:{writer}"] = files.number.get(f"{at}:{writer}", 0) + 1
        mark = f"CDC_{writer}" if writer else "CDC"
        file = f"{mark}{'_' if writer else ''}{number:0{self.width}}.{'json' if self.protocol != 'csv' else 'csv'}"
        lines = [line for change in changes for line in self._lines(database, table, files, change)]
        header = self._header(files) if self.csv.get("header") else ""
        self.write(f"{at}/meta/{mark}.index", file + "\n")
        return self.write(f"{at}/{file}", header + "".join(line + self.terminator for line in lines))

    def checkpoint(self, commit_ts: int) -> None:
        """All up to this commit_ts is written, DDL too: of the checkpoint's own a DDL may come later."""
        self.write("metadata", json.dumps({"checkpoint-ts": commit_ts + 1}, separators=(",", ":")))

    def write(self, name: str, content: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())
        return file

    def _lines(self, database: str, table: str, files: TableFiles, change: Change) -> list[str]:
        if self.protocol == "csv":
            return self._csv(database, table, files, change)
        return [self._canal(database, table, files, change)]

    def _canal(self, database: str, table: str, files: TableFiles, change: Change) -> str:
        image = change.new if change.new is not None else change.old
        assert image is not None
        shown = {name: cells["ColumnType"].lower() for name, cells in files.columns.items()}
        old, keys = change.old, [name for name, cells in files.columns.items() if cells.get("ColumnIsPk")]
        if old is not None and {"content-compatible", "only-output-updated-columns"} & self.canal:
            old = {name: cell for name, cell in old.items() if change.new and cell != change.new[name]}
        if change.new is None and "delete-only-output-handle-key-columns" in self.canal:
            image = {name: image[name] for name in keys}
        more = {"rowKey": "7480000000000000FF"} if "output-row-key" in self.canal else {}
        kind = "DELETE" if change.new is None else "INSERT" if change.old is None else "UPDATE"
        said = {
            "id": 0,
            "database": database,
            "table": table,
            "pkNames": keys,
            "isDdl": False,
            "type": kind,
            "es": change.commit_ts >> 18,
            "ts": 1_670_000_000_000,
            "sql": "",
            "sqlType": dict.fromkeys(files.columns, 12),
            "mysqlType": shown,
            "old": [_canal_image(old)] if kind == "UPDATE" and old is not None else None,
            "data": [_canal_image(image)],
            "_tidb": {"commitTs": change.commit_ts, **more},
        }
        return json.dumps(said, separators=(",", ":"), ensure_ascii=False)

    def _csv(self, database: str, table: str, files: TableFiles, change: Change) -> list[str]:
        if change.new is not None and change.old is not None:
            if self.csv.get("old_value"):
                halves = (("D", change.old), ("I", change.new))
                return [self._record(op, database, table, change.commit_ts, image, True) for op, image in halves]
            return [self._record("U", database, table, change.commit_ts, change.new, True)]
        op, image = ("D", change.old) if change.new is None else ("I", change.new)
        assert image is not None
        return [self._record(op, database, table, change.commit_ts, image, False)]

    def _record(
        self, op: str, database: str, table: str, commit_ts: int, image: Mapping[str, Cell], update: bool
    ) -> str:
        more = ["true" if update else "false"] if self.csv.get("old_value") else []
        cells = [self._quoted(op), self._quoted(table), self._quoted(database), str(commit_ts), *more]
        for cell in image.values():
            shown = self.csv.get("null", "\\N") if cell.csv is None else cell.csv
            cells.append(self._quoted(shown) if cell.quoted else shown)
        return str(self.csv.get("delimiter", ",")).join(cells)

    def _quoted(self, value: str) -> str:
        quote = str(self.csv.get("quote", '"'))
        return quote + value.replace(quote, quote * 2) + quote

    def _header(self, files: TableFiles) -> str:
        more = ["ticdc-meta$is-update"] if self.csv.get("old_value") else []
        named = ("operation", "table", "schema", "commit-ts")
        names: Sequence[str] = [*(f"ticdc-meta${name}" for name in named), *more, *files.columns]
        return str(self.csv.get("delimiter", ",")).join(names) + self.terminator


def _canal_image(image: Mapping[str, Cell]) -> dict[str, str | None]:
    return {name: cell.canal for name, cell in image.items()}


ID = {"ColumnType": "BIGINT", "ColumnPrecision": "20", "ColumnNullable": "false", "ColumnIsPk": "true"}
WORD = {"ColumnType": "VARCHAR", "ColumnPrecision": "40"}
PLAIN = {"id": ID, "word": WORD}
CREATE_PLAIN = "CREATE TABLE `{0}`.`{1}` (`id` BIGINT NOT NULL PRIMARY KEY,`word` VARCHAR(40))"


def plain(number_: int, word: str | None) -> dict[str, Cell]:
    return {"id": number(number_), "word": NULL if word is None else text(word)}
