"""Our DDL reader against information_schema of a real MariaDB 10.11, statement by statement (corpus in ../shared)."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tidegate.schema.columns import TableVersion, VersionStatus
from tidegate.schema.script import Script, shown_columns

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "ddl" / "mariadb_ddl_replay.jsonl.gz"
FIELDS = ("name", "type", "nullable", "charset", "collation", "key")


def _known(version: TableVersion) -> list[tuple[Any, ...]]:
    return [tuple(column[field] for field in FIELDS) for column in shown_columns(version)]


def _truth(columns: list[list[Any]]) -> list[tuple[Any, ...]]:
    return [(name, kind, null == "YES", *rest[:3]) for name, kind, null, *rest in columns]


class Replay:
    """Runs the corpus's scripts and counts table states."""

    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.unknown: Counter[str] = Counter()
        self.statements = 0
        self.slowest = 0.0

    def run(self, steps: list[dict[str, Any]]) -> None:
        script = Script("test", "10.11.19-MariaDB", "latin1")  # as the recording server was set up
        for line, step in enumerate(steps):
            if not step["ok"]:
                continue
            self.statements += 1
            started = time.perf_counter()
            found = script.run(line, step["sql"])
            self.slowest = max(self.slowest, time.perf_counter() - started)
            for name, columns in step.get("changed", {}).items():
                self._compare(script, name, columns, step["sql"], found.error)

    def _compare(self, script: Script, name: str, columns: list[list[Any]], sql: str, error: str) -> None:
        database, table = name.split(".", 1)
        if (database, table) in script.history.held:
            self.states["unknown"] += 1
            self.unknown[(error or "an earlier statement").partition("; ")[0][-80:]] += 1
            return
        versions = script.history.versions(database, table)
        live = versions and versions[-1].status is not VersionStatus.DROPPED
        exact = live and _known(versions[-1]) == _truth(columns)
        self.states["exact" if exact else "wrong"] += 1
        if not exact:
            self.wrong.append(f"{sql}\n  ours  {_known(versions[-1]) if live else None}\n  truth {_truth(columns)}")


def test_states_are_exact_or_the_reader_says_that_it_does_not_know() -> None:
    if not CORPUS.exists():
        pytest.skip(f"no {CORPUS.name} beside the checkout: it derives from MariaDB's GPL tests and isn't copied")
    replay = Replay()
    with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
        scripts = [json.loads(line) for line in lines]
    started = time.perf_counter()
    for script in scripts:
        replay.run(script["seq"])
    mean = (time.perf_counter() - started) / replay.statements
    total = replay.states.total()
    known = replay.states["exact"] + replay.states["wrong"]
    print(f"{replay.statements} statements, {total} table states: {dict(replay.states)}")
    print(
        f"exact of known {replay.states['exact'] / known:.4%}, mean {mean * 1e6:.0f} us, slowest {replay.slowest:.3f} s"
    )
    print("unknown:", replay.unknown.most_common(5))
    print("\n".join(replay.wrong[:20]))
    assert replay.states["exact"] >= 0.998 * known
    # What it doesn't know is CREATE ... SELECT, which a row-based binlog never holds in this form.
    assert replay.states["unknown"] <= 0.1 * total
    assert replay.slowest < 1.0
