"""The settings of a cutter.

In:  nothing; this is a value.
Out: CutterSettings.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.binlog.format.events import read_header
from tidegate.config import DumpMode, Flavour
from tidegate.mysql.stream.event_facts import DdlTables
from tidegate.tables import SegmentFlag


@dataclass(frozen=True, slots=True)
class CutterSettings:
    """The constants while a stream is cut. ddl_tables names a statement's tables, or raises. utc_since: as in
    SourceFacts.
    """

    source: str
    flavour: Flavour
    dump: DumpMode
    segment_bytes: int
    ddl_tables: DdlTables
    semi_sync: bool = False
    utc_since: int | None = None

    def of_file(self, format_description: bytes) -> SegmentFlag:
        """The flags of all segments of a binlog file. Each start of a server begins a new file."""
        if self.utc_since is None or not format_description:
            return SegmentFlag(0)
        begun = read_header(format_description).timestamp
        return SegmentFlag.SYSTEM_IS_UTC if begun > self.utc_since else SegmentFlag(0)
