"""A Pump's record in PD, which TiDB's pump client, SHOW PUMP STATUS and binlogctl read.

In:  a Pump's facts; the JSON of a record.
Out: the JSON, with the names and the order of TiDB Binlog's own; a Node.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tidegate.errors import SourceRefused

PUMPS: Final = "/tidb-binlog/v1/pumps/"


class NodeState(StrEnum):
    ONLINE = "online"  # TiDB writes to it
    PAUSING = "pausing"
    PAUSED = "paused"
    CLOSING = "closing"
    OFFLINE = "offline"


ASKED: Final = (NodeState.PAUSING, NodeState.CLOSING)  # states that a person may ask for
SERVING: Final = (NodeState.ONLINE, NodeState.PAUSING, NodeState.CLOSING)


@dataclass(frozen=True, slots=True)
class Node:
    """host: where TiDB writes to, host:port. max_commit_ts: no lower one comes. update_ts: of this
    record, about PD's time.
    """

    node_id: str
    host: str
    state: NodeState
    max_commit_ts: int = 0
    update_ts: int = 0

    @property
    def text(self) -> bytes:
        """The record as JSON. IsAlive is false, as TiDB's own Pumps write it: the state counts, and nobody reads
        IsAlive.
        """
        fields = {
            "nodeId": self.node_id,
            "host": self.host,
            "state": str(self.state),
            "isAlive": False,
            "score": 0,
            "label": None,
            "maxCommitTS": self.max_commit_ts,
            "updateTS": self.update_ts,
        }
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def parse(cls, text: bytes) -> Node:
        """Raises SourceRefused."""
        try:
            fields = json.loads(text)
            return cls(
                fields["nodeId"],
                fields["host"],
                NodeState(fields["state"]),
                int(fields.get("maxCommitTS") or 0),
                int(fields.get("updateTS") or 0),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise SourceRefused(
                f"a Pump's record in PD can't be read: {error!r} in {text[:200]!r}",
                where=PUMPS,
                remedy="find out who writes there; binlogctl shows and repairs it",
            ) from None


def key_of(node_id: str) -> str:
    return PUMPS + node_id
