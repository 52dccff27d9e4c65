"""A person asks a Pump, through PD, to pause, to close, or to register again.

In:  PD; the Pump's node id; what is asked.
Out: a line for each change of its state, until it is what was asked for.

The Pump sees the written state at its next heartbeat, on whatever machine it runs. binlogctl's
`update-pump` asks the same by the states pausing and closing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Final

from tidegate.errors import CommitConflict, SourceUnavailable, UsageError
from tidegate.limits import PUMP_ASK_TRIES_MAX, PUMP_ASKED_SECONDS, PUMP_HEARTBEAT_SECONDS
from tidegate.pump.etcd import Etcd, EtcdEntry
from tidegate.pump.node import PUMPS, SERVING, Node, NodeState, key_of


class Wish(StrEnum):
    PAUSE = "pause"
    CLOSE = "close"
    REOPEN = "reopen"


# What is written -> what the Pump makes of it.
_ROADS: Final = {
    Wish.PAUSE: (NodeState.PAUSING, NodeState.PAUSED),
    Wish.CLOSE: (NodeState.CLOSING, NodeState.OFFLINE),
    Wish.REOPEN: (NodeState.PAUSED, NodeState.PAUSED),
}


def asked(
    etcd: Etcd,
    node_id: str,
    wish: Wish,
    poll_seconds: float = PUMP_HEARTBEAT_SECONDS / 2,
    patience_seconds: float = PUMP_ASKED_SECONDS,
) -> Iterator[str]:
    """Write the wish, and wait until it is fulfilled. Raises UsageError when the Pump's state doesn't allow it,
    SourceUnavailable when the Pump doesn't answer.
    """
    first, last = _ROADS[wish]
    entry = _write(etcd, node_id, wish, first)
    node = _node(node_id, entry)
    if wish is not Wish.REOPEN and not others_online(etcd, node_id):
        yield "no other Pump is online in PD: TiDB commits nothing until one is"
    yield f"{node_id} at {node.host}: {node.state}"
    said, heard_at = node.state, time.monotonic()
    while node.state is not last:
        time.sleep(poll_seconds)
        latest = etcd.get(key_of(node_id))
        if latest.revision != entry.revision:
            heard_at = time.monotonic()
        elif time.monotonic() - heard_at > patience_seconds:
            raise SourceUnavailable(
                f"Pump {node_id} is {node.state} and doesn't answer",
                where=node.host,
                remedy="look whether it runs and reaches PD; a closing goes on when it is started again",
            )
        entry, node = latest, _node(node_id, latest)
        if node.state is NodeState.ONLINE:  # it began just now, and took the wish for a record of its last run
            entry = _write(etcd, node_id, wish, first)
        if node.state is not said:
            yield f"{node_id} at {node.host}: {node.state}"
        said = node.state


def others_online(etcd: Etcd, node_id: str) -> list[str]:
    """Raises SourceUnavailable, SourceRefused."""
    nodes = [Node.parse(text) for text in etcd.under(PUMPS)]
    return [node.node_id for node in nodes if node.state is NodeState.ONLINE and node.node_id != node_id]


def _write(etcd: Etcd, node_id: str, wish: Wish, state: NodeState) -> EtcdEntry:
    for _ in range(PUMP_ASK_TRIES_MAX):
        entry = etcd.get(key_of(node_id))
        node = _node(node_id, entry)
        reopens, offline = wish is Wish.REOPEN, node.state is NodeState.OFFLINE
        if reopens != offline or (wish is Wish.PAUSE and node.state not in SERVING):
            raise UsageError(f"Pump {node_id} is {node.state}: it can't be asked to {wish}", where=key_of(node_id))
        if node.state is state:
            return entry
        swapped, entry = etcd.swap(key_of(node_id), replace(node, state=state).text, entry.revision)
        if swapped:
            return entry
    raise CommitConflict(f"Pump {node_id} wrote its record each time first", where=key_of(node_id), remedy="try again")


def _node(node_id: str, entry: EtcdEntry) -> Node:
    if entry.value is None:
        raise UsageError(f"PD knows no Pump {node_id}", where=PUMPS, remedy="PD knows a Pump once it has been online")
    return Node.parse(entry.value)
