"""The needs of a rebuild from bronze alone: a lake of its own over the same bronze, and where to
begin.

In:  a lake, a logical table, a moment.
Out: RebuildLake, in which apply's own steps write the table under another name; the tables that
     gave rows to it; the commit_ts to begin after. The lake itself only gets the new table, and a
     folder removed in the end.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from tidegate import tables
from tidegate.commit_ts import last_at, time_text
from tidegate.config import Tables
from tidegate.errors import LakeRefused, UsageError
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import last_states
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.table_names import Physical

# One rebuild of a pipeline runs at a time; each has a folder of its own in here.
SCRATCH: Final = "rebuild"
_BRONZE: Final = tables.SEGMENTS.path.split("/", 1)[0]
_OF_CUTS: Final = [("table", "=", "")]  # the row of the cut itself
_EMPTIES: Final = ("create", "truncate", "snapshot")
Links = dict[Physical, set[Physical | tuple[str, int]]]  # table -> itself, its columns' ids, tables that it names


@dataclass(slots=True)
class RebuildLake(LakeFiles):
    """The lake with its own bronze. Silver of one table is at another path, and everything else in
    a folder of its own.

    silver: the table's path as apply sees it. to: its real path. scratch: the folder to remove in
    the end.
    """

    silver: str = field(default="", kw_only=True)
    to: str = field(default="", kw_only=True)
    scratch: str = field(default=SCRATCH, kw_only=True)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.root, self.storage_options, self.silver, self.to, self.scratch)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        LakeFiles.__setstate__(self, state[:2])
        self.silver, self.to, self.scratch = state[2:]

    def uri(self, path: str) -> str:
        return LakeFiles.uri(self, self._placed(path))

    def local(self, path: str) -> str:
        return self.uri(path) if self.is_local else LakeFiles.local(self, self._placed(path))

    def _placed(self, path: str) -> str:
        if path.split("/", 1)[0] == _BRONZE:
            return path
        if path == self.silver or path.startswith(self.silver + "/"):
            return self.to + path[len(self.silver) :]
        return f"{self.scratch}/{path}"


class OnlyTables(Tables):
    """A pipeline's tables, but only these physical ones (database, table) are kept."""

    only: frozenset[tuple[str, str]]

    def keeps(self, database: str, table: str) -> bool:
        return (database, table) in self.only

    def shadows(self, database: str, table: str) -> bool:  # noqa: ARG002 - those that gave rows are among `only`
        return False


def moment(lake: LakeFiles, table: str, at: str) -> int:
    """The commit_ts at which to rebuild a table. at: a commit_ts, a time in ISO form (UTC without
    an offset), or "".

    A time means the newest cut at or before it. "" means the newest cut, and for a held table its
    applied_ts. Raises UsageError for any other text, or for a moment after the newest cut.
    """
    published = sorted(control.read(lake, tables.CUTS, columns=["cut_ts"], filters=_OF_CUTS)["cut_ts"].to_pylist())
    where = lake.uri(tables.CUTS.path)
    if not published:
        raise UsageError("no cut is published yet", where=where, remedy="run apply first")
    newest: int = published[-1]
    if not at:
        state = last_states(lake).get(table)
        return min(newest, state.applied_ts) if state is not None and state.state.waits else newest
    if at.isdecimal():
        wanted = int(at)
    else:
        try:
            limit = last_at(at)
        except ValueError as error:
            raise UsageError(
                f"--at {at} is neither a cut_ts nor a time",
                where="command line",
                remedy="write it as 2026-11-21T08:00, or give a cut_ts",
            ) from error
        wanted = max((cut for cut in published if cut <= limit), default=limit)
    if wanted > newest:
        raise UsageError(f"--at {at} lies after the newest cut, {newest}", where=where, remedy="run apply first")
    return wanted


def check_captured(index: BronzeIndex, source: str, table: str, at_ts: int) -> None:
    """Raise LakeRefused if a source isn't captured up to a moment: the cut may have gone on without
    it.
    """
    resolved_ts = index.resolved(source)
    if resolved_ts < at_ts:
        raise LakeRefused(
            f"can't be rebuilt at {at_ts}: {source} is captured up to {time_text(resolved_ts)} only, and the cut went"
            " on without it",
            where=table,
            remedy=f"give no --at, or one up to {resolved_ts}; or wait for capture of {source}",
        )


def silver_version(lake: LakeFiles, table: str, at_ts: int) -> int | None:
    """The Delta version of the table's silver at a published cut; None without silver, or without
    such a cut.
    """
    filters = [("cut_ts", "<=", at_ts), ("table", "in", ["", table])]
    rows = control.newest(lake, tables.CUTS, by=["table"], order=["cut_ts", "published_at"], filters=filters)
    last = {row["table"]: row for row in rows.to_pylist()}
    if "" not in last or last[""]["cut_ts"] != at_ts:
        return None
    return last[table]["delta_version"] if table in last and last[table]["delta_version"] >= 0 else None


def history_pieces(lake: LakeFiles, names: Collection[str] | None = None) -> Iterator[pa.Table]:
    """Rows of control/schema_history for tables with these names, a few thousand per piece, with
    all columns.
    """
    filters = None if names is None else [("table", "in", sorted(names))]
    return control.pieces(lake, tables.SCHEMA_HISTORY, filters=filters)


def physical_tables(
    history: Iterable[pa.Table], pipeline_tables: Tables, table: str, sources: Collection[str]
) -> set[Physical]:
    """The physical tables of a logical one, and all tables that gave them rows without row events.

    history: rows of control/schema_history, in pieces. A renamed table keeps its column ids.
    Partitions, and tables that became each other, name each other.
    """
    links = links_of(history, sources)
    return with_givers(links, {name for name in links if pipeline_tables.logical(*name.pair).name == table})


def strangers(
    physicals: Iterable[Physical], pipeline_tables: Tables, left: Container[tuple[Physical, str]]
) -> set[Physical]:
    """Shards that the pipeline file leaves out, and always has: a route names them, and silver never had their rows.

    left: (physical table, logical table) that were kept once. Silver has what they held then.
    """
    never_kept = set[Physical]()
    for physical in physicals:
        logical = pipeline_tables.logical(*physical.pair)
        kept = pipeline_tables.keeps(*physical.pair) or pipeline_tables.shadows(*physical.pair)
        if logical.routed and not kept and (physical, logical.name) not in left:
            never_kept.add(physical)
    return never_kept


def links_of(history: Iterable[pa.Table], sources: Collection[str]) -> Links:
    """Links of the tables of these sources."""
    links: Links = {}
    for row in (row for piece in history for row in piece.to_pylist()):
        name = Physical(row["source"], row["database"], row["table"])
        if row["table"] and row["source"] in sources:
            version = TableVersion.from_row(row)
            own_links = links.setdefault(name, {name})
            own_links |= {(version.source, column.id) for column in version.columns}
            if version.moved is not None and version.moved.other[1]:
                own_links.add(Physical(version.source, *version.moved.other))
    return links


def with_givers(links: Links, physicals: set[Physical]) -> set[Physical]:
    """These tables, and all tables that may have given them rows."""
    while True:
        shared = set[Physical | tuple[str, int]]().union(*(links[name] for name in physicals if name in links))
        more = {name for name, its_links in links.items() if not its_links.isdisjoint(shared)}
        if more <= physicals:
            return physicals
        physicals = physicals | more


def begin_ts(versions: Iterable[Mapping[str, Any]], at_ts: int, *, emptied: bool) -> int | None:
    """The commit_ts before all rows of a table, by its versions; None if it has no rows at at_ts.

    versions: rows of control/schema_history of the physical tables. emptied: after a CREATE, a
    TRUNCATE or a snapshot's beginning of the one table, silver has nothing from before it.
    """
    upto = sorted((row for row in versions if row["commit_ts"] <= at_ts), key=lambda row: row["commit_ts"])
    if not upto:
        return None
    anew = [row for row in upto if row["kind"] in _EMPTIES and row["status"] == VersionStatus.ACTIVE]
    first = anew[-1] if emptied and anew else upto[0]
    return max(0, int(first["commit_ts"]) - 1)
