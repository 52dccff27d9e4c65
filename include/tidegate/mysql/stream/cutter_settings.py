"""The settings of a cutter.

In:  nothing; this is a value.
Out: CutterSettings.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.config import DumpMode, Flavour
from tidegate.mysql.stream.event_facts import DdlTables


@dataclass(frozen=True, slots=True)
class CutterSettings:
    """The constants while a stream is cut. ddl_tables names a statement's tables, or raises."""

    source: str
    flavour: Flavour
    dump: DumpMode
    segment_bytes: int
    ddl_tables: DdlTables
    semi_sync: bool = False
