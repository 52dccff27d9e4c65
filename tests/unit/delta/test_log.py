"""DeltaLog: commits at exactly the version that was read, whatever the store answers and whoever else commits."""

from __future__ import annotations

import itertools
import time
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.memory_store import MemoryStore, faults
from tidegate.delta import log as log_module
from tidegate.delta.commit_file import read_commits
from tidegate.delta.exchange import exchange
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.properties import set_properties
from tidegate.delta.stores.store import Entry
from tidegate.delta.table.actions import add, clustering, commit_info, domain, lines, metadata, moved, parsed, protocol
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict, CommitOverwritten, DeltaUnsupported, LakeRefused, LakeUnavailable
from tidegate.limits import LOG_READ_THREADS_MAX

SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


def file(name: str, **more: Any) -> dict[str, Any]:
    return {"path": name, "size": 1, "partitionValues": {}, "modificationTime": 1, **more}


def made(store: MemoryStore, *features: str, **configuration: str) -> DeltaLog:
    """A log of an empty table."""
    log = DeltaLog("t", store=store)
    told = {name.replace("_", "."): value for name, value in configuration.items()}
    log.commit(log.state(), Change([protocol(features), metadata(SCHEMA, told)], "CREATE TABLE"))
    return log


class Slow(MemoryStore):
    """Each answer takes its time; most: how many were waited for at once."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = self.most = self.listings = 0

    def get(self, name: str) -> bytes | None:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        time.sleep(0.02)
        self.waiting -= 1
        return super().get(name)

    def names(self, start: str = "") -> list[Entry]:
        self.listings += 1
        return super().names(start)


def test_nothing_but_a_new_table_is_committed_where_there_is_none() -> None:
    store = MemoryStore()
    log = DeltaLog("t", store=store)
    assert not set_properties(log, {"delta.appendOnly": "true"}).created
    with pytest.raises(CommitConflict, match="no table any more"):
        exchange(log, [], [], operation="touch")
    with pytest.raises(LakeRefused, match="no table here"):
        log.commit(log.state(), Change([add(file("a"), data_change=True)], "WRITE"))
    assert not store.names()


def test_a_long_tail_of_a_log_is_read_some_commits_at_a_time_and_a_short_one_without_a_listing() -> None:
    store = Slow()
    log = made(store)
    for number in range(40):
        appended(log, f"f{number}")
    assert store.most == 1
    cold = DeltaLog("t", store=store)
    assert cold.state() == log.state()
    assert 8 <= store.most <= LOG_READ_THREADS_MAX
    store.most = store.listings = 0
    appended(log, "one more")
    assert cold.state().version == 41
    assert (store.most, store.listings) == (1, 0)
    early = cold.state_at(7)
    assert early is not None
    assert [one.path for one in early.files] == [f"f{number}" for number in range(7)]


def test_a_commit_that_is_gone_ends_what_is_read_ahead() -> None:
    store = Slow()
    log = made(store)
    for number in range(20):
        appended(log, f"f{number}")
    del store.objects[commit_name(12)]
    assert len(list(read_commits(store, 0))) == 12
    with pytest.raises(LakeRefused, match=r"goes on at 0+13.json after version 11"):
        DeltaLog("t", store=store).state()


def adding(name: str, **transactions: int) -> Change:
    return Change([add(file(name), data_change=True)], "WRITE", transactions)


def appended(log: DeltaLog, name: str) -> TableState:
    return log.update(lambda _: adding(name))


def paths(state: TableState) -> list[str]:
    return sorted(one.path for one in state.files)


def test_a_table_that_is_not_there_is_made_once() -> None:
    store = MemoryStore()
    first, second = DeltaLog("t", store=store), DeltaLog("t", store=store)
    nothing = first.state()
    assert not nothing.created
    assert first.commit(nothing, Change([protocol(()), metadata(SCHEMA, {})], "CREATE TABLE")).version == 0
    with pytest.raises(CommitConflict, match="CREATE TABLE changed the table"):
        second.commit(TableState("t"), Change([protocol(()), metadata(SCHEMA, {})], "CREATE TABLE"))
    assert second.state().table_id == first.state().table_id


def test_what_is_known_is_carried_forward_by_others_commits() -> None:
    store = MemoryStore()
    log, other = made(store), DeltaLog("t", store=store)
    assert other.state().version == 0
    appended(log, "a")
    state = log.update(lambda read: Change(moved(read.files, [file("b")], data_change=False), "OPTIMIZE", {"us": 7}))
    assert (state.version, paths(state), state.transaction("us"), state.transaction("them")) == (2, ["b"], 7, 0)
    assert other.state() == state == log.state_at(2)
    before = log.state_at(1)
    assert before is not None
    assert paths(before) == ["a"]
    assert log.state_at(3) is None


def test_who_comes_second_at_a_version_writes_nothing() -> None:
    store = MemoryStore()
    log, other = made(store), DeltaLog("t", store=store)
    read = log.state()
    appended(other, "theirs")
    with pytest.raises(CommitConflict, match="WRITE changed the table after version 0"):
        log.commit(read, adding("ours"))
    assert paths(log.state()) == ["theirs"]
    assert paths(appended(log, "ours")) == ["ours", "theirs"]


def test_an_unchanged_table_is_not_read_again() -> None:
    store = MemoryStore()
    log = made(store)
    assert log.state() is log.state()


def test_a_table_that_was_made_again_is_another_one() -> None:
    store = MemoryStore()
    log = made(store)
    appended(log, "old")
    known = log.state()
    store.objects.clear()
    again = made(store)
    appended(again, "new")
    with pytest.raises(CommitConflict, match="no longer in its log"):
        log.commit(known, adding("ours"))
    assert paths(log.state()) == ["new"]
    assert log.state().table_id == again.state().table_id


@pytest.mark.parametrize("fate", ["lost", "twice"])
def test_a_commit_whose_answer_was_lost_is_made(fate: str) -> None:
    store = MemoryStore()
    log = made(store)
    store.fate = lambda: fate
    assert log.commit(log.state(), adding("a")).version == 1
    assert paths(log.state()) == ["a"]


def test_a_commit_that_failed_says_so_and_may_be_tried_again() -> None:
    store = MemoryStore()
    log = made(store)
    fates = iter(["failed", "fine"])
    store.fate = lambda: next(fates)
    with pytest.raises(LakeUnavailable, match="no answer"):
        log.commit(log.state(), adding("a"))
    assert paths(log.state()) == []
    assert paths(appended(log, "a")) == ["a"]


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), writers=st.integers(1, 4))
def test_each_of_many_updates_is_made_exactly_once(seed: int, writers: int) -> None:
    """Appends without a transaction version: nothing but the attempt's id tells one from another."""
    store = MemoryStore()
    logs = [made(store)] + [DeltaLog("t", store=store) for _ in range(writers - 1)]
    store.fate = faults(seed, share=0.4)
    tries = itertools.count()
    for number in range(12):
        with patch.object(log_module, "COMMIT_BACKOFF_SECONDS", 0.0):
            logs[number % writers].update(lambda _, n=number: adding(f"{n}.{next(tries)}"), attempts=60)
    state = DeltaLog("t", store=store).state()
    assert sorted(int(path.split(".")[0]) for path in paths(state)) == list(range(12))
    assert state.version == 12
    assert sorted(store.objects) == [commit_name(version) for version in range(13)]


def test_a_log_without_its_beginning_is_refused() -> None:
    store = MemoryStore()
    appended(made(store), "a")
    store.delete([commit_name(0)])
    with pytest.raises(LakeRefused, match="begins at"):
        DeltaLog("t", store=store).state()


def test_a_commit_that_is_no_json_is_refused_by_its_version() -> None:
    store = MemoryStore()
    made(store)
    store.replace(commit_name(1), b"\x00\x00")
    with pytest.raises(LakeRefused, match="version 1"):
        DeltaLog("t", store=store).state()


def test_in_commit_timestamps_only_grow() -> None:
    store = MemoryStore()
    log = made(store, "inCommitTimestamp", delta_enableInCommitTimestamps="true")
    late = 10**14
    info = {"commitInfo": {"inCommitTimestamp": late, "operation": "WRITE"}}
    store.replace(commit_name(1), lines([info, add(file("a"), data_change=True)]))
    appended(log, "b")
    first = parsed(store.objects[commit_name(2)])[0]
    assert first["commitInfo"]["inCommitTimestamp"] == late + 1


def test_domains_are_kept_and_removed() -> None:
    store = MemoryStore()
    log = made(store, "domainMetadata", "clustering")
    state = log.update(lambda _: Change([clustering(["a b"])], "CLUSTER BY"))
    assert state.domains == {"delta.clustering": '{"clusteringColumns":[["a b"]],"domainName":"delta.clustering"}'}
    state = log.update(lambda _: Change([domain("delta.clustering", "", removed=True)], "CLUSTER BY"))
    assert state.domains == {}


@pytest.mark.parametrize("feature", ["somethingNew", "icebergCompatV2", "catalogManaged"])
def test_what_we_do_not_know_exactly_is_refused(feature: str) -> None:
    store = MemoryStore()
    log = made(store)
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [feature]}}]
    with pytest.raises(DeltaUnsupported, match=feature):
        log.commit(log.state(), Change(actions, "ALTER"))
    assert log.state().version == 0


@pytest.mark.parametrize(
    ("switch", "adds"),
    [("delta_enableChangeDataFeed", [file("c")]), ("delta_appendOnly", [file("c")]), ("delta_appendOnly", [])],
)
def test_rows_are_not_taken_out_where_the_table_forbids_it(switch: str, adds: list[Any]) -> None:
    log = made(MemoryStore(), **{switch: "true"})
    state = appended(log, "a")
    with pytest.raises(DeltaUnsupported):
        log.commit(state, Change(moved(state.files, adds, data_change=True), "DELETE"))
    assert paths(log.commit(state, Change(moved(state.files, [file("b")], data_change=False), "OPTIMIZE"))) == ["b"]


@pytest.mark.parametrize("marked", [False, True])
def test_our_commit_that_another_writer_overwrote_is_never_passed_over(marked: bool) -> None:
    """Delta's own stores look whether a version is free, and then write it over whatever came in between."""
    store = MemoryStore(marked=marked)
    log = made(store)
    appended(log, "ours")
    log.check_kept()
    theirs = lines([commit_info("OPTIMIZE", "theirs"), add(file("theirs"), data_change=True)])
    store.replace(commit_name(1), theirs)
    for look in (log.check_kept, log.state, log.state):
        with pytest.raises(CommitOverwritten, match=r"version 1.*overwritten by OPTIMIZE"):
            look()
    log.accept_loss()
    assert paths(log.state()) == ["theirs"]
    assert paths(appended(log, "again")) == ["again", "theirs"]
    log.check_kept()


def theirs() -> bytes:
    return lines([commit_info("OPTIMIZE", "theirs"), add(file("theirs"), data_change=True)])


class Overwriting(MemoryStore):
    """A writer of Delta's own that looked before our commit came, and writes its own right behind it."""

    def create(self, name: str, data: bytes) -> bool:
        made = super().create(name, data)
        if name == commit_name(1):
            self.replace(name, theirs())
        return made


@pytest.mark.parametrize("marked", [False, True])
def test_a_commit_that_was_overwritten_at_once_is_told_too(marked: bool) -> None:
    store = Overwriting(marked=marked)
    log = made(store)
    appended(log, "ours")
    with pytest.raises(CommitOverwritten, match="version 1"):
        log.check_kept()


@pytest.mark.parametrize("marked", [False, True])
def test_an_overwritten_commit_is_told_by_the_next_commit_and_after_an_error(marked: bool) -> None:
    class Dark(MemoryStore):
        failing = 0

        def get(self, name: str) -> bytes | None:
            if name == commit_name(1) and self.failing:
                self.failing -= 1
                raise LakeUnavailable("no answer", where=self.where)
            return super().get(name)

    store = Dark(marked=marked)
    log = made(store)
    state = appended(log, "ours")
    store.replace(commit_name(1), theirs())
    with pytest.raises(CommitConflict):
        log.commit(state, adding("more"))
    store.failing = 1
    with pytest.raises(LakeUnavailable):
        log.state()
    with pytest.raises(CommitOverwritten, match="version 1"):
        appended(log, "more")


def test_what_another_writer_overwrites_while_it_is_read_is_read_again() -> None:
    class Raced(MemoryStore):
        racing = False

        def get(self, name: str) -> bytes | None:
            found = super().get(name)
            if self.racing and name == commit_name(1):
                self.racing = False
                self.replace(name, theirs())
            return found

    store = Raced()
    log, other = made(store), DeltaLog("t", store=store)
    appended(log, "first")
    store.racing = True
    read = other.state()
    with pytest.raises(CommitConflict):
        other.commit(read, adding("ours"))
    assert paths(other.state()) == ["theirs"]


def test_of_two_tries_of_one_change_the_state_is_that_of_the_one_that_arrived() -> None:
    """What is decided again may have other files in it, or another table's id."""

    class Later(MemoryStore):
        def _arrive(self) -> None:
            """Not at the next look, but before the next try."""

        def create(self, name: str, data: bytes) -> bool:
            super()._arrive()
            return super().create(name, data)

    store = Later()
    log, names, fates = made(store), iter(["first", "second"]), iter(["late", "fine"])
    store.fate = lambda: next(fates)
    state = log.update(lambda _: adding(next(names)))
    assert paths(state) == paths(log.state()) == paths(DeltaLog("t", store=store).state()) == ["first"]


def test_what_was_read_of_a_table_that_was_dropped_since_is_never_committed_to_its_successor() -> None:
    store = MemoryStore()
    log = made(store)
    read = appended(log, "old")
    store.objects.clear()
    appended(made(store), "new")
    log.state()  # by another thread
    with pytest.raises(CommitConflict, match="no longer in its log"):
        log.commit(read, adding("ours"))


def test_a_log_with_a_gap_is_refused_and_not_a_shorter_one() -> None:
    store = MemoryStore()
    log = made(store)
    for name in "abc":
        appended(log, name)
    store.delete([commit_name(2)])
    with pytest.raises(LakeRefused, match=r"goes on at 0+3.json after version 1"):
        DeltaLog("t", store=store).state()
