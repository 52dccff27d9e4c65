"""The writes that a Pump lets in: those of one cluster, with possible timestamps of its PD.

In:  the cluster, as the pipeline file, the captured log, PD, or another Pump gives it; PD's
     timestamps; the writers.
Out: the reason to refuse a write, before anything of it is stored or acknowledged; the cluster, for
     the Pump to keep.

Nobody logs in at a Pump. A clone of a cluster has the same table ids, so its rows would go into the
same tables. While nobody knows the cluster, the first write names it. A timestamp from the future
would be believed, too: everything that is committed until then would then count as late.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tidegate.commit_ts import compose, physical_ms, time_text
from tidegate.limits import PUMP_KEY_BYTES_MAX, TIMESTAMP_AHEAD_SECONDS_MAX
from tidegate.tidb.records.payload import NOTES, Binlog


class Door:
    """The door of one run. Requests come on many threads. known: asked for the cluster before a first write says it."""

    def __init__(self, cluster: int | None = None) -> None:
        self.known: Callable[[], int | None] = lambda: None
        self._cluster = cluster
        self._lock = threading.Lock()
        self._clock = (0, 0.0)  # a timestamp of PD's, and when by this machine's monotonic clock

    @property
    def cluster(self) -> int | None:
        return self._cluster

    def refuses_cluster(self, cluster: int) -> str:
        """Why a cluster's writes are refused; "" for the known cluster, or while none is known."""
        known = self._cluster
        return f"this Pump is of cluster {known}, not of {cluster}" if known not in (None, cluster) else ""

    def enters(self, cluster: int) -> str:
        """Like refuses_cluster, but the first cluster that enters becomes the Pump's."""
        with self._lock:
            if self._cluster is None:
                known = self.known()
                self._cluster = cluster if known is None else known
        return self.refuses_cluster(cluster)

    def saw(self, tso: int) -> None:
        """A timestamp that PD gave out just now."""
        self._clock = (tso, time.monotonic())

    def refuses(self, binlog: Binlog) -> str:
        """Why a binlog is refused; "" for what a TiDB may send."""
        if binlog.tp in NOTES or binlog.is_fake:
            return "only a Pump writes such a binlog"
        if len(binlog.prewrite_key) > PUMP_KEY_BYTES_MAX:
            return f"a key of {len(binlog.prewrite_key)} bytes is no TiDB's"
        latest = max(binlog.start_ts, binlog.commit_ts)
        if latest > self._latest_ts:
            return (
                f"timestamp {latest} is of {time_text(latest)}, more than {TIMESTAMP_AHEAD_SECONDS_MAX} s ahead of PD"
                " and of this machine's clock: it can't be PD's"
            )
        return ""

    @property
    def _latest_ts(self) -> int:
        """The largest timestamp that may be PD's. PD may be ahead of this machine; this machine's clock counts when PD
        can't be asked.
        """
        tso, since = self._clock
        pd_ms = physical_ms(tso) + (time.monotonic() - since) * 1000 if tso else 0.0
        return compose(int(max(pd_ms, time.time() * 1000)) + TIMESTAMP_AHEAD_SECONDS_MAX * 1000)
