"""Events of an index other than rows: the rule by which each is ignored, or why it can't be.

In:  an EventIndex.
Out: Judged: a fate per event, faults with their places, and tables that statements change without
     rows in the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.events import RULE_OF_TYPE, EventFlag, EventType, unread_event
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.index.outcome import UNDOES_EARLIER, rolled_back_too_late
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.statements.judged import changed_tables, is_dml, named_tables, query_at
from tidegate.binlog.transaction_scan import ROWS, SAVEPOINT, STATEMENT, XA_ANSWER
from tidegate.errors import Terminal, UnknownEvent, UnsupportedValue
from tidegate.log_files.stats import IGNORED, QUARANTINED, SKIPPED
from tidegate.remedy import REPORT

_UNKNOWN: Final = SKIPPED
_FATE_OF_TYPE: Final = np.array(
    [IGNORED[RULE_OF_TYPE[code]] if code in RULE_OF_TYPE else _UNKNOWN for code in range(256)], np.int64
)
_INCIDENT: Final = "the source lost events here: read the tables anew"


@dataclass(frozen=True, slots=True)
class JudgedEvents:
    """fates: per event; of rows events still to be said. faults: (event, why). holds: (event, changed tables).
    statements: numbers of events with DDL.
    """

    fates: npt.NDArray[np.int64]
    faults: list[tuple[int, Terminal]]
    holds: list[tuple[int, frozenset[tuple[str, str]]]]
    statements: list[int]


def judge(index: EventIndex) -> JudgedEvents:
    """All events of an index; raises nothing."""
    events = index.events
    bits = events[:, K.BITS]
    fates = _FATE_OF_TYPE[events[:, K.TYPE]]
    queries = (events[:, K.TYPE] == EventType.QUERY) | (events[:, K.TYPE] == EventType.EXECUTE_LOAD_QUERY)
    fates[queries] = IGNORED["transaction frame"]
    fates[queries & ((bits & SAVEPOINT) != 0)] = IGNORED["savepoint"]
    fates[queries & ((bits & XA_ANSWER) != 0)] = IGNORED["xa answer"]
    judged = JudgedEvents(fates, [], [], [])
    for number in np.flatnonzero(bits & UNDOES_EARLIER).tolist():
        judged.faults.append((number, rolled_back_too_late("")))
    for number in np.flatnonzero(bits & STATEMENT).tolist():
        _statement(index, number, judged)
    for number in np.flatnonzero((fates == _UNKNOWN) & ((bits & ROWS) == 0)).tolist():
        if index.header(number).flags & EventFlag.IGNORABLE:
            fates[number] = IGNORED["ignorable"]
            continue
        fates[number] = QUARANTINED
        code = int(events[number, K.TYPE])
        remedy = _INCIDENT if code == EventType.INCIDENT else f"{REPORT}, and the server's version"
        judged.faults.append((number, UnknownEvent(unread_event(code), remedy=remedy)))
    return judged


def _statement(index: EventIndex, number: int, judged: JudgedEvents) -> None:
    try:
        query = query_at(index, number)
    except (UnknownEvent, UnsupportedValue) as error:
        judged.fates[number] = QUARANTINED
        judged.faults.append((number, error))
        return
    judged.fates[number] = IGNORED["ddl"]
    if not is_dml(query.sql):
        judged.statements.append(number)
        return
    touched = changed_tables(query, named_tables(query))
    if touched is not None and not touched:
        judged.fates[number] = IGNORED["table not asked for"]
        return
    judged.fates[number] = QUARANTINED
    fault = UnsupportedValue(
        f"statement instead of rows: {query.sql[:80]!r}",
        remedy="rows of the tables it names are left out from here on; set binlog_format=ROW in every session",
    )
    judged.faults.append((number, fault))
    judged.holds.append((number, frozenset(touched or ())))
