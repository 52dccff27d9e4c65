"""Account for every payload byte of the window.

In:  the fate of each segment of the window: one entry, and one more of prewrites.
Out: rows of control/ledger, in one commit, not repeated by a second try of the same window.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.window import Accounted, Window
from tidegate import tables
from tidegate.segments.result import Ledger

# Rules of the ledger: of what this reading passes over, and of rows that wait for their answer.
_OUTSIDE: Final = "outside the window"
_PREWRITTEN: Final = "prewrite"


def record_ledger(app: Application, window: Window, accounted: Iterable[Accounted]) -> None:
    """Append the ledger under the cut's own transaction version."""
    rows = [
        {
            "source": entry.source,
            "seq": entry.seq,
            "cut_ts": window.cut_ts,
            "payload_bytes": entry.ledger.payload_bytes,
            "decoded_bytes": entry.ledger.decoded_bytes,
            "ignored_bytes": sum(entry.ledger.ignored.values()),
            "quarantined_bytes": entry.ledger.quarantined_bytes,
            "ignored_by_rule": json.dumps(entry.ledger.ignored, sort_keys=True),
            "rows": entry.ledger.rows,
            "null_dates": entry.ledger.null_dates,
        }
        for entry in _whole(accounted)
    ]
    if not rows:
        return
    app_id = f"tidegate/{app.pipeline.pipeline}/ledger"
    mark = (app_id, window.cut_ts)
    if not window.main:
        # Windows below the cut end in no order, so their cut_ts is no transaction version. The number of their
        # publication is.
        mark = (f"{app_id}/{window.behind or 'catch_up'}", app.positions.publications(window))
    app.control.append(tables.LEDGER, rows, app_transaction=mark)


def _whole(accounted: Iterable[Accounted]) -> Iterator[Accounted]:
    """One entry per segment. Rows that are prepared and committed in the same window are read
    twice, and count once.
    """
    entries = list(accounted)
    later = {(entry.source, entry.seq): entry for entry in entries if entry.prewritten}
    for entry in entries:
        if not entry.prewritten:
            twin = later.pop((entry.source, entry.seq), None)
            yield entry if twin is None else replace(entry, ledger=_both(entry.ledger, twin.ledger))
    yield from later.values()


def _both(first: Ledger, prewritten: Ledger) -> Ledger:
    """The ledger of both readings: bytes that wait in the first one count as in the second."""
    ignored = {rule: count for rule, count in prewritten.ignored.items() if rule != _OUTSIDE}
    taken = Ledger(
        prewritten.decoded_bytes + prewritten.quarantined_bytes + sum(ignored.values()),
        prewritten.decoded_bytes,
        ignored,
        prewritten.quarantined_bytes,
        prewritten.rows,
        prewritten.null_dates,
    )
    left = first.ignored | {_PREWRITTEN: first.ignored.get(_PREWRITTEN, 0) - taken.payload_bytes}
    both = replace(first, payload_bytes=first.payload_bytes - taken.payload_bytes, ignored=left)
    both.add(taken)
    both.check()
    return both
