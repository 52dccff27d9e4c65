"""Which worker of `make test` runs which test file: Spark's in one that has started it, the longest first.

In:  node ids, as pytest-xdist's controller knows them, in the order that pytest_collection_modifyitems gave them.
Out: Scheduler. A worker starts one JVM at most, and keeps it. Half of the workers have one from the start; another
     takes Spark's files only when nothing else is left and so many of them are that one more JVM is worth its start.
     Airflow's instances come one after the other.

(pytest-xdist's own --dist loadgroup does not take effect with pytest 9.2: node ids can't be changed any more.)
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from xdist.scheduler import LoadScopeScheduling

from tests.support.own_server import ROOT

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

# Each starts Airflow, whose parts use both cores of a small machine.
AIRFLOW: Final = "airflow"
_AIRFLOW_FILES = ("tests/integration/test_airflow_end_to_end.py", "tests/demo/test_demo.py")
# What takes long, and so begins first.
_LONG = (
    "tests/soak/test_soak.py",
    "tests/resume/test_chase_kills.py",
    "tests/resume/test_capture_kills.py",
    "tests/integration/capture/test_slow_lake.py",
    "tests/integration/lake/test_object_store.py",
    "tests/integration/capture/test_server_faults.py",
    "tests/integration/capture/test_large_events.py",
    "tests/unit/binlog/test_random_tables.py",
    "tests/integration/capture/test_network_faults.py",
    "tests/resume/test_apply_kills.py",
    "tests/integration/road/test_failover.py",
    "tests/integration/road/test_shop.py",
    "tests/spark_jobs/positional/test_writers_agree.py",
)
# What Spark's own statements are the subject of, and roads whose windows move or rewrite silver. Others hand apply a
# session that it leaves alone (tests/kit/spark.py): any worker runs them. A file that is missing here starts one more
# JVM, for 35 CPU-s: tests/style/test_schedule.py looks for those that surely use it.
_SPARK_FOLDERS = (
    *("tests/spark_jobs/", "tests/integration/lake/", "tests/integration/shards/", "tests/resume/", "tests/readers/"),
    *("tests/replay/", "tests/integration/changefeed/test_road.py", "tests/pages/test_reading.py"),
)
_SPARK_NAMES = re.compile(
    r"/test_(\w*(mask|rename|partition|owner|history|cascade|shard|erased|maintain|rewritten|reshaped|online|columns)\w*"
    r"|wider|branches|silver_asked|random_ddl|soft_delete|filtered_rows|chunks|holds|keyless|by_themselves|cuts"
    r"|other_hands|uneven_rewrites|followed|mariadb118|ahead_of_cut|another_mode|asked_values|comments|past\w*"
    r"|computed(_functions)?|shop|failover\w*|troubles\w*|twin_lakes|erase(_beside|_followed)?|random_past|healing"
    r"|members|at_work|(spark_)?views|subscription)\.py$"
)
# Starting a JVM and loading what Spark needs costs 35 CPU-s, a file some 8. The workers that have one use seven tenths
# of two cores, so what is left is done sooner with one more from 82 CPU-s on.
_FILES_WORTH_A_JVM = 12


def scope_of(nodeid: str) -> str:
    """What stays together in one worker: a file; all that starts Airflow."""
    path = nodeid.split("::", 1)[0]
    return AIRFLOW if path in _AIRFLOW_FILES else path


def rank(nodeid: str, *, starts_server: bool) -> int:
    """Smaller begins earlier: Airflow, the long ones, what starts a server or Spark, the many small ones."""
    scope = scope_of(nodeid)
    if scope == AIRFLOW:
        return -1
    if scope in _LONG:
        return _LONG.index(scope)
    return len(_LONG) + (not starts_server and not asks_for_spark(scope))


@cache
def asks_for_spark(scope: str) -> bool:
    """Whether a worker that has Spark should run this file."""
    if scope == AIRFLOW or "spark: SparkSession" not in (ROOT / scope).read_text():
        return False
    return scope.startswith(_SPARK_FOLDERS) or _SPARK_NAMES.search(scope) is not None


class Scheduler(LoadScopeScheduling):
    """As pytest-xdist's, but for the choice of the next file."""

    def __init__(self, config: Any, log: Any) -> None:
        super().__init__(config, log)
        self._with_spark: set[WorkerController] = set()

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = self._next(node)
        if scope is None:
            node.shutdown()
            return
        if asks_for_spark(scope):
            self._with_spark.add(node)
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _next(self, node: WorkerController) -> str | None:
        """None: what is left is done sooner by the workers that have Spark already."""
        scopes = list(self.workqueue)
        spark = [scope for scope in scopes if asks_for_spark(scope)]
        other = [scope for scope in scopes if not asks_for_spark(scope)]
        running = self._with_spark & set(self.nodes)
        if node in running:
            return (spark or other)[0]
        airflow_first = other[:1] == [AIRFLOW]
        if spark and len(running) < max(1, len(self.nodes) // 2) and not airflow_first:
            return spark[0]
        if other:
            return other[0]
        return spark[0] if not running or len(spark) >= _FILES_WORTH_A_JVM else None
