"""Record golden cases from a running server (tests/golden/README.md).

In:  a server's socket, a name for it (mysql80), workloads (tests/golden/workloads).
Out: per binlog file of a workload a folder with events.binlog, schema.json and truth.json.

    python -m tools.record_golden --socket /run/mysqld/s --server mysql80 [--into FOLDER] [WORKLOAD ...]

The server must log in ROW format, be on this machine (its log files are read from its data directory), and have
nothing else to do. The database `golden` is dropped, global variables are set back after each workload.

Truth is taken by a second session: before a DDL statement, since it ends the life of a table's version; after it,
since it begins another; before and after a change of files; at the end.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
from tools.golden_truth import truth_of
from tools.golden_workload import Workload, read_workload

from tests.kit.decoding import index_segment
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.transaction_scan import STATEMENT
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.model.columns import Column, TableVersion

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
DATABASE = "golden"
_DDL = re.compile(r"\s*(CREATE|ALTER|DROP|RENAME|TRUNCATE)\s", re.IGNORECASE)
_SETTINGS = [
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_checksum",
    "gtid_mode",
    "log_bin_compress",
    "binlog_row_value_options",
    "binlog_transaction_compression",
    "log_bin_use_v1_row_events",
    "mysql56_temporal_format",
]
_UNSETTABLE = re.compile(r"gtid|timestamp|_pos$|pseudo|debug|innodb_")


@dataclass(slots=True)
class Life:
    """One version of one table within one file: its rows at both ends."""

    version: TableVersion
    born_at: int  # position of the statement that made it; 0: it was there when the file began
    start: dict[str, Any]
    end: dict[str, Any] | None = None


@dataclass(slots=True)
class Recording:
    """A workload being played."""

    workload: Workload
    server: str
    connect: Any
    flavour: str
    file: str = ""
    lives: list[Life] = field(default_factory=list)
    alive: dict[str, Life] = field(default_factory=dict)
    cases: list[tuple[str, list[Life]]] = field(default_factory=list)

    def play(self, watch: Any) -> None:
        sessions: dict[str, Any] = {}
        watch.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        watch.execute("FLUSH LOGS")
        watch.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        self.file = position(watch)[0]
        for name, sql in self.workload.statements:
            if name not in sessions:
                sessions[name] = self.connect(DATABASE)
            before = position(watch)[1]
            is_ddl = bool(_DDL.match(sql))
            if is_ddl:
                self._end(watch, self.alive.values())
            self._run(sessions[name], sql)
            now = position(watch)[0]
            if now != self.file:
                self._next_file(watch, now)
            elif is_ddl:
                self._look(watch, before, creates=sql.lstrip()[:6].upper() == "CREATE")
        for session in sessions.values():
            session.close()
        self._end(watch, self.alive.values())
        watch.execute("FLUSH LOGS")
        self.cases.append((self.file, self.lives))

    def _run(self, session: Any, sql: str) -> None:
        with session.cursor() as cursor:
            try:
                cursor.execute(sql.replace("\\\n", ""))
                cursor.fetchall()
            except pymysql.err.MySQLError as error:
                if error.args[0] not in self.workload.tolerates:
                    raise ValueError(f"{self.workload.name}: {sql[:200]}: {error}") from error

    def _next_file(self, watch: Any, now: str) -> None:
        """What was alive goes on in the next file, with the rows it has."""
        self._end(watch, self.alive.values())
        self.cases.append((self.file, self.lives))
        self.file, self.lives = now, []
        for name, life in self.alive.items():
            assert life.end is not None
            self.alive[name] = Life(life.version, 0, life.end)
            self.lives.append(self.alive[name])

    def _end(self, watch: Any, lives: Any) -> None:
        for life in lives:
            life.end = truth_of(watch, DATABASE, life.version.table, self.flavour)

    def _look(self, watch: Any, before: int, *, creates: bool) -> None:
        """Which tables have another shape, or are new or gone, after a DDL statement."""
        found = read_schema(watch.connection, "test", lambda d, _t: d == DATABASE, Position.of(self.file, 4))
        seen = {version.table: version for version in found if version.table}
        for name in list(self.alive):
            if name not in seen:
                del self.alive[name]
        for name, version in seen.items():
            old = self.alive.get(name)
            if old is not None and _shape(old.version) == _shape(version):
                if old.end is not None:  # TRUNCATE and the like begin a life without a new shape
                    rows = truth_of(watch, DATABASE, name, self.flavour)
                    if rows == old.end:
                        continue
                else:
                    continue
            number = 1 + max((life.version.version for life in self.lives if life.version.table == name), default=0)
            numbered = TableVersion.from_row(version.to_row() | {"version": number})
            # rows of CREATE TABLE ... SELECT are in the log
            rows = {"rows": []} if creates else truth_of(watch, DATABASE, name, self.flavour)
            self.alive[name] = Life(numbered, before, rows)
            self.lives.append(self.alive[name])


def _shape(version: TableVersion) -> list[Any]:
    names = {column.id: column.name for column in version.columns}
    shape = [(c.name, c.type, c.nullable, c.charset, c.collation, c.generated, c.invisible) for c in version.columns]
    return [shape, [names[i] for i in version.key]]


def position(cursor: Any) -> tuple[str, int]:
    """File and offset at which the server writes next."""
    try:
        cursor.execute("SHOW MASTER STATUS")
    except pymysql.err.MySQLError:
        cursor.execute("SHOW BINARY LOG STATUS")  # MySQL 8.2 and later
    row = cursor.fetchone()
    return str(row[0]), int(row[1])


def globals_of(cursor: Any) -> dict[str, str]:
    cursor.execute("SHOW GLOBAL VARIABLES")
    return {str(name): str(value) for name, value in cursor.fetchall()}


def set_back(cursor: Any, before: dict[str, str]) -> None:
    for name, value in globals_of(cursor).items():
        if value != before.get(name) and not _UNSETTABLE.search(name):
            word = before[name]
            cursor.execute(f"SET GLOBAL {name} = {word if word.isdigit() else repr(word)}")


def commit_ts_of(content: bytes, born_at: int) -> int:
    """The commit_ts from which a version holds: that of the first statement at or behind a position."""
    from tests.kit.decoding import segment_of_file

    if born_at == 0:
        return 0
    index = index_segment(segment_of_file(content))
    for number, event in enumerate(index.events):
        if index.position(number) >= born_at and event[K.BITS] & STATEMENT:
            return int(event[K.COMMIT_TS])
    raise ValueError(f"no statement at or behind {born_at}")


def schema_row(life: Life, content: bytes) -> dict[str, Any]:
    """A row of schema_history, without what has its default."""
    version = life.version
    default = Column(0, "", "")
    columns = []
    for column in version.columns:
        cells = {name: getattr(column, name) for name in Column.__slots__}
        columns.append({n: c for n, c in cells.items() if n in ("id", "name", "type") or c != getattr(default, n)})
    return {
        "table": version.table,
        "version": version.version,
        "commit_ts": commit_ts_of(content, life.born_at),
        "columns": columns,
        "key_columns": list(version.key),
    }


def truth_row(life: Life, workload: Workload) -> dict[str, Any]:
    version = life.version
    made: dict[str, Any] = {"table": version.table, "version": version.version, "key": list(version.key_names)}
    if version.table in workload.held:
        return made | {"held": workload.held[version.table]}
    if version.table in workload.unlogged:
        return made | {"unlogged": True}
    assert life.end is not None
    made["columns"] = life.end["columns"]
    if life.start["rows"]:
        made["start"] = life.start["rows"]
    return made | {"end": life.end["rows"]}


def lines(rows: Sequence[Any]) -> str:
    """A JSON array with a row on each line."""
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"


def write(folder: Path, content: bytes, lives: list[Life], about: dict[str, Any], workload: Workload) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.binlog").write_bytes(content)
    (folder / "schema.json").write_text(lines([schema_row(life, content) for life in lives]) + "\n")
    head = json.dumps(about, ensure_ascii=False)
    body = lines([truth_row(life, workload) for life in lives])
    (folder / "truth.json").write_text(f'{{"recorded": {head},\n"tables": {body}}}\n')
    (folder / "expected.ndjson").unlink(missing_ok=True)


def record(path: Path, server: str, connect: Any, into: Path) -> list[str]:
    """Play one workload; names of the cases made, [] when the server doesn't know what it needs."""
    workload = read_workload(path)
    with connect(None) as connection, connection.cursor() as watch:
        watch.execute("SELECT VERSION(), @@datadir")
        version, folder = watch.fetchone()
        numbers = tuple(int(part) for part in re.match(r"[0-9.]+", version)[0].split("."))  # type: ignore[index]
        flavour = "mariadb" if "MariaDB" in version else "mysql"
        if not workload.runs_on(flavour, numbers):
            return []
        before = globals_of(watch)
        dialect = "mysql8" if flavour == "mysql" and numbers >= (8,) else flavour
        recording = Recording(workload, server, connect, dialect)
        try:
            recording.play(watch)
        finally:
            set_back(watch, before)
        settings = {name: before[name] for name in _SETTINGS if name in before}
        about = {"server": f"{flavour} {version}", "workload": workload.name, "settings": settings}
    made = []
    for number, (file, lives) in enumerate(recording.cases, 1):
        name = f"{server}_{workload.name}" + (f"_{number}" if len(recording.cases) > 1 else "")
        write(into / name, (Path(folder) / file).read_bytes(), lives, about, workload)
        made.append(name)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--user", default="root")
    parser.add_argument("--password", default="")
    parser.add_argument("--server", required=True, help="first part of the cases' names, e.g. mysql80")
    parser.add_argument("--into", type=Path, default=GOLDEN)
    parser.add_argument("workload", nargs="*", help="names in tests/golden/workloads; all without any")
    given = parser.parse_args()

    def connect(database: str | None) -> Any:
        return pymysql.connect(
            unix_socket=given.socket,
            user=given.user,
            password=given.password,
            database=database,
            charset="utf8mb4",
            autocommit=True,
            local_infile=True,
        )

    paths = sorted((GOLDEN / "workloads").glob("*.sql"))
    for path in paths:
        if given.workload and path.stem not in given.workload:
            continue
        try:
            made = record(path, given.server, connect, given.into)
        except ValueError as error:
            print(f"FAILED {error}")
            continue
        print(f"{path.stem}: {', '.join(made) or 'not on this server'}")


if __name__ == "__main__":
    main()
