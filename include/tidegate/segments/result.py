"""The result of decoding a segment: changes, problems, and a ledger that accounts for every byte.

In:  nothing; these are values.
Out: TableChanges, for apply's writers; Problem and Ledger, for its records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from tidegate.errors import line_and_needs
from tidegate.remedy import Needs
from tidegate.schema.model.types import ZeroDates


@dataclass(frozen=True, slots=True)
class CommitSpan:
    """Changes with after_ts < commit_ts <= upto_ts.

    zero_dates: the policy for the table's impossible dates. whole_deletes: the pipeline file's key
    that needs the whole last image of a deleted row: a delete without a column is then a problem;
    "" for none. left_out: columns that silver lacks, under its names: an image of a table with a
    key may lack them. asks: an image may also lack values of generated columns, which are asked for
    afterwards.
    """

    after_ts: int
    upto_ts: int
    zero_dates: ZeroDates = ZeroDates.NULL
    whole_deletes: str = ""
    left_out: frozenset[str] = frozenset()
    asks: bool = False

    def __contains__(self, commit_ts: int) -> bool:
        return self.after_ts < commit_ts <= self.upto_ts


# (file, pos, commit_ts) of something that couldn't be followed, as in a held table's place.
EventPlace = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Known:
    """The facts about a source beside the wanted tables.

    held: tables that wait for a person: their rows count as quarantined, and bronze keeps them.
    tables: names that are tables, and not views, with the commit_ts since when. gone: names that
    were tables earlier: for each time, from which and before which commit_ts. judged: place -> the
    tables changed there, as a person said; () for none. rolled_back_ts: of the transaction at the
    segment's end, if a later segment rolls it back; 0: none. effects: whether a statement in the
    place of rows may change other tables than its text names, by triggers, functions or foreign
    keys. answers: start_ts -> commit_ts of committed prewrites in the segment: then only these are
    decoded.
    """

    held: Collection[tuple[str, str]] = ()
    tables: Mapping[tuple[str, str], int] = field(default_factory=dict)
    gone: Mapping[tuple[str, str], Sequence[tuple[int, int]]] = field(default_factory=dict)
    judged: Mapping[EventPlace, Collection[tuple[str, str]]] = field(default_factory=dict)
    rolled_back_ts: int = 0
    effects: bool = False
    answers: Mapping[int, int] | None = None

    def there_at(self, commit_ts: int) -> set[tuple[str, str]]:
        """The tables that existed then."""
        present = {name for name, since in self.tables.items() if since <= commit_ts}
        return present | {
            n for n, times in self.gone.items() if any(since <= commit_ts < upto for since, upto in times)
        }


NOTHING_KNOWN: Final = Known()


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one table under one of its versions.

    batch: tables.OP int8, COMMIT_TS int64, SEQ int64, ORDINAL int64 (strictly increasing in log
    order within the segment, over all tables), then the version's columns in order, as canonical
    Arrow types. lacks: rows have NULL in place of a generated column's value that must be asked for
    (CommitSpan.asks).
    """

    database: str
    table: str
    version: int
    batch: pa.RecordBatch
    lacks: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a table's changes in this segment are left out. error: name of the exception's class.
    needs: what ends the hold, beside the message.

    pos: where the event starts. table_map: the body of the TABLE_MAP that schema_history
    contradicts; empty for another problem. mariadb: whether a MariaDB wrote it.
    """

    database: str
    table: str
    error: str
    message: str
    commit_ts: int
    file: str
    pos: int
    table_map: bytes = b""
    mariadb: bool = False
    needs: Needs = Needs.NOTHING

    @classmethod
    def of(
        cls,
        name: tuple[str, str],
        error: Exception,
        place: EventPlace,
        table_map: bytes = b"",
        *,
        mariadb: bool = False,
    ) -> Problem:
        """The problem an exception is for a table."""
        line, needs = line_and_needs(error)
        file, pos, commit_ts = place
        return cls(*name, type(error).__name__, line, commit_ts, file, pos, table_map, mariadb, needs)

    @property
    def text(self) -> str:
        """The message, and what to do."""
        return "; ".join(part for part in (self.message, self.needs.words()) if part)


@dataclass(slots=True)
class Ledger:
    """decoded_bytes + sum(ignored) + quarantined_bytes == payload_bytes, in whole events.

    ignored: rule (events.IGNORE_RULES) -> bytes. rows: changes decoded. null_dates: zero or impossible dates in them
    that became NULL.
    """

    payload_bytes: int
    decoded_bytes: int = 0
    ignored: dict[str, int] = field(default_factory=dict)
    quarantined_bytes: int = 0
    rows: int = 0
    null_dates: int = 0

    def ignore(self, rule: str, count: int) -> None:
        if count:
            self.ignored[rule] = self.ignored.get(rule, 0) + count

    def add(self, other: Ledger) -> None:
        """Add the ledger of another part of the same payload."""
        self.payload_bytes += other.payload_bytes
        self.decoded_bytes += other.decoded_bytes
        self.quarantined_bytes += other.quarantined_bytes
        self.rows += other.rows
        self.null_dates += other.null_dates
        for rule, count in other.ignored.items():
            self.ignore(rule, count)

    def check(self) -> None:
        total = self.decoded_bytes + sum(self.ignored.values()) + self.quarantined_bytes
        assert total == self.payload_bytes, f"ledger: {total} of {self.payload_bytes} bytes accounted for: {self}"


@dataclass(frozen=True, slots=True)
class DecodedSegment:
    """changes: one per (table, version) with changes, in order of table names. problems: at most
    one per table.
    """

    changes: tuple[TableChanges, ...]
    problems: tuple[Problem, ...]
    ledger: Ledger
