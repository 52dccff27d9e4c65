"""A checkpoint that falls: who writes it doesn't know of all that was captured.

In:  the checkpoint at each look, and up to where all is captured.
Out: nothing, or why capture doesn't go on.

One changefeed's checkpoint falls by seconds, when its owner dies before it has told etcd what it told the path; it
writes the same rows once more. Two changefeeds of one path tell theirs by turns, and what the lower one writes is
passed over once the higher one was believed. So a fall is waited for, and its size and its number say which it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.commit_ts import physical_ms, time_text
from tidegate.errors import SourceRefused, SourceUnavailable, SourceUnwilling
from tidegate.limits import TICDC_FALL_ATTEMPTS_MAX, TICDC_FALL_SECONDS_MAX
from tidegate.ticdc.layout import METADATA

_REMEDY = (
    "give each changefeed a path of its own; one that was set back begins anew with a new path and a new lake. Rows of"
    " what was captured meanwhile may be missing: compare with TiDB"
)


@dataclass(slots=True)
class Falls:
    """Of one run, over its connections."""

    where: str
    count: int = 0
    is_below: bool = False

    def look(self, ceiling_ts: int, captured_ts: int) -> None:
        """Raises SourceUnavailable and SourceUnwilling for what may pass, SourceRefused."""
        if ceiling_ts >= captured_ts or not captured_ts:
            self.is_below = False
            return
        if ceiling_ts <= 0:
            raise SourceUnavailable(
                f"{METADATA} is gone", where=self.where, remedy="look whether the changefeed still writes"
            )
        self.count += not self.is_below
        self.is_below = True
        seconds = (physical_ms(captured_ts) - physical_ms(ceiling_ts)) / 1000
        if seconds > TICDC_FALL_SECONDS_MAX or self.count > TICDC_FALL_ATTEMPTS_MAX:
            raise SourceRefused(
                f"the checkpoint fell {self.count} times, by {seconds:.0f} s now, to {time_text(ceiling_ts)}: another"
                " changefeed writes here, or this one was set back",
                where=self.where,
                remedy=_REMEDY,
            )
        raise SourceUnwilling(
            f"the checkpoint fell below {captured_ts}, up to where all is captured",
            where=self.where,
            remedy=f"it is waited for; when it doesn't come: {_REMEDY}",
        )
