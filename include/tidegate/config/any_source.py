"""What every kind of source has: the key by which they are told apart, and for how long the others wait for one.

In:  nothing.
Out: Flavour, AnySourceSection.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from tidegate.config.section import Section


class Flavour(StrEnum):
    MYSQL = "mysql"
    MARIADB = "mariadb"
    TIDB = "tidb"
    TICDC = "ticdc"


class AnySourceSection(Section):
    """What every kind of source has: for how long the others wait for it."""

    required: bool = Field(
        False, description="Of several sources: no cut goes on without it, so that each one holds it as the others"
    )
    max_hold_seconds: float | None = Field(
        None,
        ge=60,
        description="Captured so much less far than another, a source that isn't required is left behind;"
        " apply.stalled_seconds when empty",
    )
