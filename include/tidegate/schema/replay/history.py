"""Schema history of one source: every version of every table, and the replay of DDL onto it.

In:  rows of control/schema_history (a baseline and earlier replays), then DDL in commit_ts order.
Out: new TableVersions to append; the version of a table at a commit_ts.

Replaying again is safe: a statement at or below the baseline, or at or below the last version of a
table it affects, changes nothing; and ids of new columns follow from the rows alone. An unreadable
statement, or one that contradicts its tables, holds these tables (`held`) from there on; nothing is
guessed. Earlier versions stay true, and other tables go on.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from tidegate.errors import DDLError
from tidegate.remedy import Remedy
from tidegate.schema.ddl.reader import DdlNotRead, touched_tables
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.ddl.tree import (
    CreateLike,
    CreateTable,
    DefineDatabase,
    DropDatabase,
    DropTables,
    Ignored,
    Statement,
    TableName,
    starts_anew,
)
from tidegate.schema.model.charsets import server_default
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.server_settings import ServerSettings
from tidegate.schema.model.types import UNKNOWN
from tidegate.schema.model.unlogged import SEQUENCE, VIEWS
from tidegate.schema.replay.bounds import Bounds
from tidegate.schema.replay.context import Context
from tidegate.schema.replay.effects import DEFAULTS, QueryColumns, TableEffects
from tidegate.schema.replay.logged_effects import check_base_table
from tidegate.schema.replay.shape import Shape
from tidegate.schema.replay.unplaced import read_placed
from tidegate.schema.replay.views import views_of
from tidegate.schema.replay.work import Work
from tidegate.table_names import splits

__all__ = ["BASELINE", "DEFAULTS", "SchemaHistory"]
BASELINE: Final = "baseline"
SNAPSHOT: Final = "snapshot"  # kind of a version at which a table is empty, and filled by a snapshot from there on
UNFOLLOWED: Final = "unfollowed"  # kind of a version that a statement would have changed, nobody knows how


class SchemaHistory:
    """Versions of the tables of one source, in memory.

    held: tables held by a statement, with the error as the reason. It isn't stored, since the next
    window of the table reads the statement again. unfollowed: versions of excluded tables, made where a
    statement about them couldn't be followed; they are stored like other versions.
    """

    def __init__(
        self,
        source: str,
        rows: Iterable[Mapping[str, Any]] = (),
        keeps: Callable[[str, str], bool] = lambda _database, _table: True,
        *,
        columns_of_query: QueryColumns | None = None,
        bounds: Bounds | None = None,
        named: Callable[[TableVersion], TableVersion] = lambda version: version,
    ) -> None:
        """Take in rows of control/schema_history, in any order. Rows of other sources are left out.

        Rows may be only those still needed (lake/schema_history/schema_rows.py), with bounds from all
        rows. A table's rows are parsed when it is first used.
        keeps: Tables.keeps of the pipeline: an excluded unknown table is no error. columns_of_query: for
        the columns of CREATE TABLE ... SELECT; only a script has it, and it also begins on an empty
        server. named: gives versions silver's names.
        """
        self.source = source
        self.held: dict[TableName, DdlNotRead] = {}
        self.unfollowed: list[TableVersion] = []
        self.keeps, self.named, self.columns_of_query = keeps, named, columns_of_query
        self._sequences: set[TableName] = set()
        self._tables: set[TableName] = set()  # with a version that is no sequence
        self._unusual: set[TableName] = set()
        self._hidden: set[TableName] = set()  # names of temporary tables that the log makes
        self._versions: dict[TableName, list[TableVersion]] = {}
        self._unread: dict[TableName, list[Mapping[str, Any]]] = {}
        self._standing: dict[TableName, int] = {}
        self._next_id = bounds.next_id if bounds else 1
        self._floor = bounds.floor if bounds else 0
        for row in sorted(
            (row for row in rows if row["source"] == source), key=lambda row: (row["commit_ts"], row["version"])
        ):
            name = (row["database"], row["table"])
            self._versions.setdefault(name, [])
            self._unread.setdefault(name, []).append(row)
            self._next_id = max(self._next_id, (row.get("last_column_id") or 0) + 1)
            self._note_engine(name, row.get("engine") or "", bool(row.get("foreign_keys") or row.get("merged_by")))
            if row["kind"] == BASELINE:
                self._floor = max(self._floor, row["commit_ts"])
            self._note_standing(name, row["commit_ts"], row["status"], row["kind"])
        if bounds is not None:
            self._standing = dict(bounds.standing)
        self._grown = {name for name, rows_of in self._unread.items() if len(rows_of) > 1}
        self._begins = sorted((rows_of[-1]["commit_ts"], name) for name, rows_of in self._unread.items())

    def add(self, versions: Iterable[TableVersion]) -> None:
        """Take in versions that are already numbered, such as a baseline, in commit_ts order."""
        for version in map(self.named, versions):
            name = (version.database, version.table)
            self._of(name)
            self._versions.setdefault(name, []).append(version)
            self._grown.add(name)
            insort(self._begins, (version.commit_ts, name))
            self._next_id = max([self._next_id, *(column.id + 1 for column in version.columns)])
            self._note_engine(name, version.engine, bool(version.foreign_keys or version.merged_by))
            if version.kind == BASELINE:
                self._floor = max(self._floor, version.commit_ts)
            self._note_standing(name, version.commit_ts, version.status, version.kind)

    def _note_standing(self, name: TableName, commit_ts: int, status: str, kind: str) -> None:
        if status == VersionStatus.DROPPED or kind == UNFOLLOWED:
            self._standing.pop(name, None)
        elif name[1]:
            self._standing.setdefault(name, commit_ts)

    def _note_engine(self, name: TableName, engine: str, linked: bool) -> None:
        if engine in VIEWS:
            return
        (self._sequences if engine == SEQUENCE else self._tables).add(name)
        if engine or linked:
            self._unusual.add(name)

    def is_sequence(self, name: TableName) -> bool:
        """Whether it was never a table: rows of a sequence show its state."""
        return name in self._sequences and name not in self._tables

    @property
    def unusual(self) -> frozenset[TableName]:
        """Tables that may change without row events: another engine than InnoDB, foreign keys."""
        return frozenset(self._unusual)

    def _of(self, name: TableName) -> list[TableVersion]:
        """A table's versions, oldest first."""
        rows = self._unread.pop(name, None)
        if rows is not None:
            self._versions[name] = [self.named(TableVersion.from_row(row)) for row in rows]
        return self._versions.get(name, [])

    def forget(self, floor_of: Callable[[str, str], int]) -> None:
        """Drop versions superseded at or below floor_of(database, table): nobody asks for them.

        Replay needs only the last version, so an application's memory stays the same however many DDLs
        it reads.
        """
        for name in self._grown:
            versions, floor = self._of(name), floor_of(*name)
            keep = bisect_right(versions, floor, key=lambda version: version.commit_ts)
            self._versions[name] = versions[max(keep - 1, 0) :]
        self._grown = {name for name in self._grown if len(self._versions[name]) > 1}
        if len(self._begins) > 2 * len(self._versions):  # those of versions that were let go are of no use
            self._begins = sorted({name: (commit_ts, name) for commit_ts, name in self._begins}.values())

    def ever(self, *statuses: VersionStatus) -> list[TableName]:
        """Tables with a version of one of these statuses, without parsing what isn't parsed yet."""
        return [
            name
            for name, versions in self._versions.items()
            if any(version.status in statuses for version in versions)
            or any(row["status"] in statuses for row in self._unread.get(name, ()))
        ]

    def versions(self, database: str, table: str) -> tuple[TableVersion, ...]:
        """All versions of a table that are in memory, oldest first."""
        return tuple(self._of((database, table)))

    def version_at(self, database: str, table: str, commit_ts: int) -> TableVersion | None:
        """The version valid for rows with this commit_ts; its status may be dropped.

        None if the table wasn't known then.
        """
        versions = self._of((database, table))
        at = bisect_right(versions, commit_ts, key=lambda version: version.commit_ts)
        return versions[at - 1] if at else None

    def made_in(self, after_ts: int, upto_ts: int) -> list[TableVersion]:
        """Versions of tables that begin in (after_ts, upto_ts], oldest first."""
        first = bisect_right(self._begins, after_ts, key=lambda begin: begin[0])
        late = dict.fromkeys(name for _, name in self._begins[first:] if name[1])  # others have no version above it
        made = [version for name in late for version in self._of(name) if after_ts < version.commit_ts <= upto_ts]
        return sorted(made, key=lambda version: version.commit_ts)

    @property
    def standing(self) -> Mapping[TableName, int]:
        """Present tables, without views -> from which commit_ts on without a DROP in between."""
        return self._standing

    def tables(self) -> tuple[TableName, ...]:
        """(database, table) of every table that ever was."""
        return tuple(name for name in self._versions if name[1])

    @property
    def names(self) -> int:
        """How many names of tables and databases ever were."""
        return len(self._versions)

    def replay(self, statement: DdlStatement) -> list[TableVersion]:
        """Follow one statement. Returns its new versions, at most one per table; [] if it changes nothing
        in a version, or was replayed before.

        Raises DdlNotRead (a DDLError). Its `tables` are held from here on; () means that no table is
        known, and the source must stop.
        """
        if statement.commit_ts <= self._floor:
            return []
        server = self.server_of(statement)
        try:
            parsed = read_placed(statement, server, self)
        except DdlNotRead as error:
            names = [pair for name in error.tables for pair in splits(name)]
            if not statement.legible:
                return self._illegible(names, statement)
            if names and all(not self.keeps(*name) or self._seen(name, statement.commit_ts) for name in names):
                self.leave_behind(names, statement)
                return []
            raise self._hold(names, error.what, statement, error.remedy) from error
        if not statement.legible and not isinstance(parsed, Ignored):
            touched = touched_tables(parsed)
            harmless = not touched and not isinstance(parsed, DefineDatabase | DropDatabase)  # temporary tables
            return [] if harmless else self._illegible(touched, statement)
        return self.follow(parsed, statement)

    def _illegible(self, names: Iterable[TableName], statement: DdlStatement) -> list[TableVersion]:
        """Hold the tables of a statement with unreadable bytes: those it names; or all known tables of its
        databases; or all tables, if not even a database has a name.
        """
        databases = {database for database, _ in names}
        if not databases or any(UNKNOWN in database for database in databases):
            names = self.tables()
        elif any(UNKNOWN in table for _, table in names):
            names = [name for name in self.tables() if name[0] in databases]
        self.leave_behind(names, statement)
        names = [name for name in names if self.keeps(*name) and not self._seen(name, statement.commit_ts)]
        if names:
            what = f"statement {statement.sql[:80]!r} holds bytes that are no text in its character set"
            raise self._hold(names, what, statement, "run `tidegate schema refresh`, which asks the server")
        return []

    def follow(self, parsed: Statement, statement: DdlStatement) -> list[TableVersion]:
        """The same for a statement that is read already."""
        touched = touched_tables(parsed)
        self._note_temporary(parsed)
        if isinstance(parsed, Ignored) or any(self._seen(name, statement.commit_ts) for name in touched):
            return []
        before = next((self.held[name] for name in touched if name in self.held), None)
        if before is not None and not starts_anew(parsed):
            what, mend = f"an earlier statement wasn't followed: {before.line}", Remedy("end that first", before.needs)
            raise self._hold(touched, what, statement, mend)
        server = self.server_of(statement)
        work = Work(lambda name: self._before(name, statement.commit_ts))
        try:
            check_base_table(parsed, statement, self._hidden)
            TableEffects(self, work, self._context(statement, server, parsed), statement).follow(parsed)
        except DDLError as error:
            if touched and not any(self.keeps(*name) for name in touched):
                self.leave_behind(touched, statement)
                return []
            raise self._hold(touched, error.what, statement, error.remedy) from error
        views = [name for name in views_of(parsed) if not work.lives(name)]
        return self._record(work, statement, (*touched, *views))

    def leave_behind(self, names: Iterable[TableName], statement: DdlStatement) -> None:
        """Mark tables outside of the pipeline: the statement may have changed them, and isn't followed. If
        one is kept later, no version of it is believed until it is made anew.
        """
        work = Work(self.last)
        for name in names:
            last = self.last(name)
            if not name[1] or self.keeps(*name) or self._seen(name, statement.commit_ts):
                continue
            shape = Shape.of(last) if last else Shape((), (), *self.defaults(name[0], self.server_of(statement)))
            work.put(name, shape, UNFOLLOWED, VersionStatus.UNPROVEN)
        self.unfollowed += self._record(work, statement, ())

    def _note_temporary(self, parsed: Statement) -> None:
        match parsed:
            case CreateTable(table=table, temporary=True) | CreateLike(table=table, temporary=True):
                self._hidden.add(table)
            case DropTables(tables, temporary=True):
                self._hidden.difference_update(tables)

    def _seen(self, name: TableName, commit_ts: int) -> bool:
        """Whether a statement is followed already, by the name's versions; a view's version doesn't count."""
        last = self.last(name)
        return last is not None and last.commit_ts >= commit_ts and last.engine not in VIEWS

    def last(self, name: TableName) -> TableVersion | None:
        """The newest version of a table, or of a database's defaults."""
        versions = self._of(name)
        return versions[-1] if versions else None

    def _before(self, name: TableName, commit_ts: int) -> TableVersion | None:
        """The newest version made by an earlier statement: of a view there may be later ones."""
        last = self.last(name)
        return last if last is None or last.commit_ts < commit_ts else self.version_at(*name, commit_ts - 1)

    def names_of(self, database: str) -> list[TableName]:
        """All tables of a database that ever were, and its own defaults."""
        return [name for name in self._versions if name[0] == database]

    def pass_gap(self, commit_ts: int, file: str, pos: int) -> list[TableVersion]:
        """From here on nobody saw the source's DDL for a while: tables of the baseline, and dropped ones,
        may exist by now. Returns the version for this; [] if it was recorded before.
        """
        last = self.last(("", ""))
        if last is None or last.commit_ts >= commit_ts:
            return []
        settings = replace(last.settings or ServerSettings(), kept=(), left_out=(), gap_ts=commit_ts)
        made = replace(last, version=last.version + 1, commit_ts=commit_ts, file=file, pos=pos, settings=settings)
        self.add([made])
        return [made]

    def hold(self, names: Iterable[TableName], error: DdlNotRead) -> None:
        """Hold tables for a reason from outside."""
        for name in names:
            self.held.setdefault(name, error)

    def _hold(self, names: Iterable[TableName], what: str, statement: DdlStatement, remedy: str | Remedy) -> DdlNotRead:
        names, where = tuple(dict.fromkeys(names)), f"{self.source} at {statement.where}"
        error = DdlNotRead(what, where=where, remedy=remedy, tables=tuple(f"{d}.{t}" for d, t in names))
        self.hold(names, error)
        return error

    def _context(self, statement: DdlStatement, server: ServerVersion, parsed: Statement) -> Context:
        table = next(iter(touched_tables(parsed)), ("", ""))
        defaults = self.defaults(table[0] or statement.database, server)
        return Context(server, defaults, self.new_id, statement.said, self.settings, table)

    @property
    def settings(self) -> ServerSettings:
        """The source's, as its baseline found them."""
        last = self.last(("", ""))
        return (last and last.settings) or ServerSettings()

    def server_of(self, statement: DdlStatement) -> ServerVersion:
        """The server of a statement, and how it takes names."""
        server = ServerVersion.of(statement.server_version)
        return replace(server, folds_names=server.folds_names or self.settings.folds_names)

    def defaults(self, database: str, server: ServerVersion) -> tuple[str, str]:
        """(charset, collation) that a table of this database has by default."""
        for name in ((database, ""), ("", "")):
            last = self.last(name)
            if last is not None and last.status is VersionStatus.ACTIVE:
                return last.charset, last.collation
        return server_default(server)

    def new_id(self) -> int:
        """A column id that no column of this source ever had."""
        self._next_id += 1
        return self._next_id - 1

    def _record(self, work: Work, statement: DdlStatement, touched: Iterable[TableName]) -> list[TableVersion]:
        made: list[TableVersion] = []
        for name in touched:
            self.held.pop(name, None)
        for name, after in work.changed():
            last = self.last(name)
            if last is not None and last.commit_ts >= statement.commit_ts:
                continue  # DROP DATABASE again, when one of its tables catches up: the others are past it
            version = TableVersion(
                self.source,
                *name,
                version=last.version + 1 if last else 1,
                commit_ts=statement.commit_ts,
                file=statement.file,
                pos=statement.pos,
                kind=after.kind,
                ddl=statement.shown,
                columns=after.shape.columns,
                key=after.shape.key,
                charset=after.shape.charset,
                status=after.status,
                collation=after.shape.collation,
                indexes=after.shape.indexes,
                partitioning=after.shape.partitioning,
                moved=after.moved,
                engine=after.shape.engine,
                foreign_keys=after.shape.foreign_keys,
                merged_by=after.shape.merged_by,
                comment=after.shape.comment,
                settings=last.settings if last else None,
            )
            made.append(self.named(version))
        self.add(made)
        return made
