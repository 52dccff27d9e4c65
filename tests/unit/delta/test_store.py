"""The store of commits and leases: a name is made once, whole, whoever else tries and whoever is killed."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kit.s3 import S3, moto
from tests.support.seeds import many
from tidegate.delta.object_names import commit_name
from tidegate.delta.stores import object_store
from tidegate.delta.stores import store as module
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.object_store import ObjectStore
from tidegate.delta.stores.store import LocalStore, LogStore, remove_unfinished
from tidegate.errors import LakeRefused, LakeUnavailable

PROCESSES = 4
# Its processes try each name with content of their own, let go at one moment: on a disk before the very call that makes
# the name, so that what one has looked at before is old for all. It says which of them made what.
RACER = """
import json, multiprocessing, os, sys
from tidegate.delta.stores.by_place import log_store

place, options, names, processes = json.loads(sys.argv[1])
forks = multiprocessing.get_context("fork")
start = forks.Barrier(processes)
local = "://" not in place

def together(call):
    def waited(*arguments, **named):
        start.wait(300)
        return call(*arguments, **named)
    return waited

if local:
    os.link, os.rename, os.replace = together(os.link), together(os.rename), together(os.replace)

def race(me, pipe):
    store, made = log_store(place, options), []
    for number in range(names):
        if not local:
            start.wait(300)
        if store.create(f"{number:020d}.json", f"{me}:{number}:".encode() * 300):
            made.append(number)
    pipe.send(made)

pipes = [forks.Pipe(duplex=False) for _ in range(processes)]
racers = [forks.Process(target=race, args=(me, pipe)) for me, (_, pipe) in enumerate(pipes)]
for racer in racers:
    racer.start()
for _, pipe in pipes:
    pipe.close()
print(json.dumps([pipe.recv() for pipe, _ in pipes]))
"""
# One object after the other from a number on, and a line for each that is made.
MAKER = """
import sys
from tidegate.delta.stores.by_place import log_store
store = log_store(sys.argv[1], {})
for number in range(int(sys.argv[2]), 1 << 60):
    store.create(f"{number:020d}.json", b"%d;" % number * 5000)
    print(number, flush=True)
"""


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LogStore:
    """An empty folder of each kind."""
    if request.param == "local":
        return log_store(f"file://{tmp_path}/a/table/_delta_log", {})
    s3: S3 = request.getfixturevalue("s3")
    return log_store(s3.folder() + "/table/_delta_log", s3.options)


def test_what_is_not_there_is_none_and_no_error(store: LogStore) -> None:
    assert store.get("a") is None
    assert store.stat("a") is None
    assert store.names() == store.names("00000") == []
    store.delete(["a", "b"])
    store.delete(["a"])
    store.delete([])


def test_a_name_is_made_once_and_keeps_what_it_got_first(store: LogStore) -> None:
    before = time.time() * 1000
    assert store.create("0.json", b"first")
    assert not store.create("0.json", b"second")
    assert store.get("0.json") == b"first"
    found = store.stat("0.json")
    assert found is not None
    assert (found.name, found.size) == ("0.json", 5)
    assert abs(found.modified_ms - before) < 60_000
    assert store.create("empty", b"")
    assert store.get("empty") == b""


def test_replace_makes_and_overwrites(store: LogStore) -> None:
    store.replace("_last_checkpoint", b"one")
    store.replace("_last_checkpoint", b"two" * 100_000)
    assert store.get("_last_checkpoint") == b"two" * 100_000
    assert [entry.name for entry in store.names()] == ["_last_checkpoint"]


def test_names_are_sorted_from_the_start_on_without_folders_and_hidden_files(store: LogStore, s3: S3) -> None:
    names = [f"{number:020d}.json" for number in (3, 9, 10, 11, 20, 100)] + ["_last_checkpoint"]
    for name in reversed(names):
        store.create(name, b"1")
    inner = log_store(store.where + "/_sidecars", s3.options)
    inner.create("x.parquet", b"1")
    if isinstance(store, LocalStore):
        Path(store.where, ".hidden").touch()

    def listed(start: str = "") -> list[str]:
        return [entry.name for entry in store.names(start)]

    assert listed() == names
    for start in (*names, "0", f"{10:020d}", f"{12:020d}", "_", "z"):
        assert listed(start) == [name for name in names if name >= start], start
    assert [entry.name for entry in inner.names()] == ["x.parquet"]
    store.delete([names[0], "missing", names[2]])
    assert listed() == [names[1], *names[3:]]


def test_a_long_folder_is_listed_whole(store: LogStore) -> None:
    """More than one page of S3's answers."""
    if isinstance(store, ObjectStore):
        from obstore import put

        for number in range(1005):
            put(store._client, f"{store._path}{number:020d}.json", b"1")
    else:
        Path(store.where).mkdir(parents=True)
        for number in range(1005):
            Path(store.where, f"{number:020d}.json").touch()
    assert len(store.names()) == 1005
    assert len(store.names(f"{2:020d}.json")) == 1003


@pytest.mark.parametrize(
    ("kind", "names"), [("local", many(200, 5000)), pytest.param("s3", many(100, 1000), marks=pytest.mark.server)]
)
def test_of_four_processes_that_try_each_name_at_once_one_makes_it_whole(
    kind: str, names: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place, options = str(tmp_path / "log"), {}
    if kind == "s3":
        s3: S3 = request.getfixturevalue("s3")
        place, options = s3.folder(), s3.options
    argv = [sys.executable, "-c", RACER, json.dumps([place, options, names, PROCESSES])]
    done = subprocess.run(argv, stdout=subprocess.PIPE, timeout=600, check=True)
    winners: dict[int, int] = {}
    for me, made in enumerate(json.loads(done.stdout)):
        assert not winners.keys() & set(made), "two made one name"
        winners |= dict.fromkeys(made, me)
    assert sorted(winners) == list(range(names))
    found = log_store(place, options)
    for number, me in winners.items():
        assert found.get(f"{number:020d}.json") == f"{me}:{number}:".encode() * 300
    assert len(found.names()) == names
    if kind == "local":
        assert len(list(Path(place).iterdir())) == names, "no temporary file is left"


@pytest.mark.parametrize(("point", "there"), [("store_before_link", False), ("store_after_link", True)])
def test_killed_in_mid_create_leaves_nothing_or_a_whole_object(tmp_path: Path, point: str, there: bool) -> None:
    environment = os.environ | {"TIDEGATE_FAILPOINT": f"{point}:3"}
    folder = tmp_path / "log"
    done = subprocess.run([sys.executable, "-c", MAKER, str(folder), "0"], env=environment, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    store = LocalStore(str(folder))
    assert [entry.name for entry in store.names()] == [f"{number:020d}.json" for number in range(2 + there)]
    assert store.get(f"{1:020d}.json") == b"1;" * 5000
    assert store.get(f"{2:020d}.json") == (b"2;" * 5000 if there else None)
    assert len(list(folder.glob(".*"))) == 1
    assert store.create(f"{2:020d}.json", b"next") is not there


def test_killed_anywhere_leaves_only_whole_objects(tmp_path: Path) -> None:
    folder, number = tmp_path / "log", 0
    store = LocalStore(str(folder))
    for turn in range(5):
        argv = [sys.executable, "-c", MAKER, str(folder), str(number)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as maker:
            assert maker.stdout is not None
            for made in range(number, number + 3 + turn):
                assert maker.stdout.readline() == f"{made}\n"
            maker.kill()  # while it is at work on the next one
        names = store.names()
        assert [entry.name for entry in names] == [f"{one:020d}.json" for one in range(len(names))]
        assert len(names) > number + 2
        number = len(names)
        for one in range(number):
            assert store.get(f"{one:020d}.json") == b"%d;" % one * 5000


def test_what_killed_writers_left_goes_when_it_is_old_and_nothing_else(tmp_path: Path, s3: S3) -> None:
    folder = tmp_path / "log"
    argv = [sys.executable, "-c", MAKER, str(folder), "0"]
    killed = subprocess.run(argv, env=os.environ | {"TIDEGATE_FAILPOINT": "store_before_link:2"}, check=False)
    assert killed.returncode != 0
    (left,) = folder.glob(".*")
    others = (".0.json.crc", "..part.tmp", ".0.json.1.2.tmp", "0.json.1.2.0123abcd.tmp")
    for name in others:
        (folder / name).write_bytes(b"")
    store, hour_ms = log_store(str(folder), {}), 3_600_000
    for path in folder.iterdir():
        os.utime(path, (1_000_000, 1_000_000))
    assert remove_unfinished(store, 1_000_000_000) == 0, "no older than that"
    assert left.exists()
    assert remove_unfinished(store, 1_000_000_000 + hour_ms) == 1
    assert sorted(path.name for path in folder.iterdir()) == sorted([commit_name(0), *others])
    assert remove_unfinished(log_store(str(tmp_path / "none"), {}), hour_ms) == 0
    assert remove_unfinished(log_store(s3.folder(), s3.options), hour_ms) == 0


def test_without_hard_links_it_refuses_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(module.os, "link", link)
    with pytest.raises(LakeRefused, match=r"no hard links .*; put the lake on one that does"):
        LocalStore(str(tmp_path)).create("0.json", b"1")
    assert not list(tmp_path.iterdir())


def test_a_link_whose_answer_was_lost_is_recognised_as_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS: the client asks again and meets what it made itself."""
    link = os.link

    def twice(*arguments: Any) -> None:
        link(*arguments)
        link(*arguments)

    monkeypatch.setattr(module.os, "link", twice)
    store = LocalStore(str(tmp_path))
    assert store.create("0.json", b"1")
    assert not store.create("0.json", b"2")


def test_a_full_disk_may_pass_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = LocalStore(str(tmp_path / "log"))
    monkeypatch.setattr(module.os, "write", full)
    with pytest.raises(LakeUnavailable, match=r"log: 0.json can't be made: No space left"):
        store.create("0.json", b"1")
    monkeypatch.undo()
    assert not list(Path(store.where).iterdir())
    assert store.create("0.json", b"1")


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    with pytest.raises(LakeRefused):
        LocalStore(str(tmp_path / "log")).create("0", b"")
    with pytest.raises(LakeRefused):
        LocalStore(str(tmp_path / "log")).get("0")


def test_the_folder_and_its_parents_are_on_disk_when_the_first_create_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def seen(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").resolve().name)
        fsync(handle)

    monkeypatch.setattr(module.os, "fsync", seen)
    LocalStore(f"{tmp_path}/a/b").create("0", b"1")
    assert synced[:2] == [tmp_path.name, "a"]
    assert synced[2].startswith(".0.")
    assert synced[3] == "b"


def test_folders_of_a_bucket_share_a_client(s3: S3) -> None:
    """A lake has hundreds of logs; one with other options (a lease's) has a client of its own."""
    stores = [ObjectStore(f"{s3.folder()}/a b/ü{number}", s3.options) for number in range(3)]
    for number, store in enumerate(stores):
        assert store.create("name", b"%d" % number)
    assert [store.get("name") for store in stores] == [b"0", b"1", b"2"]
    assert [[entry.name for entry in store.names("na")] for store in stores] == [["name"]] * 3
    assert len({id(store._client) for store in stores}) == 1
    assert ObjectStore(s3.folder(), s3.options | {"timeout": "5s"})._client is not stores[0]._client


def test_options_of_delta_rs_alone_are_left_out(s3: S3) -> None:
    options = s3.options | {
        "aws_s3_allow_unsafe_rename": "true",
        "max_retries": "3",
        "OBJECT_STORE_CONCURRENCY_LIMIT": "4",
        "timeout": "10s",
        "aws_virtual_hosted_style_request": "false",
    }
    store = log_store(s3.folder().replace("s3://", "s3a://"), options)
    assert store.create("0", b"1")


def test_options_that_make_no_sense_are_refused(s3: S3) -> None:
    with pytest.raises(LakeRefused, match="check the lake's storage options"):
        log_store(s3.folder(), s3.options | {"timeout": "soon"})
    with pytest.raises(LakeRefused, match="use s3://"):
        log_store("ftp://x/y", {})


def test_a_bucket_that_is_not_there_is_refused(s3: S3) -> None:
    store = log_store("s3://nobodys/log", s3.options)
    for ask in (lambda: store.create("0", b"1"), lambda: store.replace("0", b"1"), store.names):
        with pytest.raises(LakeRefused, match=r"^s3://nobodys/log: .* can't be \w+: .*bucket exists"):
            ask()


def test_azure_and_google_are_opened_without_a_question() -> None:
    """There is none on this machine to ask; what is shown is that their options arrive."""
    azure = log_store(
        "abfss://c@account.dfs.core.windows.net/x",
        {"azure_storage_account_key": "a2V5", "azure_storage_use_emulator": "false"},
    )
    google = log_store("gs://b/x", {"google_skip_signature": "true"})
    assert isinstance(azure, ObjectStore)
    assert isinstance(google, ObjectStore)


@pytest.mark.server
def test_a_store_that_does_not_answer_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "STORE_RETRY_SECONDS_MAX", 1.0)
    with moto() as s3:
        store = log_store(s3.folder(), s3.options | {"timeout": "500ms"})
        assert store.create("0", b"1")
        with s3.silent(), pytest.raises(LakeUnavailable, match="1 can't be made"):
            store.create("1", b"1")
        assert store.get("0") == b"1"
    with pytest.raises(LakeUnavailable, match="2 can't be made"):
        store.create("2", b"1")


class _Conflicts:
    """S3's client, which says "already exists" of names that aren't there so many times (its 409)."""

    def __init__(self, inner: Any, times: int) -> None:
        self._inner, self.times = inner, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put(self, *arguments: Any, **named: Any) -> Any:
        from obstore.exceptions import AlreadyExistsError

        if self.times:
            self.times -= 1
            raise AlreadyExistsError("409 ConditionalRequestConflict")
        return self._inner.put(*arguments, **named)


def test_a_conflict_over_a_name_that_is_not_there_is_tried_again(s3: S3) -> None:
    store = ObjectStore(s3.folder(), s3.options)
    store._client = conflicts = _Conflicts(store._client, 2)
    assert store.create("0", b"1")
    conflicts.times = 1
    assert not store.create("0", b"2")
    conflicts.times = 99
    with pytest.raises(LakeUnavailable, match="1 could neither be made nor found"):
        store.create("1", b"1")
    assert [(entry.name, entry.size) for entry in store.names()] == [("0", 1)]


def test_a_folder_in_a_folder_is_a_store_of_its_own(store: LogStore) -> None:
    inner = store.folder("_sidecars")
    assert inner.names() == []
    assert store.create("b", b"outer")
    assert inner.create("a", b"inner")
    assert [entry.name for entry in store.names()] == ["b"]
    assert [entry.name for entry in inner.names()] == ["a"]
    assert store.folder("_sidecars").get("a") == b"inner"


def test_sparks_checksum_of_what_is_replaced_or_removed_goes_with_it(tmp_path: Path) -> None:
    """Hadoop's local file system refuses a file that its .crc contradicts."""
    store = log_store(str(tmp_path), {})
    for name in ("replaced", "removed", "kept"):
        (tmp_path / name).write_bytes(b"old")
        (tmp_path / f".{name}.crc").write_bytes(b"crc")
    store.replace("replaced", b"new")
    store.delete(["removed", "missing"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [".kept.crc", "kept", "replaced"]
