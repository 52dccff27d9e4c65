"""What a log asks of its store, call by call: each is money, and tens of milliseconds."""

from __future__ import annotations

import pytest

from tests.kit.s3 import S3
from tests.support.memory_store import MemoryStore
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.store import Entry
from tidegate.delta.table.actions import metadata, protocol


class Asked(MemoryStore):
    """Names of what was read or looked at; one that is written gets a minus in front."""

    def __init__(self, *, marked: bool) -> None:
        super().__init__(marked=marked)
        self.names_asked: list[str] = []

    def taken(self) -> list[str]:
        asked, self.names_asked = self.names_asked, []
        return asked

    def get(self, name: str) -> bytes | None:
        self.names_asked.append(name)
        return super().get(name)

    def stat(self, name: str) -> Entry | None:
        self.names_asked.append(name)
        return super().stat(name)

    def create(self, name: str, data: bytes) -> bool:
        self.names_asked.append(f"-{name}")
        return super().create(name, data)


@pytest.mark.parametrize("marked", [False, True])
def test_a_commit_is_read_back_only_where_the_store_does_not_say_what_it_holds(marked: bool) -> None:
    store = Asked(marked=marked)
    log = DeltaLog("t", store=store)
    schema = {"type": "struct", "fields": []}
    log.commit(log.state(), Change([protocol([]), metadata(schema, {})], "CREATE TABLE"))
    store.taken()
    state = log.state()
    assert store.taken() == [commit_name(0), commit_name(1)], "is it still there, and is there a next one?"
    log.commit(state, Change([], "WRITE", {"app": 1}))
    back = [] if marked else [commit_name(1)] * 2
    assert store.taken() == [commit_name(0), f"-{commit_name(1)}", *back]
    assert log.state().version == 1
    assert store.taken() == [commit_name(1), commit_name(2)]


def test_the_mark_of_what_was_made_is_that_of_a_look_at_it(s3: S3) -> None:
    store = log_store(s3.folder(), s3.options)
    made, mark = store.make("0.json", b"first")
    seen = store.stat("0.json")
    assert made
    assert seen is not None
    assert Entry("0.json", 5, 0, mark).is_same(seen)
    assert store.names() == [seen]
    assert store.make("0.json", b"other") == (False, "")
    store.replace("0.json", b"other")
    assert not seen.is_same(store.stat("0.json"))
    store.delete(["0.json"])
    assert not seen.is_same(store.stat("0.json"))
