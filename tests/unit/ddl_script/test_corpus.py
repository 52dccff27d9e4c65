"""Our DDL reader against information_schema of a real MariaDB 10.11, statement by statement (corpus in ../shared)."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tidegate.ddl_script.script import Script, ScriptStep
from tidegate.ddl_script.shown_columns import shown_columns
from tidegate.schema.model.server import ServerVersion

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "ddl" / "mariadb_ddl_replay.jsonl.gz"
VERSION = "10.11.19-MariaDB"
FIELDS = ("name", "type", "nullable", "charset", "collation", "key", "extra", "default", "generation_expression")
STRUCTURE = FIELDS[:6]
_WORDS = re.compile(r"\w+")


def _truth(columns: list[list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(FIELDS, [name, kind, null == "YES", *rest], strict=True)) for name, kind, null, *rest in columns]


def _only(columns: list[dict[str, Any]], fields: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [tuple(column[field] for field in fields) for column in columns]


def _shown(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without expressions, which we show as they were written and the server as it reads them."""
    found = []
    for column in columns:
        expression = column["generation_expression"] or "(" in (column["default"] or "")
        found.append(column | {"generation_expression": None, "default": None} if expression else column)
    return found


def _made_of_words_alone(words: set[str]) -> bool:
    return "create" in words and "table" in words and "like" not in words


class Replay:
    """Runs the corpus's scripts and counts table states: exact, wrong, unknown, and `shown` exact in every field.

    Only what hangs on a SELECT may be unknown: a table that was made by one, or from such a table.
    """

    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.hangs_on_select: set[str] = set()
        self.wrong: list[str] = []
        self.statements = 0
        self.slowest = 0.0
        self.seconds = 0.0

    def run(self, steps: list[dict[str, Any]]) -> None:
        script = Script("test", VERSION)
        self.hangs_on_select = set()
        for line, step in enumerate(steps):
            started = time.process_time()
            found = script.run(line, step["sql"])
            spent = time.process_time() - started
            self.statements += 1
            self.seconds += spent
            self.slowest = max(self.slowest, spent)
            self._note_select(step["sql"], step.get("changed", {}))
            for name, columns in step.get("changed", {}).items():
                self._compare(script, name, _truth(columns), found)

    def _note_select(self, sql: str, changed: Iterable[str]) -> None:
        words = set(_WORDS.findall(sql.lower()))
        from_one = any(name.split(".")[1].lower() in words for name in self.hangs_on_select)
        for name in changed:
            if "select" in words or (from_one and not _made_of_words_alone(words)):
                self.hangs_on_select.add(name)
            elif "create" in words:
                self.hangs_on_select.discard(name)

    def _compare(self, script: Script, name: str, truth: list[dict[str, Any]], found: ScriptStep) -> None:
        database, table = name.split(".", 1)
        if (database, table) in script.history.held:
            self.states["unknown"] += 1
            if name not in self.hangs_on_select:
                self.wrong.append(f"{found.sql}\n  isn't known: {script.history.held[database, table]}")
            return
        version = script.tables().get(name)
        ours = shown_columns(version, ServerVersion.of(VERSION)) if version else []
        exact = _only(ours, STRUCTURE) == _only(truth, STRUCTURE)
        self.states["exact" if exact else "wrong"] += 1
        self.states["shown"] += _shown(ours) == _shown(truth)
        if not exact:
            self.wrong.append(f"{found.sql}\n  ours  {ours}\n  truth {truth}")


def test_states_are_exact_or_the_reader_says_that_it_does_not_know() -> None:
    if not CORPUS.exists():
        pytest.skip(f"no {CORPUS.name} beside the checkout: it derives from MariaDB's GPL tests and isn't copied")
    replay = Replay()
    with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
        scripts = [json.loads(line) for line in lines]
    for script in scripts:
        replay.run(script["seq"])
    total = replay.states["exact"] + replay.states["wrong"] + replay.states["unknown"]
    mean = replay.seconds / replay.statements
    print(f"{replay.statements} statements, {total} table states: {dict(replay.states)}")
    print(f"mean {mean * 1e6:.0f} us CPU, slowest {replay.slowest:.3f} s")
    print("\n".join(replay.wrong[:20]))
    assert replay.wrong == []
    assert replay.states["shown"] >= 0.999 * replay.states["exact"]
    assert replay.states["exact"] > 0.92 * total
    assert replay.slowest < 0.5
