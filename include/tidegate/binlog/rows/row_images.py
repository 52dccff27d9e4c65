"""Every row image of the wanted tables, as logged: the input of a changelog.

In:  a Segment, table versions, windows of commit time, as for decode.py.
Out: images of one table under one version and TABLE_MAP at a time, with the place of each and its
     transaction's GTID.

The same functions as in decode.py exclude rows (rolled back ones, other windows). Bytes that can't
be decoded raise an error: the caller has decoded the same segment for silver before, and has held
the table.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate import tables
from tidegate.binlog.format.events import HEADER_BYTES, EventType
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.index.fates import fates_by_type
from tidegate.binlog.index.outcome import undo_known
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.rows.batch import decode_images
from tidegate.binlog.rows.decode import judge_rows
from tidegate.binlog.rows.decode_plan import Plan, make_plan
from tidegate.binlog.rows.table_rows import HeldError, Name, rows_by_version
from tidegate.columnar.decoded import Images
from tidegate.columnar.kernel import layout as L  # noqa: N812
from tidegate.errors import UnsupportedValue
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.result import NOTHING_KNOWN, CommitSpan, Known
from tidegate.segments.segment import Segment

_INSERTS: Final = (int(EventType.WRITE_ROWS_V1), int(EventType.WRITE_ROWS_V2))
_FLAGS_AT: Final = HEADER_BYTES + 6  # after the table id; their low byte
NO_FOREIGN_KEYS: Final = 0x02  # a flag: the session had foreign_key_checks off (NO_FOREIGN_KEY_CHECKS_F)
_GTIDS: Final = (int(EventType.GTID), int(EventType.MARIADB_GTID))


@dataclass(frozen=True, slots=True)
class TableImages:
    """Images of a table under one plan. positions: per image, the start of its rows event in the
    file. ordinals: per image, its place in the segment. gtids: commit_ts -> GTID, for
    transactions with an image here. flags: per image, those of its rows event.
    """

    name: Name
    version: TableVersion
    plan: Plan
    images: Images
    positions: npt.NDArray[np.int64]
    ordinals: npt.NDArray[np.int64]
    gtids: Mapping[int, str]
    flags: npt.NDArray[np.uint8]


def row_images(
    segment: Segment,
    versions: Mapping[Name, Sequence[TableVersion]],
    windows: Mapping[Name, CommitSpan],
    *,
    known: Known = NOTHING_KNOWN,
    inserts: bool = True,
) -> Iterator[TableImages]:
    """In pieces; in each, tables are in order of name. known: the rolled back rows; the wanted
    prepared rows, with the commit_ts of their answer. inserts: whether images of new rows are
    wanted, too.

    Raises StreamCorrupt, UnknownEvent, HeldError, RowsError, and the Terminal errors of plans.
    """
    gtids = _carried(segment)
    for index in index_pieces(segment):
        undo_known(index.events, segment, known.rolled_back_ts)
        gtids |= _gtids(index)
        for rows in judge_rows(index, windows, known, fates_by_type(index)):
            for version, numbers in rows_by_version(index, rows, versions.get(rows.name, ())):
                events = numbers if inserts else numbers[~np.isin(index.events[numbers, K.TYPE], _INSERTS)]
                contents = index.events[events, K.CONTENT]
                for content in np.unique(contents).tolist():
                    of_content = events[contents == content]
                    plan = make_plan(
                        index.bodies[content],
                        version,
                        rows.window.zero_dates,
                        mariadb=index.format.is_mariadb,
                        left_out=rows.window.left_out,
                    )
                    if plan.row_end >= 0:
                        what = "a system-versioned table logs its history's rows with its own"
                        raise HeldError(int(of_content[0]), UnsupportedValue(what, remedy="read it in silver"))
                    yield _decoded(index, rows.name, version, plan, of_content, gtids)


def _decoded(
    index: EventIndex,
    name: Name,
    version: TableVersion,
    plan: Plan,
    events: npt.NDArray[np.int64],
    gtids: Mapping[int, str],
) -> TableImages:
    records = index.rows_records(events)
    images = decode_images(index.data, records, plan, index.segment.seq)
    at = images.rows.column(tables.ORDINAL).to_numpy()
    event = events[np.searchsorted(records[:, L.EVENT_START], at, side="right") - 1]
    positions = index.segment.start_pos + index.events[event, K.ORIGIN]
    flags = index.data[index.events[event, K.OFFSET] + _FLAGS_AT]
    return TableImages(name, version, plan, images, positions, at + index.base, gtids, flags)


def _gtids(index: EventIndex) -> dict[int, str]:
    numbers = np.flatnonzero(np.isin(index.events[:, K.TYPE], _GTIDS)).tolist()
    return {int(index.events[event, K.COMMIT_TS]): _gtid(index.event(event)) for event in numbers}


def _carried(segment: Segment) -> dict[int, str]:
    """commit_ts -> GTID of the transaction the segment starts in: its GTID event is in the context."""
    at, context = 0, bytes(segment.context)
    while segment.flags & tables.SegmentFlag.OPEN_AT_START and at + HEADER_BYTES <= len(context):
        size = int.from_bytes(context[at + 9 : at + 13], "little")
        if context[at + 4] in _GTIDS:
            return {segment.min_commit_ts: _gtid(context[at : at + size])}
        if size < HEADER_BYTES:
            break
        at += size
    return {}


def _gtid(event: bytes) -> str:
    """Layout: mysql-server libs/mysql/binlog/event/control_events.h, Gtid_event; MariaDB
    sql/log_event.h, Gtid_log_event.
    """
    body = event[HEADER_BYTES:]
    if event[4] == EventType.MARIADB_GTID:
        number, domain = int.from_bytes(body[:8], "little"), int.from_bytes(body[8:12], "little")
        return f"{domain}-{int.from_bytes(event[5:9], 'little')}-{number}"
    return f"{uuid.UUID(bytes=body[1:17])}:{int.from_bytes(body[17:25], 'little')}"
