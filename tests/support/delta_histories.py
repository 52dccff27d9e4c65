"""Random histories of a Delta table, and what the protocol makes of them, said as plainly as can be.

In:  hypothesis.
Out: commits (lists of actions); State: what is left behind them ("Action Reconciliation").
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.support.memory_store import MemoryStore
from tidegate.delta.object_names import commit_name

Action = dict[str, Any]
NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors", "domainMetadata", "appendOnly"],
}


@dataclass
class State:
    """As the protocol words it: one protocol and metaData, txn by appId, domains, files by (path, vector)."""

    protocol: Action | None = None
    metadata: Action | None = None
    txn: dict[str, Action] = field(default_factory=dict)
    domains: dict[str, Action] = field(default_factory=dict)
    files: dict[tuple[str, str], tuple[str, Action]] = field(default_factory=dict)

    def take(self, actions: list[Action]) -> State:
        for action in actions:
            ((kind, body),) = action.items()
            if kind in ("add", "remove"):
                self.files[body["path"], unique_id(body.get("deletionVector"))] = (kind, body)
            elif kind == "txn":
                self.txn[body["appId"]] = body
            elif kind == "domainMetadata":
                self.domains[body["domain"]] = body
            elif kind == "protocol":
                self.protocol = body
            elif kind == "metaData":
                self.metadata = body
        return self

    def rows(self, *, tombstones_after_ms: int | None) -> list[Action]:
        """What a checkpoint holds, in the order of `ordered`. tombstones_after_ms: None for none of them."""
        kept: list[Action] = [{"protocol": self.protocol}, {"metaData": self.metadata}]
        kept += [{"txn": body} for body in self.txn.values()]
        kept += [{"domainMetadata": body} for body in self.domains.values() if not body["removed"]]
        for kind, body in self.files.values():
            if kind == "add":
                kept.append({"add": body | {"dataChange": False}})
            elif tombstones_after_ms is not None and body.get("deletionTimestamp", 0) > tombstones_after_ms:
                bare = {name: value for name, value in body.items() if name not in ("stats", "tags")}
                kept.append({"remove": bare | {"dataChange": False}})
        return ordered(kept)


def ordered(actions: list[Action]) -> list[Action]:
    """So that two lists of the same actions are equal."""
    return sorted(actions, key=lambda one: json.dumps(one, sort_keys=True))


def unique_id(vector: Action | None) -> str:
    if vector is None:
        return ""
    offset = f"@{vector['offset']}" if "offset" in vector else ""
    return f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"


def stored(commits: list[list[Action]], store: MemoryStore | None = None) -> MemoryStore:
    """The commits in a log's folder."""
    store = store or MemoryStore()
    for version, actions in enumerate(commits):
        text = "".join(json.dumps(action) + "\n" for action in actions)
        store.create(commit_name(version), text.encode())
    return store


_TEXTS = st.sampled_from(["", "a", "é\u2028", '"', "\\", "2026-01-01 00:00:00", "\U0001f600", "\n"])
_VECTORS = st.fixed_dictionaries(
    {
        "storageType": st.sampled_from(["u", "i", "p"]),
        "pathOrInlineDv": st.sampled_from(
            ["ab^-aqEH.-t@S}K{vb[*k^", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"]
        ),
        "sizeInBytes": st.integers(1, 2**31 - 1),
        "cardinality": st.integers(1, 2**40),
    },
    optional={"offset": st.integers(0, 3)},
)
_ADD = {
    "partitionValues": st.dictionaries(st.sampled_from(["p", "q"]), st.none() | _TEXTS, max_size=2),
    "size": st.integers(0, 2**60),
    "modificationTime": st.integers(0, NOW_MS),
    "dataChange": st.booleans(),
}
_ADD_MAY = {
    "stats": st.sampled_from(['{"numRecords":3}', '{"numRecords":1,"minValues":{"é":"\\u0000"}}']),
    "tags": st.dictionaries(_TEXTS, _TEXTS, max_size=2),
    "baseRowId": st.integers(0, 2**50),
    "defaultRowCommitVersion": st.integers(0, 99),
    "clusteringProvider": st.just("liquid"),
}


@st.composite
def metadatas(draw: st.DrawFn) -> Action:
    configuration = draw(
        st.sampled_from(
            [
                {},
                {"delta.deletedFileRetentionDuration": "interval 2 days"},
                {"delta.deletedFileRetentionDuration": "interval 0 days", "x": ""},
            ]
        )
    )
    body: Action = {
        "id": "5e1f6f1e-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": '{"type":"struct","fields":[]}',
        "partitionColumns": draw(st.sampled_from([[], ["p"], ["p", "q"]])),
        "configuration": configuration,
    }
    return body | draw(st.sampled_from([{}, {"createdTime": 3}, {"name": "n", "description": "é"}]))


@st.composite
def histories(draw: st.DrawFn) -> list[list[Action]]:
    """Valid commits: in each at most one add and one remove of a path; what is removed is live, or was before."""
    commits: list[list[Action]] = [[{"protocol": PROTOCOL}, {"metaData": draw(metadatas())}]]
    live: dict[str, Action] = {}
    return commits + [draw(_commits(live)) for _ in range(draw(st.integers(0, 7)))]


@st.composite
def _commits(draw: st.DrawFn, live: dict[str, Action]) -> list[Action]:
    """One more commit; `live` (path -> add) is carried forward."""
    actions: list[Action] = [{"commitInfo": {"operation": "WRITE"}}] if draw(st.booleans()) else []
    for path in draw(st.lists(st.sampled_from([f"part-{n}%20a.parquet" for n in range(5)]), unique=True, max_size=3)):
        there = live.pop(path, None)
        again = draw(st.sampled_from(["same", "new", "gone"]))
        if there is not None and again != "same":
            actions.append({"remove": draw(_removes(there))})
        if again != "gone":
            add: Action = {"path": path} | draw(st.fixed_dictionaries(_ADD, optional=_ADD_MAY))
            before = None if there is None else there.get("deletionVector")
            vector = before if there is not None and again == "same" else draw(st.none() | _VECTORS)
            if there is not None and again == "new" and unique_id(vector) == unique_id(before):
                vector = {"storageType": "u", "pathOrInlineDv": "x" * 20, "sizeInBytes": 1, "cardinality": 1}
            live[path] = add | ({} if vector is None else {"deletionVector": vector})
            actions.append({"add": live[path]})
    for app in draw(st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=2)):
        actions.append({"txn": {"appId": app, "version": draw(st.integers(0, 2**60))}})
        if draw(st.booleans()):
            actions[-1]["txn"]["lastUpdated"] = NOW_MS
    for domain in draw(st.lists(st.sampled_from(["delta.clustering", "d"]), unique=True, max_size=2)):
        removed = draw(st.booleans())
        actions.append({"domainMetadata": {"domain": domain, "configuration": draw(_TEXTS), "removed": removed}})
    if draw(st.integers(0, 5)) == 0:
        actions.append({"metaData": draw(metadatas())})
    return actions[::-1] if draw(st.booleans()) else actions


@st.composite
def _removes(draw: st.DrawFn, add: Action) -> Action:
    body: Action = {"path": add["path"], "dataChange": True}
    if draw(st.integers(0, 9)):
        body["deletionTimestamp"] = NOW_MS - draw(st.integers(0, 10)) * DAY_MS
    if draw(st.booleans()):
        body |= {name: add[name] for name in ("partitionValues", "size", "tags", "stats", "baseRowId") if name in add}
        body["extendedFileMetadata"] = True
    return body | ({"deletionVector": add["deletionVector"]} if "deletionVector" in add else {})
