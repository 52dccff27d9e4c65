"""The soak in small, tests/support/seeds.py tells how other seeds are run; and that it would find what it looks for."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.hostile.people import People
from tests.soak.hostile.plan import ROUNDS
from tests.soak.hostile.world import HostileWorld
from tests.soak.modes import plan as modes_plan
from tests.soak.modes.hostile import ROUNDS as MIXED_ROUNDS
from tests.soak.modes.hostile import MixedWorld
from tests.soak.plan import KINDS, plan
from tests.soak.shards import faults as shards_faults
from tests.soak.shards import plan as shards_plan
from tests.soak.source import DATABASE, Sessions
from tests.soak.witness import Witness, Wrong
from tests.support.captures import capture_until_quiet
from tests.support.own_server import own_server_or_skip
from tests.support.seeds import LONG, many, seed
from tests.support.servers import ROOT
from tidegate.local.server import Server


def test_a_plan_follows_from_its_seed_and_a_longer_one_begins_with_a_shorter_one() -> None:
    assert plan(7, 300)[:40] == plan(7, 40)
    assert plan(7, 40) != plan(8, 40)
    assert {fault.kind for fault in plan(7, 2000)} == KINDS.keys()
    names = ("a", "b", "c", "d")
    assert shards_plan.plan(7, 300, names)[:40] == shards_plan.plan(7, 40, names)
    assert {fault.kind for fault in shards_plan.plan(7, 300, names)} == shards_faults.KINDS.keys()
    assert plan(7, 300, ROUNDS)[:40] == plan(7, 40, ROUNDS)
    assert {fault.kind for fault in plan(7, 2000, modes_plan.KINDS)} == modes_plan.KINDS.keys()
    assert all(hasattr(HostileWorld, f"_{kind}") for kind in ROUNDS)
    assert all(hasattr(MixedWorld, f"_{kind}") for kind in MIXED_ROUNDS)


@pytest.mark.server
@pytest.mark.parametrize("flavour", ["mariadb", "mysql9"])
def test_a_server_takes_most_of_what_hostile_people_compose(flavour: str, tmp_path: Path) -> None:
    with own_server_or_skip(flavour, tmp_path / "server") as server:
        people = People(server, random.Random(7), tmp_path)
        people.begin(7, 5)
        people.work(150)
        people.end()
        assert people.accepted > people.sent * 0.5
        assert not server.query("XA RECOVER")


@pytest.mark.server
def test_the_witness_finds_a_transaction_that_is_lost_and_one_that_never_was(mariadb: Server, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    capture_until_quiet(mariadb, lake)
    sessions = Sessions(mariadb, 1)
    sessions.create()
    try:
        with sessions:
            sessions.pause()
        mariadb.query("INSERT INTO txns VALUES (7, 1)", database=DATABASE)
        capture_until_quiet(mariadb, lake)
        honest = Witness(lake, mariadb, "one")
        honest.look()
        with mariadb.connect(DATABASE) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            cursor.execute("INSERT INTO txns VALUES (7, 2)")
            cursor.execute("DELETE FROM txns WHERE session = 7 AND n = 1")
        with pytest.raises(Wrong, match="1 lost, 0 doubled, 1 never committed"):
            honest.settle()
        assert honest.lost == 1
    finally:
        mariadb.query(f"DROP DATABASE {DATABASE}")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_a_dozen_random_faults_lose_nothing_double_nothing_and_leave_silver_equal() -> None:
    _soak(str(many(12, 100)), "--only-compare")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="four servers, captures and their first apply take minutes before the first fault")
def test_random_faults_of_four_servers_leave_their_shards_equal_and_their_money_whole() -> None:
    _soak("50", "--sources", "4")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_random_faults_leave_every_mode_of_silver_as_the_log_has_it() -> None:
    _soak(str(many(6, 100)), "--modes", "--apply-every", "6")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="it looks for what nobody knows yet: minutes for each seed")
@pytest.mark.parametrize("words", [["--hostile"], ["--hostile", "--modes"]], ids=" ".join)
def test_hostile_rounds_leave_silver_equal(words: list[str]) -> None:
    _soak("24", *words)


def _soak(count: str, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--faults", count, "--seed", str(seed()), *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=many(1200, 3600),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(
        rf"soak: {count} faults, [1-9]\d* transactions, 0 lost, 0 doubled, 0 wrong", done.stdout.splitlines()[-1]
    )
