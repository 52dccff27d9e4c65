"""A look at a bucket costs a list for a thousand names that may matter, whatever the tables are and however old."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from obstore.store import LocalStore, MemoryStore

from tests.support.changefeed_writer import CREATE_PLAIN, PLAIN, Change, Changefeed, plain, ts
from tests.support.seeds import share
from tests.unit.changefeed.test_reader import source, whatever_is_written_again
from tidegate.changefeed import lists
from tidegate.changefeed import storage_path as storage
from tidegate.changefeed.examination import _lists_line
from tidegate.changefeed.folders import Folders
from tidegate.changefeed.storage_path import Storage
from tidegate.commit_ts import physical_ms
from tidegate.config import Csv, Protocol
from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.mysql.checking.examination import Line, SourceVerdict
from tidegate.ticdc.pieces import Form

URL = "s3://bucket/feed"
FORM = Form(Protocol.CANAL_JSON, "UTC", all_rows=True, csv=Csv())


class Bucket:
    """What a store does for Storage, and how many lists it was asked for. names: a list's."""

    def __init__(self, under: Any, names: int = 1000) -> None:
        self._under, self._names = under, names
        self.lists = self.reads = 0

    def list(self, prefix: str, *, offset: str | None = None, chunk_size: int = 1000) -> Iterator[list[dict[str, Any]]]:
        assert chunk_size in (self._names, 1000)
        found = [one for page in self._under.list(prefix) for one in page]
        found = sorted((one for one in found if one["path"] > (offset or "")), key=lambda one: one["path"])
        for at in range(0, len(found), chunk_size):
            self.lists += 1
            yield found[at : at + chunk_size]

    def get(self, path: str) -> Any:
        self.reads += 1
        return self._under.get(path)

    def get_range(self, path: str, *, start: int, end: int) -> Any:
        self.reads += 1
        return self._under.get_range(path, start=start, end=end)


def folders_of(under: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Bucket, Folders]:
    made = Bucket(under)
    monkeypatch.setattr(storage, "bucket", lambda _url, _options: made)
    return made, Folders(Storage(URL, {}), FORM)


def schema(table: str) -> bytes:
    said = f'{{"Table": "{table}", "Schema": "d", "Version": 1, "TableVersion": {ts(1)}, "Query": "", "Type": 0,'
    return f'{said} "TableColumns": null, "TableColumnsTotal": 0}}'.encode()


LINE = f'{{"id":0,"_tidb":{{"commitTs":{ts(2)}}}}}\r\n'.encode()


def filled(tables: int, files: int = 1, folder: str = "") -> Any:
    made: Any = MemoryStore()
    for number in range(tables):
        name = f"t{number:05}"
        made.put(f"feed/d/{name}/meta/schema_{ts(1)}_0000000000.json", schema(name))
        for at in range(1, files + 1):
            made.put(f"feed/d/{name}/{ts(1)}/{folder}CDC{at:06}.json", LINE)
        made.put(f"feed/d/{name}/{ts(1)}/{folder}meta/CDC.index", b"")
    return made


def test_ten_thousand_tables_cost_a_list_for_a_thousand_names(monkeypatch: pytest.MonkeyPatch) -> None:
    under = filled(10_000)
    bucket, folders = folders_of(under, monkeypatch)
    folders.look(ts(1))
    assert (bucket.lists, len(folders.tables)) == (30, 10_000)
    bucket.lists = bucket.reads = 0
    under.put(f"feed/d/t07777/{ts(1)}/CDC000002.json", LINE)
    under.put(f"feed/d/t10000/meta/schema_{ts(1)}_0000000000.json", schema("t10000"))
    under.put(f"feed/d/t10000/{ts(1)}/CDC000001.json", LINE)
    folders.look(ts(1))
    assert bucket.lists <= 30 + lists.TICDC_LOOKS_THREADS
    assert bucket.lists == folders.lists
    assert bucket.reads == 2, "the new table's schema file, and its first line"
    grown = [stream.name for stream in folders.streams if len(stream._files) > 1]
    assert (grown, len(folders.tables)) == ([("d", "t07777")], 10_001)


def test_names_that_are_captured_are_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twelve thousand, in folders of one table each."""
    under = filled(4, files=3000)
    bucket, folders = folders_of(under, monkeypatch)
    folders.look(ts(3))
    assert bucket.lists == 13
    folders.look(ts(3))
    bucket.lists = 0
    folders.look(ts(3))
    assert bucket.lists == 4 + 1
    under.put(f"feed/d/t00002/{ts(1)}/CDC003001.json", LINE)
    folders.look(ts(3))
    assert [stream.name for stream in folders.streams if len(stream._files) > 1] == [("d", "t00002")]


def test_check_says_what_looks_cost_a_day() -> None:
    assert _lists_line("main", 1, 2.0) == Line(
        "main", SourceVerdict.NOTE, "a look asks the store for 1 list: 43,200 a day (look_seconds: 2)"
    )
    costly = _lists_line("main", 30, 2.0)
    assert (costly.verdict, "1,296,000 a day" in costly.text) == (SourceVerdict.CAUTION, True)


def test_days_and_versions_that_are_over_are_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    under, now = filled(2), ts(3)
    today = datetime.fromtimestamp(physical_ms(now) / 1000, UTC).date()
    for name in ("t00000", "t00001"):
        for day in range(400):
            date = (today - timedelta(days=day)).isoformat()
            for number in range(1, 5):
                under.put(f"feed/d/{name}/{ts(1)}/{date}/CDC{number:06}.json", LINE)
        for version in range(1000):
            under.put(f"feed/d/{name}/{ts(1) - 5000 + version}/CDC000001.json", LINE)
    bucket, folders = folders_of(under, monkeypatch)
    folders.look(now)
    bucket.lists = 0
    folders.look(now)
    assert bucket.lists <= 5, "of 5,200 names"
    dates = {stream.folder.rpartition("/")[2] for stream in folders.streams}
    assert dates == {str(ts(1)), *((today - timedelta(days=day)).isoformat() for day in range(3))}


def test_a_last_file_that_is_gone_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    under = filled(1, files=5)
    _, folders = folders_of(under, monkeypatch)
    folders.look(ts(3))
    under.delete(f"feed/d/t00000/{ts(1)}/CDC000005.json")
    with pytest.raises(SourceRefused, match=r"data file CDC000005.json is gone, and CDC000001.json is there"):
        folders.look(ts(3))


@pytest.mark.parametrize("seed", share(range(4)))
def test_a_bucket_that_is_listed_in_pieces_gives_what_a_folder_gives(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lists of two names, each of which may end anywhere, and as many readers as there may be."""
    monkeypatch.setattr(storage, "TICDC_LIST_FILES_MAX", 2)
    monkeypatch.setattr(lists, "TICDC_LIST_FILES_MAX", 2)
    monkeypatch.setattr(lists, "TICDC_THREAD_LISTS_MIN", 1)
    feed = Changefeed(tmp_path / "bucket" / "feed")
    monkeypatch.setattr(storage, "bucket", lambda _url, _options: Bucket(LocalStore(tmp_path / "bucket"), 2))
    whatever_is_written_again(feed, source(feed, path=URL, segment_bytes=2500), seed, monkeypatch)


def test_a_folder_of_this_machine_asks_no_store(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.ddl("shop.t", ts(1), CREATE_PLAIN.format("shop", "t"), 3, PLAIN)
    feed.rows("shop.t", Change(ts(2), plain(1, "one")))
    folders = Folders(Storage(str(feed.path), {}), FORM)
    folders.look(ts(1))
    assert (folders.lists, len(list(folders.streams))) == (0, 1)


def test_a_path_without_keys_is_told_so_and_not_the_address_of_a_cloud() -> None:
    path = Storage("s3://b/feed", {"aws_metadata_endpoint": "http://127.0.0.1:1", "aws_allow_http": "true"})
    with pytest.raises(
        SourceUnavailable, match=r"no keys are given for .*the source's conn_id.* AWS_ACCESS_KEY_ID"
    ) as error:
        path.listed("")
    assert "127.0.0.1" not in str(error.value)
