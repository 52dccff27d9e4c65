"""The section `xa` of a pipeline file: prepared transactions that nobody answers.

In:  the section, as pydantic gets it.
Out: Xa, frozen.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from tidegate import limits
from tidegate.config.section import Section


class Orphans(StrEnum):
    PARK = "park"
    ASK = "ask"
    ROLLBACK = "rollback"
    COMMIT = "commit"


class Xa(Section):
    """What becomes of prepared transactions whose answer never comes."""

    orphan_timeout_seconds: float = Field(
        limits.ORPHAN_TIMEOUT_SECONDS_DEFAULT,
        ge=1,
        description="The source is asked about what is prepared this often; a prepared transaction that is older, has no"
        " answer in the log and isn't prepared at the source any more is an orphan",
    )
    orphans: Orphans = Field(
        Orphans.PARK,
        description="Rows of an orphan. park: its tables wait until a person decides (`tidegate prewrites`); ask: the same,"
        " and it is asked in Airflow (Required Actions); rollback: they are left out; commit: they are applied. Of TiDB:"
        " what its garbage collection has passed; there all tables wait",
    )
