"""The stream that a drainer pulls from a Pump: its committed transactions in order of commit_ts, as
TiDB Binlog's Pump sends them.

In:  bronze of one Pump; the commit_ts after which a drainer goes on.
Out: payloads of Commits with their rows, each once and in order; between them timestamps, which all
     later Commits are above. It never ends.

It reads bronze, not the value log. Therefore the thread that acknowledges TiDB's writes never waits for a
drainer, and a drainer is behind by the time that capture takes to land. A Pump of TiDB Binlog also
puts a Prewrite's rows into its Commit (pump/storage: PullCommitBinlog). Rollbacks are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tidegate.lake.bronze.index import BronzeIndex, read_segments
from tidegate.lake.bronze.lookback import lookback
from tidegate.lake.files import LakeFiles
from tidegate.limits import PUMP_PULL_SECONDS
from tidegate.segments.window import SegmentRef
from tidegate.tables import SegmentKind
from tidegate.tidb.records.enclosed import payloads_of
from tidegate.tidb.records.pairing import Pairing
from tidegate.tidb.records.payload import binlog_of, committed_payload, fake_payload


@dataclass(frozen=True, slots=True)
class Pulled:
    """commit_ts: where a drainer with this payload goes on."""

    start_ts: int
    commit_ts: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Pulls:
    """The pulls of one Pump. Each call reads for itself, on the caller's thread."""

    lake: LakeFiles
    source: str
    node: str

    def after(self, after_ts: int, stopped: Callable[[], bool]) -> Iterator[Pulled]:
        """Raises LakeRefused when bronze no longer reaches back so far, LakeUnavailable, StreamCorrupt."""
        index, pairing = BronzeIndex(self.lake), Pairing[bytes]([self.node], after_ts)
        last_seq, sent_ts = 0, after_ts
        while not stopped():
            index.refresh(max(sent_ts - 1, 0))
            index.check_reaches(sent_ts, [self.source])  # a prewrite without an answer is read already
            for ref in self._fresh(index, last_seq, after_ts):
                for pulled in self._of(ref, pairing, sent_ts):
                    sent_ts = pulled.commit_ts
                    yield pulled
                    if stopped():
                        return
                last_seq = ref.seq
            index.forget(max(sent_ts - 1, 0))
            time.sleep(PUMP_PULL_SECONDS)

    def _fresh(self, index: BronzeIndex, last_seq: int, after_ts: int) -> Iterable[SegmentRef]:
        """Unread segments; first those with rows for a commit above after_ts, too."""
        refs = index.refs.get(self.source, [])
        if last_seq:
            return [ref for ref in refs if ref.seq > last_seq]
        if not any(ref.max_commit_ts > after_ts for ref in refs):
            return []
        every = {ref.seq: ref for ref in [*lookback(self.lake, refs, self.source, after_ts), *refs]}
        return [every[seq] for seq in sorted(every)]

    def _of(self, ref: SegmentRef, pairing: Pairing[bytes], sent_ts: int) -> Iterator[Pulled]:
        """The commits in a segment, and how far it is resolved."""
        for _, segment in read_segments(self.lake, [ref]):
            if segment.kind is not SegmentKind.TIDB:
                continue
            for payload in payloads_of(segment):
                pairing.take(binlog_of(payload), self.node, payload)
            resolved_ts = min(segment.resolved_ts, pairing.resolved_ts)
            for committed in pairing.committed(resolved_ts):
                sent_ts = committed.commit_ts
                yield Pulled(committed.start_ts, sent_ts, committed_payload(binlog_of(committed.place), sent_ts))
            if resolved_ts > sent_ts:
                sent_ts = resolved_ts
                yield Pulled(resolved_ts, resolved_ts, fake_payload(resolved_ts))
