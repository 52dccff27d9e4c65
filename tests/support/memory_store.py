"""A log's folder in memory, whose answers get lost: what an object store may do to a commit, and never on demand."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidegate.delta.stores.store import Entry
from tidegate.errors import LakeUnavailable


@dataclass(slots=True)
class MemoryStore:
    """objects: name -> bytes. fate: of each create, asked before it: "fine", "lost" (made, but the answer is an error),
    "failed" (not made), "late" (an error, made at the next look), "twice" (made, then "taken": the client's own retry).
    clock_ms: how old the last object is. marked: it has marks, as object stores have, and its clock stands still.
    """

    where: str = "memory"
    objects: dict[str, bytes] = field(default_factory=dict)
    fate: Callable[[], str] = lambda: "fine"
    clock_ms: int = 0
    marked: bool = False
    _made: dict[str, int] = field(default_factory=dict)
    _late: list[tuple[str, bytes]] = field(default_factory=list)
    _folders: dict[str, MemoryStore] = field(default_factory=dict)

    def folder(self, name: str) -> MemoryStore:
        return self._folders.setdefault(name, MemoryStore(f"{self.where}/{name}"))

    def get(self, name: str) -> bytes | None:
        found = self.objects.get(name)
        self._arrive()
        return found

    def stat(self, name: str) -> Entry | None:
        found = self.objects.get(name)
        return None if found is None else Entry(name, len(found), self._made[name], self._mark(found))

    def create(self, name: str, data: bytes) -> bool:
        fate = self.fate()
        if fate == "failed":
            raise LakeUnavailable("no answer", where=self.where)
        if fate == "late":
            self._late.append((name, data))
            raise LakeUnavailable("no answer", where=self.where)
        made = self._put(name, data)
        if made and fate == "lost":
            raise LakeUnavailable("no answer", where=self.where)
        return made and fate != "twice"

    def make(self, name: str, data: bytes) -> tuple[bool, str]:
        made = self.create(name, data)
        return made, self._mark(data) if made else ""

    def replace(self, name: str, data: bytes) -> None:
        self.objects.pop(name, None)
        self._put(name, data)

    def names(self, start: str = "") -> list[Entry]:
        found = (self.stat(name) for name in sorted(self.objects) if name >= start)
        return [entry for entry in found if entry is not None]

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self.objects.pop(name, None)

    def _put(self, name: str, data: bytes) -> bool:
        if name in self.objects:
            return False
        self.clock_ms += not self.marked
        self.objects[name], self._made[name] = data, self.clock_ms
        return True

    def _mark(self, data: bytes) -> str:
        return hashlib.sha256(data).hexdigest() if self.marked else ""

    def _arrive(self) -> None:
        for name, data in self._late:
            self._put(name, data)
        self._late.clear()


def faults(seed: int, *, share: float) -> Callable[[], str]:
    """Fates by a seed: this share of all creates doesn't simply work."""
    chance = random.Random(seed)
    return lambda: chance.choice(("lost", "failed", "late", "twice")) if chance.random() < share else "fine"
