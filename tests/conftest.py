"""What every test may use: real servers, and an environment without anything of the machine's own.

In:  nothing.
Out: the fixtures of tests/support/servers.py, and TIDEGATE_*, AIRFLOW_* and Spark variables cleared.
"""

from __future__ import annotations

import gc
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.kit.s3 import s3
from tests.kit.spark import spark
from tests.support import parts, tiers
from tests.support.capture_process import nursery
from tests.support.schedule import Scheduler, rank
from tests.support.seeds import QUICK, many
from tests.support.servers import ROOT, any_server, fresh_database, log_settings_put_back, mariadb, mysql9
from tidegate.mysql.connecting.client import Client
from tidegate.query import duck
from tidegate.upsert import few_rows

__all__ = ["any_server", "fresh_database", "log_settings_put_back", "mariadb", "mysql9", "nursery", "s3", "spark"]

# Set before anything compiled or Airflow is imported: both read it once, at import.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".tidegate" / "numba"))
os.environ.setdefault("AIRFLOW_HOME", str(ROOT / ".tidegate" / "test-airflow"))

# Of random tests that don't say how many examples they draw.
# A slow machine is no failure.
settings.register_profile("ours", max_examples=many(100, 100), deadline=None)
settings.load_profile("ours")


# What the tests' modules and their items are made of is there to the end: no collection need look through it.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def settings_of_duckdb() -> Iterator[dict[str, str]]:
    """The library's own. Tests' connections load the Delta extension unread: to look at its signature DuckDB reads all
    of its 78 MB each time, 0.4 CPU-s. tests/unit/query/test_duck.py holds that the library's connections do look.
    """
    own = duck._OFFLINE
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(duck, "_OFFLINE", own | {"allow_unsigned_extensions": "true"})
        yield own


@pytest.fixture(autouse=True, scope="session")
def _plain_where_nobody_asks_for_tls() -> Iterator[None]:
    """A handshake costs MariaDB and us 6 ms of CPU, and a road has dozens. This process' connections to it have TLS if
    a test asks for it (tests/integration/capture/test_refusals.py, test_network_faults.py); those to MySQL always, and
    those of commands, of capture's processes and of the demo.
    """
    asked = Client._request_authentication

    def plain(connection: Any) -> None:
        if not connection._ssl_required and "MariaDB" in connection.server_version:
            connection.ssl = False
        asked(connection)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Client, "_request_authentication", plain)
        yield


@pytest.fixture(autouse=True, scope="session")
def _nothing_waits_for_the_disk() -> Iterator[None]:
    """A road syncs 200 files, and no test cuts the power: of a process that is killed the system keeps what it wrote.
    Tests that look for a sync see its call (tests/integration/road/test_power_cut.py).
    """
    with pytest.MonkeyPatch.context() as patched:
        for name in ("fsync", "fdatasync"):
            patched.setattr(os, name, os.fstat)  # of a closed file an error, too
        yield


@pytest.fixture(autouse=True)
def _no_failpoint_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failpoint set in the shell would kill pytest itself."""
    monkeypatch.delenv("TIDEGATE_FAILPOINT", raising=False)


@pytest.fixture(autouse=True)
def _small_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests' tables are small: each window's rows would wait in memory and join all others, and no file would have a
    deletion vector. So half of the tests, by their names, and those marked `apart`, have a file for each window.
    """
    marker = request.node.get_closest_marker("small_files")
    apart = zlib.crc32(request.node.nodeid.encode()) % 2 == 1 if marker is None else marker.args[0] == "apart"
    if apart:
        monkeypatch.setattr(few_rows, "SMALL_FILE_BYTES", 0)
        monkeypatch.setattr(few_rows, "_FEW_BYTES", 0)


_STARTED_BY = {"spark": "spark"} | dict.fromkeys(("mariadb", "mysql9", "any_server", "s3", "etcd"), "server")


# Of a file whose every test starts something.
_ALL_START_SOMETHING = re.compile(r"^pytestmark = .*\bmark\.(server|spark|airflow)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """`make test-quick` doesn't import what it would leave out as a whole."""
    if QUICK and collection_path.suffix == ".py":
        return _ALL_START_SOMETHING.search(collection_path.read_text()) is not None or None
    return None


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What asks for a server or Spark is marked so; what takes long comes first, or a worker is left alone with it."""
    for item in items:
        for fixture, marker in _STARTED_BY.items():
            if fixture in getattr(item, "fixturenames", ()) and item.get_closest_marker(marker) is None:
                item.add_marker(marker)
    config.stash[tiers.UNMATCHED] = tiers.mark(items)
    files: dict[Path, int] = {}  # a file's tests stay together, where its first one is
    for item in items:
        files.setdefault(item.path, rank(item.nodeid, starts_server=item.get_closest_marker("server") is not None))
    items.sort(key=lambda item: files[item.path])
    kept = set(parts.asked().take(sorted(files, key=lambda path: (files[path], path))))
    if others := [item for item in items if item.path not in kept]:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item.path in kept]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    """The scheduler of `make test`."""
    return Scheduler(config, log)
