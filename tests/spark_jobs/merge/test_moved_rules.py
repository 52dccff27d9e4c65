"""A rename moves rows that silver has by other rules than the pipeline file's: both tables wait, and nothing is taken.

In:  silver by a rule of the file, then another rule; a rename that is the first change after it.
Out: both tables are held by name; the taker has no silver.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_jobs.merge.test_silver_writer import UP, Shop

pytestmark = pytest.mark.spark

ALL = "match: 'd.*'"
# name: (the rule, the changed rule, the reason)
CHANGED = {
    "a mask": (
        "",
        f", masks: [{{{ALL}, columns: [a], how: 'null'}}]",
        "silver's values of column a are masked by other rules",
    ),
    "a left-out column": (
        "",
        f", columns: [{{{ALL}, exclude: [a]}}]",
        "silver has column a, which tables.columns leaves out",
    ),
    "a filter": ("", f", rows: [{{{ALL}, where: 'id > 1'}}]", "and tables.rows says"),
    "a computed column": (
        f", computed: [{{{ALL}, name: b, type: int, expression: id + 1}}]",
        f", computed: [{{{ALL}, name: b, type: int, expression: id + 2}}]",
        "column b isn't as tables.computed says",
    ),
    "a name": ("", f", renames: [{{{ALL}, columns: {{a: aa}}}}]", "isn't as tables.renames says"),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_rename_takes_no_rows_of_a_changed_rule(spark: SparkSession, tmp_path: Path, change: str) -> None:
    """The rename is the very first of its window: no phase of rows precedes it."""
    rules, changed, reason = CHANGED[change]
    before = Shop(spark, tmp_path, "positional", rules=rules)
    before.ddl(10, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
    row = {"id": 1, "a": "x"}
    before.apply(0, 15, {"t": [(11, UP, row | ({"b": 2} if "computed" in rules else {}))]})
    it = Shop(spark, tmp_path, "positional", rules=changed)
    it.app.histories.update(before.app.histories)
    it.ddl(16, "RENAME TABLE t TO u")
    held = it.apply(15, 20, {}).held
    assert held.keys() == {"d.t", "d.u"}
    assert all(reason in standing.reason for standing in held.values())
    assert not it.app.lake.log("silver/d/u").state().created
    back = Shop(spark, tmp_path, "positional", rules=rules)
    back.app.histories.update(it.app.histories)
    assert not back.apply(15, 20, {}).held
    assert [given["id"] for given in back.silver("u")] == [1]
