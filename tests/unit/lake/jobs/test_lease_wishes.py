"""Who waits for a lease is heard by its holder; what a killed waiter left isn't."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tidegate.errors import LeaseHeld
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs import lease_wishes
from tidegate.lake.jobs.lease_wishes import Wishes, wait_for_lease
from tidegate.lake.jobs.leases import LEASES, take_lease

WANTED = f"{LEASES}/road.apply.wanted"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_wishes, "LEASE_WISH_SECONDS", 0.05)
    monkeypatch.setattr(lease_wishes, "LEASE_WISHES_LOOK_SECONDS", 0.0)


def left(lake: LakeFiles) -> list[str]:
    return [entry.name for entry in lake.store(WANTED).names()]


def test_a_holder_hears_who_waits_and_lets_go(tmp_path: Path) -> None:
    lake, lines = LakeFiles(str(tmp_path)), list[str]()
    wishes = Wishes(lake, "road", "apply")
    lease = take_lease(lake, "road", "apply", report=lines.append)
    assert not wishes.made()
    assert not wishes.made()

    def wait() -> None:
        with wait_for_lease(lake, "road", "apply", 30, report=lines.append):
            lines.append("got it")

    waiter = threading.Thread(target=wait)
    waiter.start()
    until = time.monotonic() + 20
    while not wishes.made():
        assert time.monotonic() < until
        time.sleep(0.01)
    lease.release()
    waiter.join(20)
    assert [line for line in lines if line.startswith("waits for apply of road, up to 30 s more: held by ")]
    assert lines[-1] == "got it"
    assert left(lake) == []


def test_a_killed_waiter_ends_no_run(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    lake.store(WANTED).create("killed.wish", b"")
    wishes = Wishes(lake, "road", "apply")
    assert not wishes.made()
    assert left(lake) == []
    assert not wishes.made()
    lake.store(WANTED).create("living.wish", b"")
    assert wishes.made()


def test_what_cant_be_removed_ends_no_run(tmp_path: Path) -> None:
    """A file of another user, as `sudo tidegate erase` leaves it when it is killed."""
    lake = LakeFiles(str(tmp_path))
    lake.store(WANTED).create("killed.wish", b"")
    wishes = Wishes(lake, "road", "apply")
    assert not wishes.made()
    lake.store(WANTED).create("killed.wish", b"")  # as if it had stayed
    assert not wishes.made()
    lake.store(WANTED).create("living.wish", b"")
    assert wishes.made()


def test_who_waits_in_vain_leaves_nothing(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    with take_lease(lake, "road", "apply", report=print):
        with pytest.raises(LeaseHeld, match="held by apply of road"):
            wait_for_lease(lake, "road", "apply", 0.2, report=print)
        assert left(lake) == []
