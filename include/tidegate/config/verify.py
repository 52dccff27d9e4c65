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
    rows_per_second: int = Field(0, ge=0, description="Most rows that verify has hashed in a second; 0: no bound")
    memory_bytes: int = Field(
        limits.VERIFY_MEMORY_BYTES_DEFAULT, ge=256 << 20, description="Memory of DuckDB; more goes to temporary files"
    )
    rounds: int = Field(
        limits.VERIFY_SETTLE_ATTEMPTS_MAX,
        ge=1,
        le=1000,
        description="How often a key that differs and changes meanwhile is read again; then it is unsettled",
    )
    each_table_hours: int = Field(
        0, ge=0, description="The DAG of verify compares each table once in so many hours, by itself; 0: by hand only"
    )
