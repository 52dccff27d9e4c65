"""One capture per source: only the holder of its lease lands segments of it.

In:  a lake, a source.
Out: the lease, taken before anything is written; a check before each landing.

While the lake doesn't answer, capture reads on, and the value log takes the segments. Then it takes
the lease before the first landing. A lease that ended during an outage is taken again, unless
another capture took it meanwhile. Bronze itself also refuses a second writer
(tidegate/lake/bronze/table.py), but only after both have read the same. While nobody held the
lease, the lake may have been moved away: then capture ends here, and its value log keeps the
segments no other place has.
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
    """A context manager. It releases the lease that was taken inside. stop: ends the wait for a
    sign of life of another holder.
    """

    lake: LakeFiles
    source: str
    stop: threading.Event
    _lease: Lease | None = field(default=None, init=False)
    _is_lake: bool = field(default=False, init=False)  # checked since the lease was taken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lease is not None:
            self._lease.release()

    def take(self) -> None:
        """Call it before anything is written. Raises LeaseHeld, LakeRefused."""
        try:
            self._hold()
        except LakeUnavailable as error:
            log.warning("capture goes on without its lease until the lake answers: %s", error)

    def check(self) -> None:
        """Call it before a landing: it checks that no other capture of the source has begun. Costs
        a look at the clock.

        Raises LeaseHeld if another has begun; LakeRefused if the lake was moved away meanwhile;
        LakeUnavailable if this can't be known, or if the lake may not be used any more.
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
