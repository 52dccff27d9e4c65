"""Several processes that commit to one Delta log at the same versions at the same time, and what is left of it.

In:  a table's place and options; how many processes and versions.
Out: Ties: what each process tried, and what it believes it won.

All of them have read the version before, and are let go at one moment: each version is a tie of all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from tests.support.forks import forks
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import add, metadata, protocol
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict, LakeUnavailable

_WAIT_SECONDS_MAX = 600  # for the slowest, on a busy machine
_SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


@dataclass(frozen=True, slots=True)
class Ties:
    """won: per process the versions that it was told are its own. tried: per process the versions it tried."""

    won: list[list[int]]
    tried: list[list[int]]

    @property
    def forced(self) -> int:
        """Versions that all processes tried."""
        return len(set.intersection(*map(set, self.tried)))


def run_ties(place: str, options: dict[str, str], *, processes: int, versions: int) -> Ties:
    """Commit versions 1 to `versions` from so many processes."""
    log = DeltaLog(place, options)
    log.commit(log.state(), Change([protocol(()), metadata(_SCHEMA, {})], "CREATE TABLE"))
    pipes = [forks.Pipe() for _ in range(processes)]
    start = forks.Barrier(processes, timeout=_WAIT_SECONDS_MAX)
    running = [
        forks.Process(target=_ties, args=(theirs, start, place, options, versions, str(rank)))
        for rank, (_, theirs) in enumerate(pipes)
    ]
    for process, (_, theirs) in zip(running, pipes, strict=True):
        process.start()
        theirs.close()
    found = [ours.recv() for ours, _ in pipes]
    for process in running:
        process.join()
    return Ties([won for won, _ in found], [tried for _, tried in found])


def check_ties(place: str, options: dict[str, str], ties: Ties, versions: int) -> None:
    """Every version was won by exactly one process, and the log holds what that one wrote."""
    winners: dict[int, int] = {}
    for rank, won in enumerate(ties.won):
        for version in won:
            assert version not in winners, f"version {version} was won by {winners[version]} and by {rank}"
            winners[version] = rank
    assert sorted(winners) == list(range(1, versions + 1))
    log = DeltaLog(place, options)
    counts = [0] * len(ties.won)
    for version in range(1, versions + 1):
        (txn,) = (action["txn"] for action in log.actions(version) or () if "txn" in action)
        rank = int(txn["appId"])
        counts[rank] += 1
        assert (rank, txn["version"]) == (winners[version], counts[rank]), f"version {version} isn't its winner's"
    state = log.state()
    assert state.version == versions
    assert [state.transaction(str(rank)) for rank in range(len(counts))] == counts == [len(won) for won in ties.won]


def eight_commits(place: str, failpoint: str | None) -> None:
    """Of a writer that goes on where it was; killed at the point, if one is given."""
    if failpoint is not None:
        os.environ["TIDEGATE_FAILPOINT"] = failpoint
    log = DeltaLog(place)
    for number in range(log.state().transaction("writer") + 1, 9):
        log.update(partial(_one_commit, number))


def _one_commit(number: int, read: TableState) -> Change | None:
    if read.transaction("writer") >= number:
        return None
    body = {"path": f"f{number}", "size": 1, "partitionValues": {}, "modificationTime": 1}
    return Change([add(body, data_change=True)], "WRITE", {"writer": number})


def _ties(pipe: Connection, start: Barrier, place: str, options: dict[str, str], versions: int, rank: str) -> None:
    log = DeltaLog(place, options)
    won: list[int] = []
    tried: list[int] = []
    state = log.state()
    while state.version < versions:
        start.wait()
        tried.append(state.version + 1)
        try:
            state = log.commit(state, Change([], "TIE", {rank: len(won) + 1}))
            won.append(state.version)
        except (CommitConflict, LakeUnavailable):
            state = log.state()
            if state.transaction(rank) > len(won):
                won.append(state.version)
    pipe.send((won, tried))
