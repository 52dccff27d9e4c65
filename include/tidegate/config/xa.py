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
    """The treatment of prepared transactions without an answer."""

    orphan_timeout_seconds: float = Field(
        limits.ORPHAN_TIMEOUT_SECONDS_DEFAULT,
        ge=1,
        le=limits.SECONDS_MAX,
        description="How often the source is asked for its prepared transactions. A transaction is an orphan if it is"
        " older than this, has no answer in the log, and isn't prepared at the source any more",
    )
    orphans: Orphans = Field(
        Orphans.PARK,
        description="What happens with the rows of an orphan. park: its tables wait until a person decides (`tidegate"
        " prewrites`). ask: the same, with a question in Airflow (Required Actions). rollback: leave them"
        " out. commit: apply them. In TiDB an orphan is a transaction that garbage collection has passed,"
        " and all tables wait",
    )
