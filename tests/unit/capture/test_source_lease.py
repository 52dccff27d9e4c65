"""A capture that lost its lease meanwhile doesn't land in a lake that was moved away."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tidegate.capture.source_lease import SourceLease
from tidegate.delta.leases.lease import Lease
from tidegate.errors import LakeRefused, Overtaken
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.unfinished import FOLDER, FolderKind, Paper


def test_a_lake_that_was_moved_while_capture_slept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    with SourceLease(lake, "one", threading.Event()) as lease:
        lease.take()
        lease.check()
        Paper(FolderKind.MOVED, "shop", "/elsewhere").write(lake.store(FOLDER))
        lease.check()  # it holds the lease, so nobody moved anything: no look at the lake for each landing

        def slept(_: Lease) -> None:
            raise Overtaken("it was not renewed", where="", remedy="")

        with monkeypatch.context() as patch:
            patch.setattr(Lease, "check", slept)
            with pytest.raises(LakeRefused, match="was moved to /elsewhere"):
                lease.check()
        with pytest.raises(LakeRefused, match="was moved to /elsewhere"):
            lease.check()  # nor later, with the lease of its own again
