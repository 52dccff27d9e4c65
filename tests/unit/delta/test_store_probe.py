"""A store that makes a name twice is refused before anything is written to a lake in it; a good one is hardly asked."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.kit.s3 import S3, moto
from tests.support.interrupted_store import Memory
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.store_probe import PROBE, check_makes_once
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import LEASES, take_lease


def test_a_store_that_makes_names_once_is_asked_once_from_the_second_start_on(s3: S3, tmp_path: Path) -> None:
    for place, options in ((s3.folder(), s3.options), (str(tmp_path / "leases"), {})):
        store = log_store(place, options)
        for _ in range(3):
            check_makes_once(store)
        assert [entry.name for entry in store.names()] == [PROBE]
    memory = Memory()
    check_makes_once(memory)
    assert memory.calls == {"create": 2}
    check_makes_once(memory)
    assert memory.calls == {"create": 3}


@pytest.mark.server
@pytest.mark.parametrize("conditions", ["ignored", "refused"])
def test_a_store_without_conditional_writes_is_refused_at_every_start(conditions: str) -> None:
    with moto(conditions) as s3:
        lake = LakeFiles(s3.folder(), s3.options)
        for _ in range(2):
            with pytest.raises(LakeRefused, match=r"If-None-Match") as told:
                take_lease(lake, "shop", "apply", report=print)
            assert lake.root in str(told.value)
        names = [entry.name for entry in log_store(f"{lake.root}/{LEASES}/shop.apply", s3.options).names()]
        assert not names, "no lease was taken"


def test_conditional_writes_that_were_switched_off_are_refused(s3: S3) -> None:
    lake = LakeFiles(s3.folder(), s3.options | {"aws_conditional_put": "disabled"})
    with pytest.raises(LakeRefused, match=r"If-None-Match"):
        take_lease(lake, "shop", "apply", report=print)


def test_a_disk_without_hard_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)  # no such file system can be mounted without the right to
    with pytest.raises(LakeRefused, match="no hard links"):
        take_lease(LakeFiles(str(tmp_path)), "shop", "apply", report=print)


def test_a_store_that_does_not_answer_is_not_judged() -> None:
    memory = Memory()
    memory.fault = lambda: "unreachable"
    with pytest.raises(LakeUnavailable):
        check_makes_once(memory)
    memory.fault = iter(["again", "again"]).__next__  # a lost answer, and the client asked again
    check_makes_once(memory)
