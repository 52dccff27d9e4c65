"""A changefeed that writes to an object store is read as one that writes to a folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.kit.s3 import S3
from tests.support.changefeed_writer import CREATE_PLAIN, PLAIN, Change, Changefeed, plain, ts
from tests.unit.changefeed.test_reader import given, opened, source
from tidegate.changefeed.storage_path import Storage
from tidegate.delta.stores.object_store import bucket
from tidegate.errors import SourceRefused, SourceUnavailable

pytestmark = pytest.mark.server


def copied(feed: Changefeed, url: str, options: dict[str, str]) -> None:
    parts = urlsplit(url)
    client = bucket(f"{parts.scheme}://{parts.netloc}", options)
    for file in sorted(path for path in feed.path.rglob("*") if path.is_file()):
        client.put(f"{parts.path.strip('/')}/{file.relative_to(feed.path)}", file.read_bytes())


def test_a_bucket_is_read_as_a_folder_is(s3: S3, tmp_path: Path) -> None:
    feed, url = Changefeed(tmp_path / "feed"), s3.folder()
    for table in ("t", "parts", "dated"):
        feed.ddl(f"shop.{table}", ts(1), CREATE_PLAIN.format("shop", table), 3, PLAIN)
    feed.rows("shop.t", Change(ts(2), plain(1, "one")), Change(ts(5), plain(5, "later")))
    feed.rows("shop.parts", Change(ts(3), plain(2, "two")), folder="105")
    feed.rows("shop.dated", Change(ts(3), plain(3, "three")), folder="2022-05-19")
    feed.checkpoint(ts(4))
    copied(feed, url, s3.options)
    far, near = opened(source(feed, path=url, options=s3.options)), opened(source(feed))
    first = given(far, ts(4))
    assert b"".join(segment.payload for segment in first) == b"".join(one.payload for one in given(near, ts(4)))
    feed.rows("shop.t", Change(ts(6), plain(6, "more")))
    feed.rows("shop.parts", Change(ts(6), plain(7, "more")), folder="106")
    feed.rows("shop.dated", Change(ts(7), plain(8, "more")), folder="2022-05-20")
    feed.checkpoint(ts(9))
    copied(feed, url, s3.options)
    wanted = b"".join(segment.payload for segment in given(near, ts(9)))
    assert b"".join(segment.payload for segment in given(far, ts(9))) == wanted
    again = opened(source(feed, path=url, options=s3.options), far.checkpoint)
    assert again.receive(0.01) == []


def test_a_store_that_refuses_or_is_away_says_so(s3: S3) -> None:
    with pytest.raises((SourceRefused, SourceUnavailable), match=r"s3://no-such-bucket"):
        Storage("s3://no-such-bucket/x", s3.options).listed("")
