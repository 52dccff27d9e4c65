"""Pipeline files of tables in several modes are valid, whatever is edited; and servers take what people compose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from tests.soak.modes.mixed import APART, MixedSettings, mixed, words_of
from tests.soak.modes.pasts import Past
from tests.soak.modes.people import People
from tests.soak.modes.replay import Replay
from tests.soak.source import DATABASE
from tests.support.own_server import own_server_or_skip
from tidegate import config

_HEAD = "pipeline: p\nlake: {path: lake}\nsources: {one: {conn_id: one, flavour: mysql, start: now}}\n"


def test_edits_leave_a_valid_file_and_modes_that_fit_together(tmp_path: Path) -> None:
    rng = random.Random(7)
    settings = MixedSettings(tmp_path / "file.yaml", _HEAD, mixed(rng))
    names = [f"{DATABASE}.{name}" for name in settings.tables]
    met = set()
    for _ in range(300):
        settings.edit(rng, names)
        for table in settings.tables.values():
            words: Sequence[str] = [word for word in words_of(table) if table.has(word)]
            met |= {frozenset(pair) for pair in combinations(words, 2)}
        config.load(tmp_path / "file.yaml")
    assert met.isdisjoint(map(frozenset, APART))
    words = words_of(next(iter(settings.tables.values())))
    assert met >= {frozenset(pair) for pair in combinations(words, 2)} - set(map(frozenset, APART))
    assert settings.edited == settings.tables.keys()


@pytest.mark.server
@pytest.mark.parametrize("flavour", ["mariadb", "mysql9"])
def test_a_server_takes_what_people_compose_and_the_reader_follows_it(flavour: str, tmp_path: Path) -> None:
    rng = random.Random(8)
    tables = mixed(rng)
    with own_server_or_skip(flavour, tmp_path / "server") as server:
        replay = Replay(server, tables)
        people = People(server, rng, tmp_path, list(tables.values()), lambda *_: True)
        people.begin([*tables][:-1], 50)
        for _ in range(6):
            people.work(150)
            people.end()
            replay.advance()
            for (name,) in server.query("SHOW TABLES", database=DATABASE):
                _assert_selected(replay.pasts[name], server.query(f"SELECT * FROM {name}", database=DATABASE))
        book = (tmp_path / "statements.sql").read_text()
        assert book.count(" refused") < people.accepted / 3
        words = (
            "ADD COLUMN",
            "DROP COLUMN",
            "RENAME COLUMN",
            "MODIFY COLUMN",
            "RENAME TABLE",
            "XA COMMIT",
            "PARTITION",
        )
        assert all(word in book for word in words)


def _assert_selected(past: Past, rows: object) -> None:
    assert isinstance(rows, tuple | list)
    if past.table.key:
        assert sorted(str(sorted(map(str, row.values()))) for row in past.rows.values()) == sorted(
            str(sorted(map(str, row))) for row in rows
        )
