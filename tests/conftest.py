"""What every test may use: real servers, and an environment without anything of the machine's own.

In:  nothing.
Out: the fixtures of tests/support/servers.py, and TIDEGATE_*, AIRFLOW_* and Spark variables cleared.
"""

from __future__ import annotations

import os

import pytest

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


def pytest_itemcollected(item: pytest.Item) -> None:
    """What shares something dear runs in one worker: all of Airflow's tests, all of Spark's, and each file's own.

    Two Airflows and two JVMs at once would only slow each other down (pytest-xdist, --dist loadgroup, which looks
    at the marks as soon as collection ends).
    """
    shared = next((name for name in ("airflow", "spark") if item.get_closest_marker(name)), str(item.path))
    item.add_marker(pytest.mark.xdist_group(shared))
