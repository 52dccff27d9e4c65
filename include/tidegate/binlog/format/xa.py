"""XA branches: one transaction of the log prepares them, another answers them, perhaps in a later
file.

In:  XA_PREPARE events, and XA COMMIT / XA ROLLBACK statements.
Out: the branch's name in the servers' own notation, X'6731',X'6231',7, which both servers write
     alike.

Layout (mysql-server libs/mysql/binlog/event/control_events.h, XA_prepare_event; MariaDB
sql/log_event.h): one_phase u8, format u32, length of gtrid u32, length of bqual u32, gtrid, bqual.
MySQL's format number has 64 bits: its event has only the lower half, its answer and XA RECOVER have
all, so a name has the lower half. Two branches never differ only in the rest, since MySQL
distinguishes branches by gtrid and bqual alone (sql/xa.h, XID::key).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate.binlog.format.events import HEADER_BYTES, read_header
from tidegate.columnar.cursor import ByteCursor

_ANSWER: Final = re.compile(
    r"\s*XA\s+(COMMIT|ROLLBACK)\s+X'([0-9a-f]*)'\s*,\s*X'([0-9a-f]*)'\s*,\s*(\d+)\s*(ONE\s+PHASE\s*)?", re.IGNORECASE
)
_FORMAT_BITS: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Prepare:
    """name: of the branch. one_phase: for XA COMMIT ... ONE PHASE, which prepares and commits at
    once.
    """

    name: str
    one_phase: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """The place of a prepared branch, from its first event to the end of its XA_PREPARE."""

    name: str
    path: Path
    start: int
    end: int
    description: bytes


def read_prepare(event: bytes, checksum_bytes: int) -> Prepare:
    """The Prepare in a whole XA_PREPARE event. Raises DecodeError."""
    cursor = ByteCursor(event, HEADER_BYTES, read_header(event).size - checksum_bytes)
    one_phase = cursor.unsigned(1) != 0
    form, gtrid_bytes, bqual_bytes = cursor.unsigned(4), cursor.unsigned(4), cursor.unsigned(4)
    return Prepare(branch_name(cursor.take(gtrid_bytes).hex(), cursor.take(bqual_bytes).hex(), form), one_phase)


def read_answer(sql: str) -> tuple[str, bool] | None:
    """(name of the branch, whether it is committed) for an XA COMMIT or XA ROLLBACK; None for
    another statement.
    """
    match = _ANSWER.fullmatch(sql)
    if match is None:
        return None
    return branch_name(match[2].lower(), match[3].lower(), int(match[4])), match[1].upper() == "COMMIT"


def branch_name(gtrid: str, bqual: str, form: int) -> str:
    """gtrid, bqual: in lower-case hexadecimal."""
    return f"X'{gtrid}',X'{bqual}',{form & _FORMAT_BITS}"
