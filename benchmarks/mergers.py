"""The peers of apply: other programs that merge the same changes into the same table.

In:  the seed table; its content after our run, and a Parquet file of the last row of each changed key.
Out: Merger: changes per CPU second of one merge into a fresh copy; its table has the same content as ours, or it is
     left out.

Each has a process that stays up for all sets of changes. A copy is a new table to it, as it is to us: it reads the
log.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import seed
from benchmarks.context import Context
from benchmarks.figures import Missing
from benchmarks.peers import delta_rs, spark_merge
from benchmarks.peers.process import Peer
from benchmarks.readers import Content, content, write_changes

KEY = "id"
_DELETED = "gone"
_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Changes:
    """file: the last row of each changed key. changes: how many; after: what the table holds then."""

    table: Path
    file: Path
    changes: int
    after: Content


def changes_between(before: Path, after: Path, file: Path, changes: int, live: int) -> Changes:
    """What our run made of the table. The source says how many changes there were, and how many of the rows live."""
    upserts, deletes = write_changes(before, after, KEY, _DELETED, file)
    assert (upserts, deletes) == (live, changes - live), f"{upserts} rows came and {deletes} went, of {changes}, {live}"
    return Changes(before, file, changes, content(after))


class Program:
    """A process for one or more mergers, which starts when it is first needed."""

    def __init__(self, name: str, command: Callable[[], list[str]]) -> None:
        self._name, self._command = name, command
        self._peer: Peer | None = None

    def started(self, ctx: Context, closing: ExitStack) -> Peer:
        """Raises Missing."""
        if self._peer is None:
            self._peer = closing.enter_context(Peer(self._name, self._command()))
            ctx.meter.without.add(self._peer.pid)
        return self._peer


class Merger:
    """key: the end of its row's key in the report. vectors: whether its table has deletion vectors."""

    note = "it merges a Parquet file of the last row of each key, sorted by key, and decodes nothing"

    def __init__(self, name: str, key: str, vectors: bool, program: Program) -> None:
        self.name, self.key, self.vectors = name, key, vectors
        self._program = program
        self._peer: Peer | None = None

    def start(self, ctx: Context, closing: ExitStack) -> None:
        """Raises Missing."""
        self._peer = self._program.started(ctx, closing)

    def once(self, ctx: Context, work: Changes, *, check: bool = False) -> float:
        """Raises Missing: it failed, changed too few rows, or left another table than we."""
        assert self._peer is not None, "it runs"
        peer, target = self._peer, ctx.folder / f"merge-{next(_NUMBERS)}"
        seed.plain(work.table, target, vectors=self.vectors)
        asked = {"target": str(target), "changes": str(work.file), "key": KEY, "deleted": _DELETED}
        run = ctx.meter.run(lambda: peer.go(asked, work.changes), root=peer.pid)
        if check and content(target) != work.after:
            raise Missing(f"{self.name}: its table differs from ours: {content(target)} and {work.after}")
        shutil.rmtree(target)
        return work.changes / run.cpu_seconds


def all_of(ctx: Context) -> list[Merger]:
    """Delta's own MERGE, with and without deletion vectors, and delta-rs, which can't write those."""
    spark = Program(spark_merge.NAME, lambda: spark_merge.program(ctx.root))
    rust = Program(delta_rs.NAME, lambda: delta_rs.program(ctx.cache))
    return [
        Merger(delta_rs.NAME, "delta_rs", False, rust),
        Merger(f"{spark_merge.NAME}, deletion vectors", "merge", True, spark),
        Merger(f"{spark_merge.NAME}, no deletion vectors", "merge_without_vectors", False, spark),
    ]
