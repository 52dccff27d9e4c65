"""Reasons are for people: with other words in their place the same happens to every table.

In:  a Log in which tables are held in many ways, mended, released, left and snapshotted.
Out: its standings, its snapshots and who is asked for: once with our words, and again with random ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.event_log import Log
from tests.support.seeds import share
from tests.support.wave_log import Waves, baseline
from tests.unit.binlog.encoding import events as e
from tidegate import config
from tidegate.errors import TidegateError
from tidegate.remedy import Needs
from tidegate.snapshot.progress.automatic import waiting
from tidegate.snapshot.progress.events import SnapshotEvent
from tidegate.snapshot.progress.standing import KnownEvents
from tidegate.standing import shown
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State

REMEDIES = [needs.words() for needs in Needs]
VOCABULARY = [
    *REMEDIES,
    *Cause,
    *State,
    *("NeedsSnapshot", "UnloggedChanges", "RenamedWithHeld shop.a", "BehindSource one", "TableWriteError 7", ""),
    *("tidegate schema judge", "tidegate release", "dropped at the source", "it catches up", "; or "),
]


def _lived(folder: Path) -> tuple[dict[str, Standing], dict[Any, Any], dict[str, Any]]:
    """What became of everything."""
    log = Log(folder)
    log.file.write_text(log.file.read_text().replace("ddl: {", "ddl: {drop_column: stop, "))
    version = baseline(log, "shop", "full")
    log.send("one", "CREATE TABLE shop.c (id INT PRIMARY KEY, v INT)", ("shop.c",))
    log.level()
    log.apply()
    # A gate, whose statement quotes the words that once let it pass.
    log.send("one", f"ALTER TABLE shop.c DROP COLUMN v /* {REMEDIES[2]} */", ("shop.c",))
    log.send("one", "UPDATE a SET id = 2")  # a statement in the place of rows
    log.send("two", "", event=e.event(77, b"x"))  # an event that nobody knows
    log.send("one", "RENAME TABLE shop.a TO shop.away", ("shop.a", "shop.away"))
    log.level()
    log.apply()
    log.send("one", "CREATE TABLE shop.a (id INT PRIMARY KEY)", ("shop.a",))
    log.send("one", "TRUNCATE TABLE shop.away", ("shop.away",))
    log.level()
    app = log.apply()
    reader = Waves(log, version)
    reader.read([1, 2, 3], app.cut_ts + 1, app.cut_ts + 1)
    log.level()
    log.apply()
    log.keeps("'shop.*', 'two.*'", "shop.b, shop.c")
    log.level()
    log.apply()
    log.keeps("'shop.*', 'two.*'")
    log.level()
    app = log.apply()
    for name in sorted(name for name, standing in app.states.items() if standing.releasable):
        log.run("release", str(log.file), name)
    log.level()
    app = log.apply()
    standings = {name: replace(standing, reason="") for name, standing in app.states.items()}
    progress = {key: of.state for key, of in KnownEvents.read(log.lake).tables.items()}
    return standings, progress, waiting(config.load(log.file), log.lake)


def _reword(patch: pytest.MonkeyPatch, seed: int) -> None:
    words = random.Random(seed)

    def other(*_: Any, **__: Any) -> str:
        return " ".join(words.choices(VOCABULARY, k=3))

    def rewording(kind: type) -> Callable[[Any], None]:
        before = getattr(kind, "__post_init__", lambda _: None)

        def after(self: Any) -> None:
            before(self)
            object.__setattr__(self, "reason", other())

        return after

    patch.setattr(Standing, "__post_init__", rewording(Standing))
    patch.setattr(SnapshotEvent, "__init__", _reworded_init(SnapshotEvent.__init__, other))
    patch.setattr(Needs, "words", other)
    patch.setattr(TidegateError, "line", property(other))
    patch.setattr(shown, "way_out", other)


def _reworded_init(before: Callable[..., None], other: Callable[[], str]) -> Callable[..., None]:
    def init(self: Any, *given: Any, **named: Any) -> None:
        before(self, *given, **named)
        object.__setattr__(self, "reason", other())

    return init


@pytest.mark.parametrize("seed", share([1, 2, 3]))
def test_with_other_words_the_same_happens(seed: int, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "others").mkdir()
    ours = _lived(tmp_path / "ours")
    with pytest.MonkeyPatch.context() as patch:
        _reword(patch, seed)
        others = _lived(tmp_path / "others")
    assert {name: replace(standing, reason="") for name, standing in others[0].items()} == ours[0]
    assert others[1:] == ours[1:]
    assert {State.HELD, State.ACTIVE} <= {standing.state for standing in ours[0].values()}, "else it shows little"


def test_a_gate_isn_t_passed_by_what_a_statement_says_in_a_comment(tmp_path: Path) -> None:
    """The words of a remedy, once found in the reason, had the table snapshotted, and its column went."""
    log = Log(tmp_path)
    log.file.write_text(log.file.read_text().replace("ddl: {", "ddl: {drop_column: stop, "))
    log.send("one", "CREATE TABLE shop.c (id INT PRIMARY KEY, v INT)", ("shop.c",))
    log.level()
    log.apply()
    for words in REMEDIES:
        log.send("one", f"ALTER TABLE shop.c DROP COLUMN v /* {words} */", ("shop.c",))
        log.send("one", "ALTER TABLE shop.c ADD COLUMN v INT", ("shop.c",))
    log.level()
    app = log.apply()
    standing = app.states["shop.c"]
    assert (standing.state, standing.cause, standing.lacks_rows) == (State.HELD, Cause.DDL_STOPS, False)
    assert "shop.c" not in waiting(config.load(log.file), log.lake), "no snapshot is asked for"
    assert shown.way_out(standing).startswith("change the policy under ddl")
