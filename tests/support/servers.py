"""Fixtures of real servers, one per test session (and per xdist worker, each with its own data and port).

In:  the root of the checkout (downloads are shared under .tidegate/, behind file locks).
Out: `mariadb`, `mysql9`: tidegate.local.server.Server; `any_server`: both, one after the other;
     `fresh_database`: a factory of empty databases that are dropped after the test;
     `log_settings_put_back`: for every test, what it changed of how the shared servers write their log is put back.

Where MySQL 9 can't be had its tests are skipped (tests/support/own_server.py).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.support.own_server import ROOT, own_server, own_server_or_skip
from tidegate.local.server import Server

__all__ = ["ROOT", "FreshDatabase", "any_server", "fresh_database", "log_settings_put_back", "mariadb", "mysql9"]

FreshDatabase = Callable[[Server], str]

_numbers = itertools.count(1)

# What the next test on the same server would otherwise meet in the log, or be slowed by.
_LOG_SETTINGS = "binlog%", "log_bin%", "mysql56_temporal_format", "sync_binlog", "innodb_flush_log_at_trx_commit"
# Each test leaves them so: to ask before it, too, cost a connection, and a server's look through all its variables.
_settings_at_first: dict[Server, dict[str, str]] = {}


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """MariaDB 11.4 with ROW, FULL images, FULL metadata and GTIDs."""
    with own_server("mariadb", tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(scope="session")
def mysql9(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """MySQL 9 with ROW, FULL images, FULL metadata and GTIDs."""
    with own_server_or_skip("mysql9", tmp_path_factory.mktemp("mysql9")) as server:
        yield server


@pytest.fixture(params=["mariadb", "mysql9"])
def any_server(request: pytest.FixtureRequest) -> Server:
    """Each server in turn: for promises that hold for both flavours."""
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture(autouse=True)
def log_settings_put_back(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that a failure ends early, or a random workload whose last word is "compress", changes no other test."""
    named = {"mariadb", "mysql9", "any_server"} & set(request.fixturenames)
    found = [request.getfixturevalue(name) for name in sorted(named)]
    servers = [server for server in found if isinstance(server, Server)]  # a test may call a parameter so
    for server in servers:
        if server.process is not None and server not in _settings_at_first:
            _settings_at_first[server] = _log_settings(server)
    yield
    for server in servers:
        settings = _settings_at_first.get(server)
        if server.process is None or settings is None:  # a test may have killed it on purpose
            continue
        for name, value in _log_settings(server).items():
            if value != settings.get(name, value):
                number = settings[name].isdecimal()
                server.query(f"SET GLOBAL {name} = {settings[name] if number else repr(settings[name])}")


def _log_settings(server: Server) -> dict[str, str]:
    names = " OR ".join(f"Variable_name LIKE '{name}'" for name in _LOG_SETTINGS)
    return {str(name): str(value) for name, value in server.query(f"SHOW GLOBAL VARIABLES WHERE {names}")}


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
