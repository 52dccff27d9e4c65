"""A waiter for a job's lease says so in the lake: a loop with this lease ends sooner than in an hour.

In:  a lake, the job and whose it is.
Out: wait_for_lease(), for the waiter; Wishes, for the holder: does somebody wait?

A waiter makes a file at each look, in control/leases/<pipeline or source>.<job>.wanted, and removes the one before. The
holder removes at its first look what it sees: a living waiter makes another one, a killed one doesn't. A killed
waiter's file therefore ends no run, not even one that may not remove it, and no clocks are compared.
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
    """A job's lease, once nobody has it; `of` is a pipeline or a source.

    Raises LeaseHeld when somebody has it for wait_seconds; LakeUnavailable, LakeRefused.
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
    """The wishes of others to the holder of a job's lease."""

    def __init__(self, lake: LakeFiles, of: str, job: str) -> None:
        self._lake, self._of, self._job = lake, of, job
        self._looked_at: float | None = None
        self._left: frozenset[str] | None = None

    def made(self) -> bool:
        """Whether somebody waits for the lease since this holder looks; cheap enough to be asked all the time.

        A store without an answer says nothing: the holder meets it elsewhere.
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
