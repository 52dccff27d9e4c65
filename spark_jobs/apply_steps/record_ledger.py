"""Account for every payload byte of the window.

In:  window.ledger, one entry per segment from decode.
Out: rows of control/ledger, in one commit that a second try of the same window does not repeat.
"""

from __future__ import annotations

import json

from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tidegate import tables


def record_ledger(app: Application, window: Window) -> None:
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
        for entry in window.ledger
    ]
    if not rows:
        return
    app_id = f"tidegate/{app.pipeline.pipeline}/ledger"
    mark = (app_id, window.cut_ts)
    if not window.main:
        # Ends of windows below the cut come in no order; what each publishes is a commit that nothing else counts.
        mark = (f"{app_id}/{window.behind or 'catch_up'}", app.publications(window))
    app.control.append(tables.LEDGER, rows, app_transaction=mark)
