"""The fate of each event, for the ledger, and how fates become bytes.

In:  one small number per event of an index: a rule of events.IGNORE_RULES, DECODED or QUARANTINED.
Out: Ledgers over captured bytes. A compressed event gets the worst fate of its content.

In the end every event has a fate: Settlement asserts it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.events import IGNORE_RULES, RULE_OF_TYPE
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.segments.result import Ledger

Fates = npt.NDArray[np.uint8]

# A larger number is a worse fate. Among the rules, those about rows come last.
UNDECIDED: Final = 0
_RULES: Final = tuple(IGNORE_RULES)
FATE_OF_RULE: Final = {rule: number for number, rule in enumerate(_RULES, 1)}
DECODED: Final = len(_RULES) + 1
QUARANTINED: Final = DECODED + 1
_FATE_OF_TYPE: Final = np.array(
    [FATE_OF_RULE.get(RULE_OF_TYPE.get(code, ""), UNDECIDED) for code in range(256)], np.uint8
)


def fates_by_type(index: EventIndex) -> Fates:
    """Fates of events whose type alone decides; UNDECIDED for statements, rows, and types without a
    rule.
    """
    return _FATE_OF_TYPE[index.events[:, K.TYPE]]


class Settlement:
    """Turns the fates of a segment's pieces into Ledgers, one per piece. Use one object for all
    pieces of a segment.
    """

    def __init__(self) -> None:
        self._waiting = UNDECIDED  # the worst fate so far of a captured event that continues in the next piece

    def settle(self, index: EventIndex, fates: Fates) -> Ledger:
        """The Ledger of the captured events that end in this piece."""
        assert fates.all(), "an event has no fate"
        sizes = index.events[:, K.SIZE]
        if index.expanded and len(fates):
            sizes, fates = self._captured(index, fates)
        by_fate = np.bincount(fates, weights=sizes, minlength=QUARANTINED + 1).astype(np.int64)
        ledger = Ledger(int(sizes.sum()), int(by_fate[DECODED]), quarantined_bytes=int(by_fate[QUARANTINED]))
        for rule, fate in FATE_OF_RULE.items():
            ledger.ignore(rule, int(by_fate[fate]))
        ledger.check()
        return ledger

    def _captured(self, index: EventIndex, fates: Fates) -> tuple[npt.NDArray[np.int64], Fates]:
        """Sizes and fates of the captured events that end in this piece."""
        origins = index.events[:, K.ORIGIN]
        starts = np.flatnonzero(np.diff(origins, prepend=-1))
        worst = np.maximum.reduceat(fates, starts)
        worst[0] = max(int(worst[0]), self._waiting)
        self._waiting = UNDECIDED
        if not index.complete:
            self._waiting = int(worst[-1])
            worst, starts = worst[:-1], starts[:-1]
        return index.captured_sizes(origins[starts]), worst
