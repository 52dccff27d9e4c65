"""A falling checkpoint: its writer doesn't know all of the captured log.

In:  the checkpoint at each look, and up to where all is captured.
Out: nothing, or why capture doesn't go on.

The checkpoint of one changefeed falls by seconds, if its owner dies after it has written it to the
path and before it has stored it in etcd; then it writes the same rows again. Two changefeeds of one
path write their checkpoints in turns, and capture would skip the rows of the lower one after it has
read the higher checkpoint. Therefore a run waits at a fall, and tells the two cases apart by the size and
the number of falls. A run may last for months, so some falls of the first kind are allowed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tidegate.commit_ts import physical_ms, time_text
from tidegate.errors import SourceRefused, SourceUnavailable, SourceUnwilling
from tidegate.limits import TICDC_FALL_ATTEMPTS_MAX, TICDC_FALL_SECONDS_MAX, TICDC_FALLS_SECONDS
from tidegate.ticdc.layout import METADATA

_REMEDY = (
    "give each changefeed a path of its own; one that was set back begins anew with a new path and a new lake. Rows of"
    " what was captured meanwhile may be missing: compare with TiDB"
)


@dataclass(slots=True)
class Falls:
    """The falls of one run, over its connections."""

    where: str
    is_below: bool = False
    at: list[float] = field(default_factory=list)  # of falls that count still, by this machine's monotonic clock

    def look(self, ceiling_ts: int, captured_ts: int) -> None:
        """Raises SourceUnavailable and SourceUnwilling for what may pass, SourceRefused."""
        if ceiling_ts >= captured_ts or not captured_ts:
            self.is_below = False
            return
        if ceiling_ts <= 0:
            raise SourceUnavailable(
                f"{METADATA} is gone", where=self.where, remedy="look whether the changefeed still writes"
            )
        now = time.monotonic()
        self.at = [at for at in self.at if now - at < TICDC_FALLS_SECONDS] + ([] if self.is_below else [now])
        self.is_below = True
        count = len(self.at)
        seconds = (physical_ms(captured_ts) - physical_ms(ceiling_ts)) / 1000
        if seconds > TICDC_FALL_SECONDS_MAX or count > TICDC_FALL_ATTEMPTS_MAX:
            raise SourceRefused(
                f"the checkpoint fell {count} times, by {seconds:.0f} s now, to {time_text(ceiling_ts)}: another"
                " changefeed writes here, or this one was set back",
                where=self.where,
                remedy=_REMEDY,
            )
        raise SourceUnwilling(
            f"the checkpoint fell below {captured_ts}, up to where all is captured",
            where=self.where,
            remedy=f"it is waited for; when it doesn't come: {_REMEDY}",
        )
