"""One capture per source: its lease is needed to land segments of it.

In:  a lake, a source.
Out: the lease, taken before anything is written; a check before each landing.

Capture reads on while the lake is silent: the value log takes new segments. The lease is then taken
before the first landing. A lease that ended during an outage is taken again, unless another capture
took it meanwhile. Bronze refuses a second writer by itself, too (tidegate/lake/bronze/table.py),
but only after both have read the same. While nobody held the lease the lake may have been moved
away: then capture ends here, and its value log keeps the segments without another place.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Self

from tidegate.delta.leases.lease import Lease
from tidegate.errors import LakeRefused, LakeUnavailable, Overtaken, may_pass
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.unfinished import why_no_lake
from tidegate.lake.jobs.leases import take_lease

log = logging.getLogger(__name__)


@dataclass(slots=True)
class SourceLease:
    """A context manager; it releases everything taken inside. stop: ends the wait for another's
    sign of life.
    """

    lake: LakeFiles
    source: str
    stop: threading.Event
    _lease: Lease | None = field(default=None, init=False)
    _is_lake: bool = field(default=False, init=False)  # looked at since the lease was taken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lease is not None:
            self._lease.release()

    def take(self) -> None:
        """Before anything is written. Raises LeaseHeld, LakeRefused."""
        try:
            self._hold()
        except LakeUnavailable as error:
            log.warning("capture goes on without its lease until the lake answers: %s", error)

    def check(self) -> None:
        """Before a landing: check no other capture of the source has begun. Costs a look at the
        clock.

        Raises LeaseHeld when one has; LakeRefused when the lake was moved away meanwhile;
        LakeUnavailable when it can't be known, or isn't allowed any more.
        """
        try:
            self._hold()
            refusal = None if self._is_lake else why_no_lake(self.lake)
        except LakeRefused as error:
            raise may_pass(error) from error
        if refusal is not None:
            raise refusal
        self._is_lake = True

    def _hold(self) -> None:
        if self._lease is None:
            self._is_lake = False
            self._lease = take_lease(
                self.lake, self.source, "capture", stop=self.stop, report=lambda line: log.warning("%s", line)
            )
            return
        try:
            self._lease.check()
        except Overtaken:
            self._is_lake = False
            self._lease = self._lease.again()
