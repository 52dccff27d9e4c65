"""An erasure and the swap of a rebuilt table, at the same time: neither waits for the other in vain."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tidegate.erase.erasure import JOBS
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs import lease_wishes
from tidegate.lake.jobs.lease_wishes import wait_for_lease
from tidegate.lake.jobs.leases import take_lease


def test_leases_are_taken_in_the_order_of_a_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_wishes, "LEASE_WISH_SECONDS", 0.05)
    lake, done = LakeFiles(str(tmp_path)), list[str]()

    def erase() -> None:
        with ExitStack() as held:
            for job in JOBS:
                held.enter_context(wait_for_lease(lake, "road", job, 20, report=print))
            done.append("erase")

    with take_lease(lake, "road", "rebuild", report=print):
        eraser = threading.Thread(target=erase)
        eraser.start()
        time.sleep(0.5)
        with wait_for_lease(lake, "road", "apply", 5, report=print):
            done.append("swap")
    eraser.join(30)
    assert done == ["swap", "erase"]
