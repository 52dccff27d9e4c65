"""A worker without Spark starts none by chance: a JVM and all that it loads anew cost more than several files of tests.

In:  the test files.
Out: those that use the session by themselves, and whose place in tests/support/schedule.py lets any worker run them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.schedule import asks_for_spark

ROOT = Path(__file__).resolve().parents[2]
# A statement, a job of Spark's own, a comparison of a rebuilt table, and the other writer.
_SURELY = re.compile(r"\bspark\.(sql|read|readStream|createDataFrame|newSession)\b|compare=True|\bwriter: merge\b")


def surely_uses(text: str) -> bool:
    return "spark: SparkSession" in text and _SURELY.search(text) is not None


@pytest.mark.parametrize("line", ["spark.sql('SELECT 1')", "rebuild(plan, it, compare=True)", '", writer: merge"'])
def test_a_use_is_seen(line: str) -> None:
    assert surely_uses(f"def test(spark: SparkSession) -> None:\n    {line}\n")
    assert not surely_uses("def test(spark: SparkSession) -> None:\n    road.apply(spark)\n")


def test_what_surely_uses_spark_goes_to_a_worker_that_has_it() -> None:
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    names = [path.relative_to(ROOT).as_posix() for path in files if surely_uses(path.read_text())]
    assert len(names) > 20
    assert [name for name in names if not asks_for_spark(name)] == []
