"""The common part of all sections of a pipeline file.

In:  a mapping of the file.
Out: a frozen model that refuses keys it doesn't know.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of a pipeline file: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
