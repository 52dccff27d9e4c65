"""A segment's changes, table by table: raw events in, Arrow batches out.

In:  a Segment, the table versions of schema_history, the wanted windows of commit time per table.
Out: DecodedSegments: one for an ordinary segment, several if something large in it is compressed. A
     table that can't be decoded becomes a Problem. Its changes from there on are left out, and the
     other tables go on. An event that nobody can follow is a Problem of every wanted table.
     Incomplete events raise StreamCorrupt. An unknown format or compression raises UnknownEvent.

Keys of versions and windows are (database, table), physical names. The version in force for a
transaction is the last one with version.commit_ts <= its commit_ts. Each event has a fate
(fates.py), so the ledger has every byte of the payload: decoded, ignored by a named rule, or
quarantined with its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.binlog.format.events import EventFlag, EventType, type_name, unread_event
from tidegate.binlog.format.table_map import read_name
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.index.fates import DECODED, FATE_OF_RULE, QUARANTINED, UNDECIDED, Fates, Settlement, fates_by_type
from tidegate.binlog.index.outcome import UNDOES_EARLIER, UNDONE, rolled_back_too_late, undo_known
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.rows.batch import decode_batch
from tidegate.binlog.rows.prewritten import answered, passed_over
from tidegate.binlog.rows.table_rows import BatchDecoder, HeldError, Name, TableRows, decode_table
from tidegate.binlog.statements.judged import Judged, judge_statements, judge_unfollowed, place
from tidegate.binlog.transaction_scan import ROWS, SAVEPOINT, STATEMENT, XA_ANSWER
from tidegate.errors import DecodeError, StreamCorrupt, UnknownEvent, unexpected
from tidegate.remedy import JUDGE, REFILL, REPORT
from tidegate.schema.model.columns import TableVersion, was_there
from tidegate.segments.answers import Answers
from tidegate.segments.result import NOTHING_KNOWN, CommitSpan, DecodedSegment, Known, Ledger, Problem, TableChanges
from tidegate.segments.segment import Segment, may_name

__all__ = [
    "NOTHING_KNOWN",
    "CommitSpan",
    "DecodedSegment",
    "Known",
    "Ledger",
    "Problem",
    "TableChanges",
    "decode_in_pieces",
    "decode_segment",
]  # fmt: skip

Versions = Mapping[Name, Sequence[TableVersion]]
Windows = Mapping[Name, CommitSpan]


def decode_segment(
    segment: Segment,
    versions: Versions,
    windows: Windows,
    *,
    known: Known = NOTHING_KNOWN,
    verify_checksums: bool = False,
) -> DecodedSegment:
    """Decode what `windows` asks for. Raises StreamCorrupt and UnknownEvent; see the module's docstring."""

    def pieces(windows: Windows, known: Known) -> Iterator[DecodedSegment]:
        return decode_in_pieces(segment, versions, windows, known=known, verify_checksums=verify_checksums)

    return joined(pieces, windows, known)


def decode_in_pieces(
    segment: Segment,
    versions: Versions,
    windows: Windows,
    *,
    known: Known = NOTHING_KNOWN,
    verify_checksums: bool = False,
) -> Iterator[DecodedSegment]:
    """As decode_segment, in bounded memory: a huge compressed transaction comes in several parts,
    in log order.

    A table with a problem in one part has no changes in later ones. The caller drops its changes
    from earlier parts. The ledgers add up to the segment's.
    """
    return decode_indexes(
        index_pieces(segment, verify_checksums=verify_checksums), versions, windows, decode_batch, known
    )


def decode_indexes(
    indexes: Iterable[EventIndex],
    versions: Versions,
    windows: Windows,
    decode: BatchDecoder,
    known: Known = NOTHING_KNOWN,
) -> Iterator[DecodedSegment]:
    """decode_in_pieces after its first step. decode: the decoder of rows, since tests also use a
    slow one.
    """
    settlement = Settlement()
    for index in indexes:
        done = _decode_index(index, versions, windows, decode, known, settlement)
        yield done
        troubled = {(problem.database, problem.table) for problem in done.problems}
        if troubled:
            windows = {name: window for name, window in windows.items() if name not in troubled}
            known = replace(known, held={*known.held, *troubled})


def joined(
    decode: Callable[[Windows, Known], Iterable[DecodedSegment]], windows: Windows, known: Known
) -> DecodedSegment:
    """All parts of a segment as one. If a later part finds a table's problem, decode runs again
    without this table.
    """
    parts = list(decode(windows, known))
    if len(parts) == 1:
        return parts[0]
    problems = tuple(problem for part in parts for problem in part.problems)
    troubled = {(problem.database, problem.table) for problem in problems}
    if any((change.database, change.table) in troubled for part in parts for change in part.changes):
        kept = {name: window for name, window in windows.items() if name not in troubled}
        parts = list(decode(kept, replace(known, held={*known.held, *troubled})))
    by_version: dict[tuple[str, str, int], list[TableChanges]] = {}
    ledger = Ledger(payload_bytes=0)
    for part in parts:
        ledger.add(part.ledger)
        for change in part.changes:
            by_version.setdefault((change.database, change.table, change.version), []).append(change)
    changes = tuple(chain.from_iterable(_as_one(of_version) for _, of_version in sorted(by_version.items())))
    return DecodedSegment(changes, tuple(sorted(problems, key=lambda p: (p.database, p.table))), ledger)


def _as_one(changes: Sequence[TableChanges]) -> Iterator[TableChanges]:
    """The parts of one version as one, in order. None if there is no row, several if one batch
    can't hold them.
    """
    lacks = any(change.lacks for change in changes)
    rows = pa.Table.from_batches([change.batch for change in changes]).combine_chunks()
    yield from (replace(changes[0], batch=batch, lacks=lacks) for batch in rows.to_batches())


def _decode_index(
    index: EventIndex,
    versions: Versions,
    windows: Windows,
    decode: BatchDecoder,
    known: Known,
    settlement: Settlement,
) -> DecodedSegment:
    fates = fates_by_type(index)
    undo_known(index.events, index.segment, known.rolled_back_ts)
    wanted = judge_rows(index, windows, known, fates)
    problems = _judge_others(index, versions, windows, known, fates) if known.answers is None else {}
    changes: list[TableChanges] = []
    nulled = 0
    for rows in wanted:
        fates[rows.events] = QUARANTINED
        if rows.name in problems:
            continue
        try:
            decoded, null_dates = decode_table(index, rows, versions.get(rows.name, ()), decode)
        except HeldError as trouble:
            problems[rows.name] = problem_of(index, rows.name, trouble)
            continue
        except (OSError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours at one table's rows is that table's
            problems[rows.name] = problem_of(index, rows.name, HeldError(int(rows.events[0]), unexpected(error)))
            continue
        fates[rows.events] = DECODED
        changes += decoded
        nulled += null_dates
    ledger = settlement.settle(index, fates)
    ledger.rows = sum(change.batch.num_rows for change in changes)
    ledger.null_dates = nulled
    return DecodedSegment(tuple(changes), tuple(problems[name] for name in sorted(problems)), ledger)


def problem_of(index: EventIndex, name: Name, held: HeldError) -> Problem:
    """The Problem of a table. Its message has the place and both sides."""
    segment, error = index.segment, held.error
    pos = index.position(held.event)
    placed = type(error)(error.what, where=f"{name[0]}.{name[1]} at {segment.file}:{pos}", remedy=error.remedy)
    commit_ts = int(index.events[held.event, K.COMMIT_TS])
    place = (segment.file, pos, commit_ts)
    return Problem.of(name, placed, place, held.table_map, mariadb=index.format.is_mariadb)


def judge_rows(index: EventIndex, windows: Windows, known: Known, fates: Fates) -> list[TableRows]:
    """Rows events per wanted table, in order of name. It also sets the fates of all other rows
    events.
    """
    events = index.events
    rolled_back = (events[:, K.BITS] & UNDONE) != 0
    fates[rolled_back] = FATE_OF_RULE["rolled back"]
    answers = None if known.answers is None else Answers.of(known.answers)
    passed = passed_over(index, answers, fates)
    started = answered(index, answers) if answers else None
    numbers = np.flatnonzero(((events[:, K.BITS] & ROWS) != 0) & ~rolled_back & ~passed)
    contents = events[numbers, K.CONTENT]
    if len(numbers) and int(contents.min()) < 0:
        event = int(numbers[np.flatnonzero(contents < 0)[0]])
        raise StreamCorrupt(
            f"event {type_name(int(events[event, K.TYPE]))} follows no TABLE_MAP of its table",
            where=place(index, event),
            remedy=REFILL.after(REPORT),
        )
    by_name: dict[Name, list[npt.NDArray[np.int64]]] = {}
    order = np.argsort(contents, kind="stable")
    starts = np.searchsorted(contents[order], np.arange(len(index.bodies) + 1))
    for content, name in enumerate(index.names()):
        of_table = numbers[order[starts[content] : starts[content + 1]]]
        window = windows.get(name)
        if window is None:
            fates[of_table] = QUARANTINED if name in known.held else FATE_OF_RULE["table not asked for"]
            continue
        commit_ts = events[of_table, K.COMMIT_TS]
        inside = (commit_ts > window.after_ts) & (commit_ts <= window.upto_ts)
        fates[of_table[~inside]] = FATE_OF_RULE["outside the window"]
        if inside.any():
            by_name.setdefault(name, []).append(of_table[inside])
    wanted = [TableRows(name, np.sort(np.concatenate(by_name[name])), windows[name]) for name in sorted(by_name)]
    return wanted if started is None else [replace(rows, started=started[rows.events]) for rows in wanted]


def _judge_others(
    index: EventIndex, versions: Versions, windows: Windows, known: Known, fates: Fates
) -> dict[Name, Problem]:
    """Set the fates of all events but rows events. Returns Problems of tables they may change."""
    bits, kinds = index.events[:, K.BITS], index.events[:, K.TYPE]
    queries = np.flatnonzero((kinds == EventType.QUERY) | (kinds == EventType.EXECUTE_LOAD_QUERY))
    said = bits[queries]
    fates[queries] = FATE_OF_RULE["transaction frame"]
    for rule, bit in (("savepoint", SAVEPOINT), ("xa answer", XA_ANSWER)):
        fates[queries[(said & bit) != 0]] = FATE_OF_RULE[rule]
    statements = queries[(said & STATEMENT) != 0]
    fates[statements] = UNDECIDED
    odd = np.flatnonzero((fates == UNDECIDED) & ((bits & (ROWS | STATEMENT)) == 0)).tolist()
    late = queries[(said & UNDOES_EARLIER) != 0].tolist()
    problems: dict[Name, Problem] = {}
    # Names in a DDL that no table has: the name in between in a swap, DROP TABLE IF EXISTS. A hold for such a name
    # would never end, since no snapshot finds it. Rows of an unknown table are a problem of their own.
    unknown = {name for name in windows if not versions.get(name)}
    seen = {name: span for name, span in windows.items() if name not in unknown}
    for judged in chain(
        judge_statements(index, statements.tolist(), windows, known, unknown),
        (_judge_unknown(index, seen, event, known) for event in odd),
        (_judge_late(index, windows, event, known) for event in late),
    ):
        at_ts = int(index.events[judged.event, K.COMMIT_TS])
        for name in judged.tables:
            if was_there(versions.get(name, ()), at_ts):
                problems.setdefault(name, problem_of(index, name, HeldError(judged.event, judged.error)))
        fates[judged.event] = FATE_OF_RULE.get(judged.rule, QUARANTINED)
    return problems


def _judge_unknown(index: EventIndex, windows: Windows, event: int, known: Known) -> Judged:
    """An event of a type without a rule may change any table. Exceptions: it is flagged ignorable,
    or it is a part of rows, whose table is mapped before it.
    """
    code = int(index.events[event, K.TYPE])
    what = unread_event(code)
    error = UnknownEvent(_LOST if code == EventType.INCIDENT else what, remedy=JUDGE)
    if index.header(event).flags & EventFlag.IGNORABLE:
        return Judged(event, "ignorable", (), error)
    mapped = _mapped_before(index, event) if code == EventType.MARIADB_PARTIAL_ROW_DATA else None
    return judge_unfollowed(index, event, windows, known, error, mapped)


def _mapped_before(index: EventIndex, event: int) -> set[Name] | None:
    """The tables an event's transaction has mapped before it; None if the transaction begins before
    this piece.
    """
    inside = np.flatnonzero(index.events[:event, K.COMMIT_TS] == index.events[event, K.COMMIT_TS])
    kinds = index.events[inside, K.TYPE]
    if not len(inside) or kinds[0] != EventType.MARIADB_GTID:
        return None
    maps = inside[kinds == EventType.TABLE_MAP].tolist()
    try:
        return {read_name(index.event(number)[_MAP_BODY_AT:]) for number in maps} or None
    except DecodeError:
        return None


def _judge_late(index: EventIndex, windows: Windows, event: int, known: Known) -> Judged:
    """A statement that undoes rows of earlier segments, in the tables that capture named with it."""
    named = [name for name in {*windows, *known.held} if may_name(index.segment.tables, name)]
    error = UnknownEvent(rolled_back_too_late("").what, remedy=JUDGE)
    return judge_unfollowed(index, event, windows, known, error, named)


_MAP_BODY_AT: Final = 27  # after the header, the table id and the flags
_LOST: Final = "the source lost events here (INCIDENT)"
