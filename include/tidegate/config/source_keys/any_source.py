"""The settings of every kind of source: the key that tells them apart, and how long the others wait for one.

In:  nothing.
Out: Flavour, AnySourceSection.
"""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum

from pydantic import Field

from tidegate.config.section import Section
from tidegate.config.source_keys.source_traits import SourceTraits
from tidegate.limits import SECONDS_MAX


class Flavour(StrEnum):
    MYSQL = "mysql"
    MARIADB = "mariadb"
    TIDB = "tidb"
    TICDC = "ticdc"


class AnySourceSection(Section):
    """The settings of every kind of source: how long the others wait for it."""

    required: bool = Field(
        False, description="With several sources: no cut goes on without this source, so it can hold all others back"
    )
    max_hold_seconds: float | None = Field(
        None,
        ge=60,
        le=SECONDS_MAX,
        description="With several sources: the cut goes on without this source when its captured log is this far"
        " behind another one. Not for a required source. Empty: apply.stalled_seconds",
    )

    @property
    @abstractmethod
    def traits(self) -> SourceTraits:
        """A kind without them can't be read from a pipeline file."""
