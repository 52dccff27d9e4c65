"""What every test may use: real servers, and an environment without anything of the machine's own.

In:  nothing.
Out: the fixtures of tests/support/servers.py, and TIDEGATE_*, AIRFLOW_* and Spark variables cleared.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.servers import ROOT, any_server, fresh_database, mariadb, mysql9
from tests.support.spark import spark

__all__ = ["any_server", "fresh_database", "mariadb", "mysql9", "spark"]

# Set before anything compiled or Airflow is imported: both read it once, at import.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".tidegate" / "numba"))
os.environ.setdefault("AIRFLOW_HOME", str(ROOT / ".tidegate" / "test-airflow"))


@pytest.fixture(autouse=True)
def _no_failpoint_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failpoint set in the shell would kill pytest itself."""
    monkeypatch.delenv("TIDEGATE_FAILPOINT", raising=False)


# What shares something dear runs in one worker: two Airflows or two JVMs at once would only slow each other down.
# (pytest-xdist's own --dist loadgroup does not take effect with pytest 9.2: node ids can't be changed any more.)
# In this order, before all else: the longest first.
_SHARED = {
    "spark": ("tests/integration/test_road", "tests/resume/test_apply", "tests/steps/"),
    "airflow": ("tests/dags/", "tests/demo/test_demo.py", "tests/integration/test_airflow"),
}

_STARTED_BY = {"spark": "spark", "mariadb": "server", "mysql9": "server", "any_server": "server"}


def _scope(nodeid: str) -> str:
    path = nodeid.split("::", 1)[0]
    return next((name for name, starts in _SHARED.items() if path.startswith(starts)), path)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What asks for a server or Spark is marked so, and the longest come first.

    That is what shares something dear, then files that start servers, then the many small ones. Else the last worker is
    left alone with minutes of Spark, and the other one has nothing to do.
    """
    for item in items:
        for fixture, marker in _STARTED_BY.items():
            if fixture in getattr(item, "fixturenames", ()) and item.get_closest_marker(marker) is None:
                item.add_marker(marker)
    shared = list(_SHARED)

    def rank(item: pytest.Item) -> int:
        scope = _scope(item.nodeid)
        if scope in shared:
            return shared.index(scope)
        return len(shared) + (item.get_closest_marker("server") is None)

    files: dict[Path, int] = {}  # a file's tests stay together, where its first one is
    for item in items:
        files.setdefault(item.path, rank(item))
    items.sort(key=lambda item: files[item.path])


class SharedScheduling(LoadScopeScheduling):
    """One worker for each entry of _SHARED, and for each other file."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedScheduling:
    """The scheduler of `make test`."""
    return SharedScheduling(config, log)
