"""The section `verify` of a pipeline file: how silver is compared with its sources, and how much that may take.

In:  the section, as pydantic gets it.
Out: a Verify, frozen.
"""

from __future__ import annotations

from pydantic import Field

from tidegate import limits
from tidegate.config.section import Section


class Verify(Section):
    """How `tidegate verify` reads its sources, and how often each table is due."""

    chunk_rows: int = Field(
        limits.VERIFY_CHUNK_ROWS_DEFAULT, ge=100, le=1_000_000, description="Rows that one SELECT of verify hashes"
    )
    rows_per_second: int = Field(0, ge=0, description="Most rows that the source hashes per second. 0: no bound")
    memory_bytes: int = Field(
        limits.VERIFY_MEMORY_BYTES_DEFAULT,
        ge=256 << 20,
        description="Memory of DuckDB. The rest goes to temporary files",
    )
    rounds: int = Field(
        limits.VERIFY_SETTLE_ATTEMPTS_MAX,
        ge=1,
        le=1000,
        description="How often verify reads a different key again if it changes meanwhile. After that the key is"
        " unsettled",
    )
    each_table_hours: int | None = Field(
        None,
        ge=0,
        le=24 * limits.DAYS_MAX,
        description="The verify DAG compares each table once in this many hours, by itself. Empty: only by hand, and"
        " the alert verification_old begins after two days without one. 0: only by hand, without this alert",
    )
