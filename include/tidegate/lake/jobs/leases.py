"""Only one process at a time does a job in a lake, on any machine: apply or maintain of a pipeline, or a capture.

In:  a lake; the job, and the pipeline or source it is for.
Out: the job's lease, in control/leases/<pipeline or source>.<job>; its newest entry, for reports.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from tidegate.delta.leases.lease import Lease
from tidegate.delta.leases.lease_entry import LeaseEntry, newest_entry
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.store import LogStore
from tidegate.delta.stores.store_probe import check_makes_once
from tidegate.lake.files import LakeFiles
from tidegate.limits import LEASE_ANSWER_SECONDS_MAX

LEASES: Final = "control/leases"


def take_lease(
    lake: LakeFiles, of: str, job: str, *, report: Callable[[str], None], stop: threading.Event | None = None
) -> Lease:
    """The lease of a job. It is renewed until it is released.

    If its last holder's process has certainly ended, it is free. A holder that only stopped
    renewing keeps it until its term ends. Every writer to a lake takes a lease first, so this also
    asks whether two writers can share the store. Raises LeaseHeld at the holder's first sign of
    life, or when stop is set; LakeUnavailable, LakeRefused.
    """
    leases = _store(lake)
    check_makes_once(leases)
    store = leases.folder(f"{of}.{job}")
    return Lease.take(store, f"{job} of {of}", stop=stop, report=report)


def newest_sign(lake: LakeFiles, of: str, job: str) -> LeaseEntry | None:
    """The newest entry of a job's lease; None before the first. Raises LakeUnavailable, LakeRefused."""
    return newest_entry(_store(lake).folder(f"{of}.{job}"))


def _store(lake: LakeFiles) -> LogStore:
    """A store for leases: a request that hangs ends before the term does."""
    options = {name.lower(): value for name, value in lake.storage_options.items()}
    return log_store(lake.uri(LEASES), {"timeout": f"{LEASE_ANSWER_SECONDS_MAX:g}s"} | options)
