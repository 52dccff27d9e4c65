"""Write a checkpoint of a Delta table at one of its versions, without a TableState.

In:  a log's folder: the checkpoint before that version, and the commits since.
Out: a classic checkpoint (V1 spec, one Parquet file), and `_last_checkpoint`.

Why it is right:
1. Actions are reconciled by the protocol ("Action Reconciliation"). The newest reference to a
   logical file (path and deletion vector) wins. So do the newest protocol, the newest metaData, the
   newest txn per application, and the newest domainMetadata per domain. Removed domains go.
   Tombstones stay while VACUUM may need them, in Delta's own words: while deletionTimestamp is
   later than now less delta.deletedFileRetentionDuration.
2. Files no later commit names are carried over as Arrow rows. The work grows with the table's list
   of files, but no Python object is made for each.
3. The object is made whole, by put-if-absent. No reader takes a part for the whole, and a reader by
   ranges gets one object only. Another writer's checkpoint of the same version is equivalent, so
   the first one stays.
4. A caller that knows how many files the table has at that version says so. A checkpoint with
   another number isn't written.

Readers that know v2Checkpoint also take classic checkpoints ("Checkpoints": a writer may always
write them). Statistics are written as text, whatever delta.checkpoint.writeStatsAs* say. Every
reader takes them, and readers that look for another column find null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.delta.checkpoints.checkpoint import find, read
from tidegate.delta.checkpoints.contents import Contents
from tidegate.delta.checkpoints.rows import SCHEMA, column, conformed, key, table
from tidegate.delta.commit_file import read_commit
from tidegate.delta.object_names import (
    LAST_CHECKPOINT,
    Hint,
    LogCheckpoint,
    checkpoint_name,
    checkpoints,
    hinted,
)
from tidegate.delta.stores.store import LogStore
from tidegate.delta.table.features import unknown
from tidegate.delta.table.log_retention import tombstones_ms, transactions_ms
from tidegate.delta.table.state import Action, file_key
from tidegate.errors import DeltaUnsupported, LakeRefused, LakeUnavailable
from tidegate.limits import CHECKPOINT_BATCH_ROWS
from tidegate.remedy import REPORT

# A feature that a log can be read with demands nothing else of a checkpoint. Exceptions: catalogManaged (a catalog has
# its commits), adaptiveMetadata (its files aren't in checkpoints), and features that are newer than this list.
# Before this version, a writer of checkpoints must know each version's protocol (RFC "Checkpoint Protection").
_PROTECTED: Final = "delta.requireCheckpointProtectionBeforeVersion"
_CODEC: Final = "zstd"
_CODEC_LEVEL: Final = 1


def write(store: LogStore, version: int, *, now_ms: int, files: int | None = None) -> Hint:
    """Make the checkpoint of a committed version. Returns the content of its `_last_checkpoint`. An
    existing one stays.

    now_ms: Unix time, for tombstones. files: live files at that version, if the caller knows.
    Raises LakeUnavailable (also if the log was cleaned up meanwhile), LakeRefused,
    DeltaUnsupported.
    """
    earlier = find(store, version)
    if earlier is not None and earlier.version == version:
        return _there(store, earlier)
    made = read(store, earlier, lambda before: _made(store, before, version, now_ms), version) if earlier else None
    made = made or _made(store, None, version, now_ms)
    if files is not None and made.hint.adds != files:
        raise LakeRefused(
            f"the checkpoint of version {version} would have {made.hint.adds} files, the table has {files}",
            where=store.where,
            remedy=f"{REPORT}; the table itself is as it was",
        )
    hint = _stored(store, made)
    _point(store, hint)
    return hint


@dataclass(frozen=True, slots=True)
class _Made:
    hint: Hint
    data: bytes


def _there(store: LogStore, checkpoint: LogCheckpoint) -> Hint:
    """The hint for an existing checkpoint: its writer may have been killed before it wrote
    `_last_checkpoint`.
    """
    name, size = checkpoint.files[0].name, sum(entry.size for entry in checkpoint.files)
    if name != checkpoint_name(checkpoint.version):
        # For a checkpoint of several objects the hint must say more, so it is left to their writer.
        return Hint(checkpoint.version, -1, size)
    hint = _read_back(store, checkpoint.version)
    _point(store, hint)
    return hint


def _stored(store: LogStore, made: _Made) -> Hint:
    """Put it under its name, unless another writer's checkpoint is there."""
    name = checkpoint_name(made.hint.version)
    if store.create(name, made.data):
        return made.hint
    standing = store.stat(name)
    if standing is not None and standing.size:
        return _read_back(store, made.hint.version)
    store.replace(name, made.data)  # the present one is empty: some writers leave such a file when they are killed
    return made.hint


def _read_back(store: LogStore, version: int) -> Hint:
    name = checkpoint_name(version)
    data = store.get(name) or b""
    try:
        return Hint(version, pq.read_metadata(pa.BufferReader(data)).num_rows, len(data))
    except (pa.ArrowException, OSError) as error:
        raise LakeRefused(
            f"{name} is there, but isn't readable: {error}", where=store.where, remedy="remove that file"
        ) from error


def _point(store: LogStore, hint: Hint) -> None:
    """Let `_last_checkpoint` name it, unless it names a later one that exists."""
    named = hinted(store.get(LAST_CHECKPOINT))
    if named == hint.version or (
        named is not None
        and named > hint.version
        and any(checkpoint.version >= named for checkpoint in checkpoints(store.names(f"{named:020d}")))
    ):
        return
    store.replace(LAST_CHECKPOINT, hint.text().encode())


# --- contents -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Later:
    """The state after the commits so far. files: the newest reference to each logical file they
    name.
    """

    protocol: Action = field(default_factory=dict)
    metadata: Action = field(default_factory=dict)
    transactions: dict[str, Action] = field(default_factory=dict)
    domains: dict[str, Action] = field(default_factory=dict)
    files: dict[tuple[str, str], tuple[str, Action]] = field(default_factory=dict)

    def take(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if body := action.get("add"):
                self.files[file_key(body)] = ("add", body)
            elif body := action.get("remove"):
                self.files[file_key(body)] = ("remove", body)
            elif body := action.get("txn"):
                self.transactions[body["appId"]] = body
            elif body := action.get("domainMetadata"):
                self.domains[body["domain"]] = body
            elif body := action.get("metaData"):
                self.metadata = body
            elif body := action.get("protocol"):
                self.protocol = body

    def small(self, now_ms: int) -> dict[str, list[Action]]:
        """The actions of a checkpoint that aren't about files."""
        keep_ms = transactions_ms(self.configuration)
        transactions = list(self.transactions.values())
        if keep_ms is not None:  # a transaction without a time never counts as old
            transactions = [
                transaction
                for transaction in transactions
                if (transaction.get("lastUpdated") or now_ms) > now_ms - keep_ms
            ]
        domains = [domain for domain in self.domains.values() if not domain.get("removed")]
        single = {"protocol": [self.protocol], "metaData": [self.metadata]}
        return single | {"domainMetadata": domains, "txn": transactions}

    @property
    def configuration(self) -> Mapping[str, str]:
        return self.metadata.get("configuration") or {}

    def named(self, kind: str) -> list[Action]:
        """The add or remove actions that are the newest reference to their file."""
        return [body for referenced, body in self.files.values() if referenced == kind]


def _made(store: LogStore, before: Contents | None, version: int, now_ms: int) -> _Made:
    later = _Later()
    if before is not None:
        later.take(before.others)
        later.take(before.loose)
    for number in range(0 if before is None else before.version + 1, version + 1):
        later.take(_commit(store, number))
    _check(store, version, later)
    try:
        return _encoded(before, later, version, now_ms)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise LakeRefused(
            f"an action up to version {version} doesn't follow the protocol: {error}",
            where=store.where,
            remedy=f"let Spark write a checkpoint, and {REPORT}",
        ) from error


def _encoded(before: Contents | None, later: _Later, version: int, now_ms: int) -> _Made:
    oldest_ms = now_ms - tombstones_ms(later.configuration)
    named = pa.array([f"{path}\0{vector}" for path, vector in later.files], pa.string())
    adds, removes = later.named("add"), later.named("remove")
    removes = [body for body in removes if (body.get("deletionTimestamp") or 0) > oldest_ms]
    rows, files = _Rows(), len(adds)
    for kind, bodies in later.small(now_ms).items():
        rows.add_all(kind, bodies)
    for batch in before.batches() if before is not None else ():
        for kind, actions in batch.items():
            kept = _untouched(kind, actions, named, oldest_ms)
            rows.add(table({kind: kept}))
            files += len(kept) if kind == "add" else 0
    rows.add_all("add", adds)
    rows.add_all("remove", removes)
    data = rows.finished()
    return _Made(Hint(version, rows.count, len(data), files), data)


def _commit(store: LogStore, version: int) -> list[dict[str, Any]]:
    actions = read_commit(store, version)
    if actions is None:
        raise LakeUnavailable(
            f"version {version} isn't there (any more): no checkpoint is made over a gap", where=store.where
        )
    return actions


def _untouched(kind: str, actions: Any, named: Any, oldest_ms: int) -> Any:
    """The rows of a batch that still count, in our types. named: keys of files that later commits
    name.
    """
    stands = pc.and_(actions.is_valid(), pc.invert(pc.is_in(key(actions), value_set=named)))
    if kind == "remove":
        fields = dict(zip((child.name for child in actions.type), actions.flatten(), strict=True))
        times = fields.get("deletionTimestamp", pa.nulls(len(actions), pa.int64()))
        stands = pc.and_(stands, pc.greater(pc.fill_null(times, 0), oldest_ms))
    return conformed(kind, actions.filter(stands))


def _check(store: LogStore, version: int, later: _Later) -> None:
    """Refuse a table whose checkpoint would have to say more, or whose log lacks its beginning."""
    if not later.protocol or not later.metadata:
        raise LakeRefused(
            f"its log has no protocol or no metaData up to version {version}",
            where=store.where,
            remedy="restore its first commits, or a checkpoint",
        )
    odd = unknown(later.protocol)
    if version < int(later.configuration.get(_PROTECTED, 0)):
        odd.append(f"{_PROTECTED} after version {version}")
    if odd:
        raise DeltaUnsupported(
            f"a checkpoint of a table with {odd[0]} isn't written by tidegate",
            where=store.where,
            remedy="take the feature off the table, or let Spark write them",
        )


class _Rows:
    """A Parquet file in memory, in row groups of a batch."""

    def __init__(self) -> None:
        self.count = 0
        self._sink = pa.BufferOutputStream()
        # Plain Parquet for every reader: without an Arrow schema. Text of many kinds gains little from dictionaries.
        self._writer = pq.ParquetWriter(
            self._sink,
            SCHEMA,
            compression=_CODEC,
            compression_level=_CODEC_LEVEL,
            use_dictionary=False,
            store_schema=False,
        )
        self._held: list[Any] = []

    def add(self, rows: Any) -> None:
        self.count += rows.num_rows
        self._held.append(rows)
        if sum(held.num_rows for held in self._held) >= CHECKPOINT_BATCH_ROWS:
            self._flush()

    def add_all(self, kind: str, actions: Sequence[Action]) -> None:
        for start in range(0, len(actions), CHECKPOINT_BATCH_ROWS):
            self.add(table({kind: column(kind, actions[start : start + CHECKPOINT_BATCH_ROWS])}))

    def finished(self) -> bytes:
        self._flush()
        self._writer.close()
        return bytes(self._sink.getvalue())

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._held), row_group_size=2 * CHECKPOINT_BATCH_ROWS)
        self._held = []
