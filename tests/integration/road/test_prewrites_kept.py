"""What XA branches need of bronze stays while it is trimmed and packed: for their answer, and for a table that is held.

In:  a real server; a branch that is open while bronze is cut off behind it, and one that a held table lacks.
Out: silver equal to the server's own SELECT after each.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import typer.testing
from pyspark.sql import SparkSession

from tests.integration.lake.test_bronze_upkeep import files_of, upkeep
from tests.integration.road.test_prewrites import answered, prepare, prewrites_in
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.cli.main import app as command_line
from tidegate.lake import control
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.bronze.upkeep import compact_run
from tidegate.local.server import Server
from tidegate.mysql.facts.branches import readable
from tidegate.mysql.stream.cutter import Cutter
from tidegate.standing.causes import Cause

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(600)]

__all__ = ["answered"]

# Larger than a segment.
WIDE = ", ".join(f"({number}, '{'w' * 1500}')" for number in range(100, 108))


def _stepped(road: Road, spark: SparkSession, *statements: str) -> dict[str, str]:
    """Errors of tables that wait."""
    for statement in statements:
        road.server.query(statement)
    road.capture()
    app = road.apply(spark)
    return {name.partition(".")[2]: state.cause for name, state in app.states.items() if state.state.waits}


@pytest.mark.usefixtures("answered")
def test_a_branch_is_read_from_bronze_that_was_trimmed_and_packed_behind_it(
    any_server: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Cutter._begin, "__defaults__", (4096,))  # transactions are cut, too
    database = fresh_database(any_server)
    policies = "]}\nddl: {drop_column: ask}\nmaintain: {schedule: ''"
    road = Road(any_server, tmp_path, include=f"{database}.*", extra=f", exclude: [{policies}")
    road.file.write_text(road.file.read_text().replace("land_seconds: 0.1", "land_seconds: 0.1, segment_bytes: 4096"))
    road.pipeline = config.load(road.file)
    road.capture()
    for table in "abc":
        any_server.query(f"CREATE TABLE {database}.{table} (id INT PRIMARY KEY, v VARCHAR(1500), n INT)")
    for number in range(12):
        any_server.query(f"INSERT INTO {database}.c VALUES ({number}, '{'c' * 1200}', 1)")
    prepare(any_server, database, "'long'", f"INSERT INTO b (id, v) VALUES {WIDE}")
    for number in range(12, 24):
        any_server.query(f"INSERT INTO {database}.c VALUES ({number}, '{'c' * 1200}', 1)")
    assert _stepped(road, spark) == {}  # the oldest cut: below it bronze is needed for the branch alone
    began, ended = _segments_of(road, "'long'")
    assert ended > began, "it is larger than a segment"
    assert upkeep(road) == 0
    assert 1 < files_of(road)[0].min_seq <= began, "what nobody needs is gone"

    assert _stepped(road, spark, f"ALTER TABLE {database}.a DROP n") == {"a": Cause.DDL_ASKS}
    prepare(any_server, database, "'both'", "INSERT INTO a VALUES (1, 'both')", "INSERT INTO b (id) VALUES (1)")
    assert _stepped(road, spark, f"INSERT INTO {database}.c VALUES (50, 'more', 1)") == {"a": Cause.DDL_ASKS}
    assert _stepped(road, spark, "XA COMMIT 'both'") == {"a": Cause.DDL_ASKS}
    assert road.assert_equal() == {"b": 1, "c": 25}
    assert upkeep(road) == 0
    _packed(road)
    assert _stepped(road, spark, "XA COMMIT 'long'") == {"a": Cause.DDL_ASKS}
    assert road.assert_equal() == {"b": 9, "c": 25}
    assert upkeep(road) == 0
    done = typer.testing.CliRunner().invoke(command_line, ["release", str(road.file), f"{database}.a"])
    assert done.exit_code == 0, done.output
    assert _stepped(road, spark) == {}
    assert road.assert_equal() == {"a": 1, "b": 9, "c": 25}
    assert {state for _, state in prewrites_in(road)} == {"committed"}


def _packed(road: Road) -> None:
    """All of a day's files but the newest are one."""
    log = BronzeLog.load(road.lake)
    assert log is not None
    *older, newest = files_of(road)
    compact_run(log, [one for one in older if one.day == newest.day])
    assert len(files_of(road)) < len(older)


def _segments_of(road: Road, xid: str) -> tuple[int, int]:
    rows = control.read(road.lake, tables.PREWRITES).to_pylist()
    ((began, ended),) = {(row["began_seq"], row["ended_seq"]) for row in rows if readable(row["id"]) == xid}
    return began, ended
