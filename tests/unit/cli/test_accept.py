"""`tidegate accept`: on another machine than capture's it doesn't see that one's value log."""

from __future__ import annotations

from pathlib import Path

from tidegate.cli.accept import elsewhere_lines
from tidegate.delta.leases.lease_entry import LeaseEntry, Process, entry_name
from tidegate.delta.stores.store import LocalStore
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import LEASES


def test_who_runs_it_on_another_machine_than_capture_is_told(tmp_path: Path) -> None:
    lake, store = LakeFiles(str(tmp_path)), LocalStore(f"{tmp_path}/{LEASES}/main.capture")
    assert elsewhere_lines(lake, "main") == []
    here = Process.this()
    store.create(entry_name(1), LeaseEntry(1, 1, "x", "capture of main", here, 30.0, 0, 0).encoded())
    assert elsewhere_lines(lake, "main") == []
    other = here._replace(host="db-worker-7")
    store.create(entry_name(2), LeaseEntry(2, 1, "y", "capture of main", other, 30.0, 0, 0).encoded())
    (line,) = elsewhere_lines(lake, "main")
    assert "main was last captured on db-worker-7" in line
