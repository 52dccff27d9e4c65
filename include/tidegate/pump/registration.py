"""A Pump's record in PD: TiDB finds the Pump by it, and a person asks the Pump through it to pause
or to close.

In:  the Pump's facts; its record in PD, where somebody else may have written a state.
Out: the record, anew at every heartbeat; what was asked of the Pump.

A thread of its own writes the record, so TiDB's commits never wait for PD. While PD doesn't answer,
the thread says so and tries again later, and the Pump goes on serving. Every write is a swap
against the last seen revision, so a state that binlogctl or `tidegate pump --ask` has written
meanwhile is seen, not overwritten.

    online    it serves, and apply knows it (may_join)
    pausing   it serves no more, and isn't ended; on request likewise
    paused    it ended
    closing   on request: it takes answers and no prewrites, until none waits and bronze has all; kept over restarts
    offline   all of that is so; it is never registered again unless a person asks for it

A killed Pump stays as it was, with a heartbeat that grows old, and is online again when it is back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.commit_ts import compose, physical_ms
from tidegate.errors import SourceRefused, TidegateError
from tidegate.limits import (
    PUMP_HEARTBEAT_SECONDS,
    PUMP_LAST_WORD_SECONDS,
    PUMP_PD_WAIT_SECONDS_MAX,
    PUMP_SILENT_SECONDS,
)
from tidegate.pump.etcd import Etcd
from tidegate.pump.node import ASKED, SERVING, Node, NodeState, key_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PumpAddress:
    """node_id: the Pump's. host: where TiDB reaches it. may_join: whether TiDB may write to it yet;
    raises LakeUnavailable.
    """

    etcd: Etcd
    node_id: str
    host: str
    may_join: Callable[[], bool]
    heartbeat_seconds: float = PUMP_HEARTBEAT_SECONDS
    silent_seconds: float = PUMP_SILENT_SECONDS


class Registration:
    """The registration of one run. stop: set when a person asked the Pump to pause, or to close once it may."""

    def __init__(self, place: PumpAddress, stop: threading.Event) -> None:
        self._place = place
        self._stop = stop
        self._wake = threading.Event()
        self._rested = threading.Event()  # PD was told that it doesn't serve, or couldn't be
        self._failed = 0  # how often running PD couldn't be told
        self._serving = False
        self._last: NodeState | None = None  # the state to end with
        self._asked: NodeState | None = None
        self._revision: int | None = None  # None: whether the record is ours isn't known
        self._unsure: set[NodeState] = set(
            ASKED
        )  # of writes without an answer, an earlier run's too: they may have arrived
        self._stranger: tuple[int, float] | None = None  # revision, and since when it stands
        self._clock = (0, time.monotonic())
        self._resolved_ts = 0
        self._said = ""
        self._empty = False
        self._thread = threading.Thread(target=self._run, name="registration", daemon=True)
        self._thread.start()

    # --- what the Pump says ------------------------------------------------------------------------

    @property
    def refuses(self) -> bool:
        """Whether no more prewrites are taken."""
        return self._asked is not None

    def serves(self) -> None:
        self._rested.clear()
        self._serving = True
        self._wake.set()

    def tell(self, resolved_ts: int, latest_ts: int, *, empty: bool) -> None:
        """latest_ts: the latest known timestamp of PD's. empty: each of its prewrites has its
        answer, and none comes any more.
        """
        self._resolved_ts = resolved_ts
        if latest_ts > self._now_ts:  # a transaction may have begun some time ago
            self._clock = (latest_ts, time.monotonic())
        self._empty = empty
        if empty and self._asked is NodeState.CLOSING:
            self._stop.set()

    def rests(self) -> None:
        """It is about to serve no more. A PD that answers is given a little time to hear of it."""
        self._serving = False
        self._wake.set()
        if not self._failed:
            self._rested.wait(PUMP_LAST_WORD_SECONDS)

    def end(self, *, landed: bool) -> None:
        """The run is over. landed: bronze has all that was captured."""
        if self._asked is not NodeState.CLOSING:
            self._last = NodeState.PAUSED
        elif self._empty and landed:
            self._last = NodeState.OFFLINE
        else:
            self._last = NodeState.CLOSING
        self._wake.set()
        self._thread.join(PUMP_LAST_WORD_SECONDS)

    # --- its thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        wait = self._place.heartbeat_seconds
        ends = False
        while not ends:
            self._wake.wait(wait)
            self._wake.clear()
            ends, rests = self._last is not None, not self._serving
            try:
                self._say(self._beat())
            except TidegateError as error:
                wait = min(self._place.heartbeat_seconds * 2 ** min(self._failed, 10), PUMP_PD_WAIT_SECONDS_MAX)
                self._failed += 1
                what = "that it ends isn't there" if ends else "it isn't there as it is, and serves all the same"
                self._say(f"{what}: {error}")
            else:
                self._failed, wait = 0, self._place.heartbeat_seconds
            if rests:
                self._rested.set()

    def _say(self, what: str) -> None:
        """Log it once, until something else is to be said."""
        if what and what != self._said:
            log.warning("Pump %s in PD: %s", self._place.node_id, what)
        self._said = what or self._said

    def _beat(self) -> str:
        """The news to report. Raises SourceUnavailable, SourceRefused, LakeUnavailable."""
        wanted = self._wanted()
        if wanted is None:
            return ""
        if self._revision is None and (why := self._claim()):
            return why
        for _ in range(3):
            wanted = self._wanted() or NodeState.ONLINE
            if self._write(wanted):
                return f"{wanted} at {self._place.host}"
            if self._revision is None:
                return ""
        return ""

    @property
    def _now_ts(self) -> int:
        """About what PD would say now."""
        told_ts, since = self._clock
        return compose(physical_ms(told_ts) + int((time.monotonic() - since) * 1000))

    def _wanted(self) -> NodeState | None:
        """None: there is nothing to say."""
        if self._last is not None:
            return self._last if self._revision is not None else None
        if self._asked is not None:
            return self._asked
        if self._serving:
            return NodeState.ONLINE
        return NodeState.PAUSING if self._revision is not None else None

    def _claim(self) -> str:
        """Why the record isn't this Pump's yet; "" when it is. Raises SourceRefused when it is offline."""
        place = self._place
        entry = place.etcd.get(key_of(place.node_id))
        node = Node.parse(entry.value) if entry.value is not None else None
        if node is not None and node.state is NodeState.OFFLINE:
            raise SourceRefused(
                f"Pump {place.node_id} was closed and is offline",
                where=key_of(place.node_id),
                remedy="take it out of the pipeline file, or: `tidegate pump PIPELINE SOURCE --ask reopen`",
            )
        if node is not None and node.host != place.host and node.state in SERVING:
            now = time.monotonic()
            if self._stranger is None or self._stranger[0] != entry.revision:
                self._stranger = (entry.revision, now)
            if now - self._stranger[1] < place.silent_seconds:
                return f"one of this name is {node.state} at {node.host}; this one waits until that is silent"
        if node is None or node.state is not NodeState.CLOSING:
            if not place.may_join():
                return "it joins a pipeline: TiDB may find it once apply has run with it"
        else:
            self._asked = NodeState.CLOSING
        self._revision, self._stranger = entry.revision, None
        return ""

    def _write(self, state: NodeState) -> bool:
        """False: somebody else wrote meanwhile, and his state is taken."""
        place = self._place
        update_ts = self._now_ts if self._clock[0] else compose(int(time.time() * 1000))
        assert self._revision is not None, "it is claimed"
        node = Node(place.node_id, place.host, state, self._resolved_ts, update_ts)
        unsure = self._unsure | {state}
        self._unsure = unsure
        swapped, entry = place.etcd.swap(key_of(place.node_id), node.text, self._revision)
        self._revision, self._unsure = entry.revision, set()
        if swapped or entry.value is None:
            return swapped
        writer = Node.parse(entry.value)
        if writer.host != place.host:
            self._revision = None
            log.error(
                "Pump %s in PD: another one wrote there, from %s; give each a node of its own",
                node.node_id,
                writer.host,
            )
        elif writer.state in ASKED and writer.state not in unsure and self._serving:
            self._asked = writer.state
            if writer.state is NodeState.PAUSING:
                self._stop.set()
        return False
