"""A flat folder of small objects, local or in an object store: what a Delta log lives in.

In:  a folder's place.
Out: a LogStore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tidegate.errors import LakeRefused


class Entry(NamedTuple):
    """An object's name, bytes, and when it was made (Unix milliseconds)."""

    name: str
    size: int
    modified_ms: int


class LogStore(Protocol):
    """where: for messages. All may raise LakeUnavailable (may pass) and LakeRefused (a person must help)."""

    where: str

    def get(self, name: str) -> bytes | None:
        """An object's bytes; None when it isn't there."""

    def stat(self, name: str) -> Entry | None:
        """What is known of an object; None when it isn't there."""

    def create(self, name: str, data: bytes) -> bool:
        """Put if absent, durable when it returns. True: this call made it. False: the name is taken."""

    def replace(self, name: str, data: bytes) -> None:
        """Put whatever is there; never torn."""

    def names(self, start: str = "") -> list[Entry]:
        """The folder's own objects with name >= start, sorted."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; one that isn't there is no error."""


def log_store(place: str, options: Mapping[str, str]) -> LogStore:
    """The right store for a local folder (file:// too) or a store's URL. options: as delta-rs names them."""
    raise LakeRefused("no store is known for it", where=place, remedy=f"use another path ({len(options)} options)")
