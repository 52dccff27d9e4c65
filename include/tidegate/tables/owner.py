"""The owner of a lake, in the log of bronze/segments: an application id of capture's first commit.

In:  a pipeline's name; the application ids of a log.
Out: the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_OWNER: Final = "tidegate/owner/"


def owner_app_id(pipeline: str) -> str:
    return f"{_OWNER}{pipeline}"


def owner_of(app_ids: Iterable[str]) -> str:
    """The pipeline; "" in the bronze of an older release."""
    return next((name.removeprefix(_OWNER) for name in app_ids if name.startswith(_OWNER)), "")
