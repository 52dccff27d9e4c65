"""The end of a log is found, and followed by one look at a time."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.memory_store import MemoryStore
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.stores.store import Entry
from tidegate.delta.table.state import NO_TABLE
from tidegate.delta.tail import LogTail


class Looks(MemoryStore):
    """Counts what is asked of it."""

    looks = 0

    def stat(self, name: str) -> Entry | None:
        self.looks += 1
        return super().stat(name)

    def names(self, start: str = "") -> list[Entry]:
        found = super().names(start)
        self.looks += 1 + len(found)
        return found


def tail_of(store: MemoryStore) -> LogTail:
    return LogTail(DeltaLog("t", store=store))


def grow(store: MemoryStore, *versions: int) -> None:
    for version in versions:
        store.create(commit_name(version), b"{}\n")


def test_a_table_that_comes_and_grows_is_followed() -> None:
    store = MemoryStore()
    tail = tail_of(store)
    assert tail.version() == NO_TABLE
    grow(store, 0)
    assert tail.version() == 0
    grow(store, 1, 2)
    assert tail.version() == tail.version() == 2


def test_a_look_at_an_unchanged_table_is_one_request() -> None:
    store = Looks()
    grow(store, 0, 1, 2)
    tail = tail_of(store)
    tail.version()
    store.looks = 0
    for _ in range(19):
        tail.version()
    assert store.looks <= 20


def test_a_table_that_was_made_anew_is_noticed() -> None:
    store = MemoryStore()
    grow(store, 0, 1, 2)
    tail = tail_of(store)
    assert tail.version() == 2
    store.objects.clear()
    grow(store, 0)
    assert [tail.version() for _ in range(20)][-1] == 0


def test_a_long_log_is_listed_from_its_last_checkpoint_on() -> None:
    store = Looks()
    grow(store, *range(90, 103))
    store.replace("_last_checkpoint", json.dumps({"version": 100, "size": 1}).encode())
    assert tail_of(store).version() == 102
    assert store.looks < 13
    for hint in (b"", b"{", b"[]", b'{"version": 300}'):
        store.replace("_last_checkpoint", hint)
        assert tail_of(store).version() == 102


def test_nothing_heavy_is_imported_for_it() -> None:
    """Airflow's triggerer and scheduler import it."""
    heavy = "[m for m in ('pyarrow', 'numpy', 'deltalake', 'obstore') if m in sys.modules]"
    found = subprocess.run(
        [sys.executable, "-c", f"import sys, tidegate.delta.tail; print({heavy})"], check=True, capture_output=True
    )
    assert found.stdout == b"[]\n"
