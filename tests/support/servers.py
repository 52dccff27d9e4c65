"""Fixtures of real servers, one per test session (and per xdist worker, each with its own data and port).

In:  the root of the checkout (downloads are shared under .tidegate/, behind file locks).
Out: `mariadb`, `mysql9`: tidegate.demo.server.Server; `any_server`: both, one after the other;
     `fresh_database`: a factory of empty databases that are dropped after the test.

MySQL 9 can't be had everywhere: its tests are then skipped with the reason; with
TIDEGATE_REQUIRE_SERVERS=1, which CI sets, that is an error instead.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import mysql9 as mysql9_packages
from tidegate.demo import mariadb as mariadb_package
from tidegate.demo.server import Server
from tidegate.errors import DownloadFailed, HostLacks

ROOT = Path(__file__).resolve().parents[2]

FreshDatabase = Callable[[Server], str]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """MariaDB 11.4 with ROW, FULL images, FULL metadata and GTIDs."""
    base = mariadb_package.install(ROOT)
    with mariadb_package.MariaDB(tmp_path_factory.mktemp("mariadb"), base) as server:
        yield server


@pytest.fixture(scope="session")
def mysql9(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """MySQL 9 with ROW, FULL images, FULL metadata and GTIDs."""
    try:
        base = mysql9_packages.install(ROOT)
    except (HostLacks, DownloadFailed) as error:
        if os.environ.get("TIDEGATE_REQUIRE_SERVERS"):
            raise
        pytest.skip(f"no MySQL 9 here: {error}")
    with mysql9_packages.MySQL9(tmp_path_factory.mktemp("mysql9"), base) as server:
        yield server


@pytest.fixture(params=["mariadb", "mysql9"])
def any_server(request: pytest.FixtureRequest) -> Server:
    """Each server in turn: for promises that hold for both flavours."""
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def fresh_database() -> Iterator[FreshDatabase]:
    """A factory: server -> name of a new, empty database on it."""
    made: list[tuple[Server, str]] = []

    def make(server: Server) -> str:
        name = f"db_{os.getpid()}_{next(_numbers)}"
        server.query(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        made.append((server, name))
        return name

    yield make
    for server, name in made:
        if server.process is not None:  # a test may have killed it on purpose
            server.query(f"DROP DATABASE IF EXISTS `{name}`")
