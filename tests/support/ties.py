"""Several processes that commit to one Delta log at the same versions at the same time, and what is left of it.

In:  a table's place and options; how many processes and versions.
Out: Ties: how often more than one process tried the same version, and what each believes it won.

As a module it is one of these processes: it waits for a line on stdin, tries every version behind the newest it sees,
and prints the versions it won. It waits for others at each version: a tie is forced, not hoped for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from tidegate.delta.actions import metadata, protocol
from tidegate.delta.log import Change, DeltaLog
from tidegate.errors import CommitConflict, LakeUnavailable

_SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


@dataclass(frozen=True, slots=True)
class Ties:
    """won: per process the versions that it was told are its own. tried: per process the versions it tried."""

    won: list[list[int]]
    tried: list[list[int]]

    @property
    def forced(self) -> int:
        """Versions that more than one process tried."""
        seen: dict[int, int] = {}
        for versions in self.tried:
            for version in versions:
                seen[version] = seen.get(version, 0) + 1
        return sum(count > 1 for count in seen.values())


def run_ties(place: str, options: dict[str, str], *, processes: int, versions: int) -> Ties:
    """Commit versions 1 to `versions` from so many processes."""
    log = DeltaLog(place, options)
    log.commit(log.state(), Change([protocol(()), metadata(_SCHEMA, {})], "CREATE TABLE"))
    command = [sys.executable, "-m", "tests.support.ties", place, json.dumps(options), str(versions)]
    running = [
        subprocess.Popen([*command, str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for rank in range(processes)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [json.loads(process.communicate()[0]) for process in running]
    assert all(process.returncode == 0 for process in running)
    return Ties([one["won"] for one in found], [one["tried"] for one in found])


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


def _main(place: str, options: str, versions: str, rank: str) -> None:
    log, last = DeltaLog(place, json.loads(options)), int(versions)
    won: list[int] = []
    tried: list[int] = []
    sys.stdin.readline()
    state = log.state()
    while state.version < last:
        tried.append(state.version + 1)
        try:
            state = log.commit(state, Change([], "TIE", {rank: len(won) + 1}))
            won.append(state.version)
        except (CommitConflict, LakeUnavailable):
            state = log.state()
            if state.transaction(rank) > len(won):
                won.append(state.version)
    print(json.dumps({"won": won, "tried": tried}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
