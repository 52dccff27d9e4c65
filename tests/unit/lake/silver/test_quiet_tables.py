"""Which silver tables are as published, by pages of one listing: the same answer as by a look at each, on a real S3."""

from __future__ import annotations

import time
from urllib.request import urlopen

import pytest

from tests.kit.s3 import BUCKET, S3, moto
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.object_store import ObjectStore
from tidegate.delta.stores.store import Entry
from tidegate.lake.silver.as_published import is_quiet
from tidegate.lake.silver.quiet_tables import quiet_tables
from tidegate.limits import STORE_PAGE_FILES
from tidegate.standing.silver import Said

QUIET = ("shop/a", "shop/a_", "shop/ab", "shop/b", "shop_2/a", "shop~2e~/a")  # in no order of a tree's walk
NOT = {"shop/older": 4, "shop/newer": 6, "shop/none": -1, "shop/z": 9}  # the newest commit; the published one is 5
_PUBLISHED = 5


@pytest.mark.server
def test_pages_of_a_listing_answer_as_a_look_at_each_log_does(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    place = s3.folder()
    store = log_store(place, s3.options)
    assert isinstance(store, ObjectStore)
    for path, newest in (dict.fromkeys(QUIET, _PUBLISHED) | NOT).items():
        for version in range(newest + 1):
            _log(place, s3, path).store.create(commit_name(version), b"{}")
        if newest >= 0:
            log_store(f"{place}/{path}", s3.options).create("part-0.parquet", b"rows")
    large = log_store(f"{place}/shop/b", s3.options)
    for number in range(STORE_PAGE_FILES + 10):
        large.create(f"part-{number}.parquet", b"rows")
    now = int(time.time() * 1000)
    said = dict.fromkeys([*QUIET, *NOT], Said(_PUBLISHED, "id", 1, now + 60_000))
    said["shop/a"] = Said(_PUBLISHED, "id", 1, now - 60_000_000)  # it got its commit behind its row in control
    pages = list[int]()
    below = ObjectStore.below

    def counted(store: ObjectStore, behind: str) -> list[Entry] | None:
        page = below(store, behind)
        pages.append(len(page or ()))
        return page

    monkeypatch.setattr(ObjectStore, "below", counted)
    quiet = quiet_tables(store, said)
    assert quiet == {path for path, each in said.items() if is_quiet(_log(place, s3, path), each)} == {*QUIET[1:]}
    assert len(pages) == 2, "the large table's files are passed over"


@pytest.mark.server
def test_a_store_of_short_pages_answers_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some give fewer names by one request than they are asked for, and a token for the rest."""
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "7")
    with moto() as s3:
        place = s3.folder()
        newest = {f"shop/t{number}": _PUBLISHED + (number % 3 == 2) for number in range(12)}
        for path, upto in newest.items():
            for version in range(upto + 1):
                _log(place, s3, path).store.create(commit_name(version), b"{}")
        said = dict.fromkeys(newest, Said(_PUBLISHED, "id", 1, int(time.time() * 1000) + 60_000))
        store = log_store(place, s3.options)
        with urlopen(f"{s3.endpoint}/{BUCKET}?list-type=2", timeout=30) as page:
            assert page.read().count(b"<Key>") == 7
        assert len(store.below("") or ()) == sum(upto + 1 for upto in newest.values())
        assert quiet_tables(store, said) == {path for path, upto in newest.items() if upto == _PUBLISHED}


def _log(place: str, s3: S3, path: str) -> DeltaLog:
    return DeltaLog(f"{place}/{path}", s3.options)


class Listed:
    """A store that lists in another order than names have, or not from a name on."""

    where = "s3://lake"

    def __init__(self, pages: list[list[Entry] | None]) -> None:
        self._pages = pages

    def below(self, behind: str) -> list[Entry] | None:
        del behind
        return self._pages.pop(0)


@pytest.mark.parametrize(
    "page", [None, [Entry(f"{path}/_delta_log/{commit_name(5)}", 1, 1) for path in ("shop/b", "shop/a")]]
)
def test_a_store_that_lists_otherwise_answers_for_none(page: list[Entry] | None) -> None:
    store: object = Listed([page])
    said = dict.fromkeys(("shop/a", "shop/b"), Said(_PUBLISHED, "id", 1, 60_000))
    assert quiet_tables(store, said) == set()  # type: ignore[arg-type]
