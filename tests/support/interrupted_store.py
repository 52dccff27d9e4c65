"""A LogStore in memory, in which any call can fail, be late, or be interrupted.

In:  meanwhile(): what happens around a call; fault(): what happens to it.
Out: Memory; how often each of its methods was called; a clock that stands still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tidegate.delta.stores.store import Entry
from tidegate.errors import LakeUnavailable


class Memory:
    """fault: "" or "unreachable"; of create also "lost" (it acts, without an answer), "again" (the client asks twice),
    "late" (it will act when the test says so).
    """

    where = "memory"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.calls: Counter[str] = Counter()
        self.now = 1000.0  # seconds, of a clock that the test moves
        self.late: list[tuple[str, bytes]] = []  # requests that nobody waits for any more
        self.meanwhile: Callable[[], None] = lambda: None
        self.fault: Callable[[], str] = lambda: ""

    def folder(self, name: str) -> Memory:
        raise NotImplementedError

    def put(self, name: str, data: bytes) -> bool:
        taken = name in self.objects
        self.objects.setdefault(name, data)
        return not taken

    def get(self, name: str) -> bytes | None:
        self.calls["get"] += 1
        self.meanwhile()
        self._may_fail()
        found = self.objects.get(name)
        self.meanwhile()
        return found

    def stat(self, name: str) -> Entry | None:
        raise NotImplementedError

    def create(self, name: str, data: bytes) -> bool:
        self.calls["create"] += 1
        self.meanwhile()
        fault = self.fault()
        if fault == "unreachable":
            raise LakeUnavailable("no answer")
        if fault == "late":
            self.late.append((name, data))
            raise LakeUnavailable("no answer")
        made = self.put(name, data)
        self.meanwhile()
        if fault == "lost":
            raise LakeUnavailable("no answer")
        if fault == "again":  # the store's client asked again after a lost answer
            made = self.put(name, data)
        return made

    def make(self, name: str, data: bytes) -> tuple[bool, str]:
        return self.create(name, data), ""

    def replace(self, name: str, data: bytes) -> None:
        raise NotImplementedError

    def names(self, start: str = "") -> list[Entry]:
        self.calls["names"] += 1
        self.meanwhile()
        self._may_fail()
        found = [Entry(name, len(data), 0) for name, data in sorted(self.objects.items()) if name >= start]
        self.meanwhile()
        return found

    def delete(self, names: Sequence[str]) -> None:
        self.calls["delete"] += 1
        self._may_fail()
        for name in names:
            self.objects.pop(name, None)
            self.meanwhile()

    def _may_fail(self) -> None:
        if self.fault():
            raise LakeUnavailable("no answer")
