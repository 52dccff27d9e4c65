"""One at a time does a job in a lake, from whatever machine: apply or maintain of a pipeline, capture of a source.

In:  a lake, the job and whose it is.
Out: the job's lease, in control/leases/<pipeline or source>.<job>.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from tidegate.delta.lease import Lease
from tidegate.delta.store import log_store
from tidegate.delta.store_probe import check_makes_once
from tidegate.lake.files import LakeFiles
from tidegate.limits import LEASE_ANSWER_SECONDS_MAX

LEASES: Final = "control/leases"


def take_lease(
    lake: LakeFiles, of: str, job: str, *, report: Callable[[str], None], stop: threading.Event | None = None
) -> Lease:
    """The lease of a job, renewed until it is released.

    A holder whose process certainly ended doesn't keep it; another one without renewals keeps it
    for its term. Whoever writes to a lake comes by here first, so here the store is asked whether
    two writers can share it. Raises LeaseHeld at the holder's first sign of life, or when stop is
    set; LakeUnavailable, LakeRefused.
    """
    # A request that hangs must not take the whole term.
    options = {"timeout": f"{LEASE_ANSWER_SECONDS_MAX:g}s"} | {
        name.lower(): value for name, value in lake.storage_options.items()
    }
    leases = log_store(lake.uri(LEASES), options)
    check_makes_once(leases)
    store = leases.folder(f"{of}.{job}")
    return Lease.take(store, f"{job} of {of}", stop=stop, report=report)
