"""The names of a changefeed's files.

In:  a name in a folder.
Out: the name's content: the number of a data file and its writer; the version of a schema file; a
     folder's date.

    metadata                                               {"checkpoint-ts": ...}
    <database>/meta/schema_<version>_<checksum>.json       DDL of a database
    <database>/<table>/meta/schema_<version>_<checksum>.json
    <database>/<table>/<version>/[<partition>/][<date>/]CDC[_<writer>_]<number>.json or .csv
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final, NamedTuple

METADATA: Final = "metadata"
META: Final = "meta"  # also the folder with the name of the last data file, which isn't needed
_DATA: Final = re.compile(r"CDC(?:_(.+)_)?(\d+)\.(?:json|csv)")
_SCHEMA: Final = re.compile(r"schema_(\d+)_\d{10}\.json")
_DATE: Final = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")


class DataName(NamedTuple):
    """writer: "" unless several writers share a folder, each with its own numbers. width: digits of the number."""

    writer: str
    number: int
    width: int

    @property
    def last_of_width(self) -> bool:
        """Whether the next name has a digit more, and so comes before this one in a store's order."""
        return len(str(self.number + 1)) > self.width


def data_name(name: str) -> DataName | None:
    match = _DATA.fullmatch(name)
    return DataName(match[1] or "", int(match[2]), len(match[2])) if match else None


def schema_version(name: str) -> int | None:
    """The commit_ts of its DDL, or of the changefeed's beginning; None for another file."""
    match = _SCHEMA.fullmatch(name)
    return int(match[1]) if match else None


def has_partition(path: str) -> bool:
    """Whether a data file lies in the folder of a partition. (A folder of a year alone may be
    either: it counts as one.)
    """
    return any(part.isdigit() for part in path.split("/")[3:-1])


def date_end(name: str) -> date | None:
    """The last day that a folder with this name may stand for, in the writer's time zone; None when it is no date."""
    match = _DATE.fullmatch(name)
    if match is None:
        return None
    year, month = int(match[1]), int(match[2])
    try:
        return date(year, month, int(match[3])) if match[3] else date(year + month // 12, month % 12 + 1, 1)
    except ValueError:
        return None
