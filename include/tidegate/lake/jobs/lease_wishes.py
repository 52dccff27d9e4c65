"""Whoever waits for a job's lease says so in the lake. The holder then ends sooner than after its
hour.

In:  a lake; the job, and the pipeline or source it is for.
Out: wait_for_lease(), for the waiter; Wishes, for the holder.

At each look a waiter makes a file in control/leases/<pipeline or source>.<job>.wanted, and removes
its last one. At its first look the holder removes all files there: a living waiter makes another
one, a killed waiter doesn't. Therefore a killed waiter's file ends no run, even if the holder may not
remove it. No clocks are compared.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress

from tidegate.delta.leases.lease import Lease
from tidegate.errors import LakeRefused, LakeUnavailable, LeaseHeld
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import LEASES, take_lease
from tidegate.limits import LEASE_WAIT_SAID_SECONDS, LEASE_WISH_SECONDS, LEASE_WISHES_LOOK_SECONDS


def wait_for_lease(lake: LakeFiles, of: str, job: str, wait_seconds: float, *, report: Callable[[str], None]) -> Lease:
    """The lease of a job, for a pipeline or a source (`of`), once nobody has it.

    Raises LeaseHeld if somebody still has it after wait_seconds; LakeUnavailable, LakeRefused.
    """
    wishes, mark = lake.store(_folder(of, job)), ""
    until, said_at = time.monotonic() + wait_seconds, 0.0
    try:
        while True:
            try:
                return take_lease(lake, of, job, report=report)
            except LeaseHeld as error:
                now = time.monotonic()
                if now >= until:
                    raise
                if not said_at or now - said_at >= LEASE_WAIT_SAID_SECONDS:
                    ends = (
                        "it ends after its window"
                        if job == "apply"
                        else "to go on sooner, pause its DAG until the run ends"
                    )
                    report(f"waits for {job} of {of}, up to {until - now:,.0f} s more: {error.what}; {ends}")
                    said_at = now
                before, mark = mark, f"{uuid.uuid4().hex}.wish"
                wishes.create(mark, b"")
                _remove(lake, of, job, [before] if before else [])
                time.sleep(LEASE_WISH_SECONDS)
    finally:
        _remove(lake, of, job, [mark] if mark else [])


class Wishes:
    """For the holder of a job's lease: does somebody wait for it?"""

    def __init__(self, lake: LakeFiles, of: str, job: str) -> None:
        self._lake, self._of, self._job = lake, of, job
        self._looked_at: float | None = None
        self._left: frozenset[str] | None = None

    def made(self) -> bool:
        """Whether somebody has begun to wait since this holder's first look. Cheap enough for every
        turn of a loop.

        If the store doesn't answer, the answer is no: the holder meets that error elsewhere.
        """
        now = time.monotonic()
        if self._looked_at is not None and now - self._looked_at < LEASE_WISHES_LOOK_SECONDS:
            return False
        self._looked_at = now
        try:
            names = [entry.name for entry in self._lake.store(_folder(self._of, self._job)).names()]
        except (LakeUnavailable, LakeRefused):
            return False
        if self._left is None:
            self._left = frozenset(names)
            _remove(self._lake, self._of, self._job, names)
        return not self._left.issuperset(names)


def _folder(of: str, job: str) -> str:
    return f"{LEASES}/{of}.{job}.wanted"


def _remove(lake: LakeFiles, of: str, job: str, names: list[str]) -> None:
    if names:
        with suppress(LakeUnavailable, LakeRefused):
            lake.store(_folder(of, job)).delete(names)
