"""Statements that a source answers for many tables: looks that come again ask no more of them than for few.

In:  a server of our own, whose counter of statements nobody else moves; databases of few and of many tables.
Out: how many statements more each work takes for each table more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.kit.road import Road
from tests.support.own_server import own_server_or_skip
from tidegate.cli.main import app as command_line
from tidegate.local.server import Server
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = pytest.mark.server

_FEW, _MANY = 4, 54
# Statements for each table more. What is asked every few seconds or at each start of capture takes none.
_PER_TABLE = {"check": 1, "first capture": 6, "capture": 0, "status": 0, "verify": 6}


@pytest.fixture(params=["mariadb", "mysql9"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with own_server_or_skip(request.param, tmp_path / "server") as server:
        yield server


def _statements(server: Server, work: Callable[[], object]) -> int:
    def so_far() -> int:
        return int(server.query("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1])

    before = so_far()
    work()
    return so_far() - before


def _command(*words: str) -> None:
    done = CliRunner().invoke(command_line, [*words])
    assert done.exit_code == 0, done.output


def _counted(server: Server, folder: Path, tables: int) -> dict[str, int]:
    server.query(f"CREATE DATABASE d{tables}")
    for number in range(tables):
        server.query(f"CREATE TABLE t{number} (id INT PRIMARY KEY, v INT)", database=f"d{tables}")
    folder.mkdir()
    road = Road(server, folder, include=f"d{tables}.*")
    counted = {"first capture": _statements(server, road.capture), "capture": _statements(server, road.capture)}
    road.apply()

    def verified() -> None:
        verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=5))

    for name in ("check", "status"):
        counted[name] = _statements(server, lambda name=name: _command(name, str(road.file)))
    return counted | {"verify": _statements(server, verified)}


def test_what_is_asked_again_and_again_doesnt_grow_with_the_tables(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{server.user}:{server.password}@{server.host}:{server.port}"
    monkeypatch.setenv("AIRFLOW_CONN_ROAD_ONE", f"mysql://{address}/")
    few, many = (_counted(server, tmp_path / str(tables), tables) for tables in (_FEW, _MANY))
    spare = 10  # a look at the clock, or at the log's end, more or less
    for name, per_table in _PER_TABLE.items():
        assert many[name] - few[name] <= per_table * (_MANY - _FEW) + spare, name
