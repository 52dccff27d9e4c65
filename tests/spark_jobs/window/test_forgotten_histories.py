"""A table whose silver can't say that its known history ends doesn't go on: it would tell too much once it is whole.

In:  events of a source in bronze; silver with a record of a known history, and a feature of a later time.
Out: apply's steps up to decode: the table waits for rows, and a snapshot of it begins when the log can be written.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_jobs.window.test_positions import LACKS, demand
from tests.support.event_log import Log
from tests.support.steps import publish, to_waves
from tests.support.wave_log import Waves, baseline
from tidegate import tables
from tidegate.commit_ts import compose
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import protocol
from tidegate.lake.silver.known_history import history_name, known_history, recorded
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.remedy import Needs
from tidegate.tables import State

L = compose(1_000_000)


def remembering(log: Log, table: str) -> DeltaLog:
    """Silver of a table of `shop`, whose history is known from 50 on."""
    silver = DeltaLog(log.lake.uri(tables.silver_path("shop", table)))
    create_silver(silver, SilverShape((SilverColumn("id", "int"),), ("id",)))
    record = recorded(silver.state(), history_name("road", f"shop.{table}"), 50)
    silver.commit(silver.state(), Change([], "UPSERT", record))
    return silver


def since(silver: DeltaLog, table: str) -> int:
    known = known_history(silver, silver.state(), history_name("road", f"shop.{table}"))
    assert known is not None
    return known.since_ts


def keeps(log: Log, exclude: str = "", history: str = "") -> None:
    log.keeps("'shop.*', 'crm.*', 'two.*'", exclude)
    log.file.write_text(log.file.read_text().replace("tables: {", f"tables: {{history: [{history}], "))


@pytest.mark.parametrize("unread", [False, True])
def test_a_table_that_is_kept_again_waits_unless_its_history_is_forgotten(unread: bool, tmp_path: Path) -> None:
    log = Log(tmp_path)
    keeps(log, history="shop.a")
    log.level()
    log.apply()
    silver = remembering(log, "a")
    whole = silver.state().protocol
    if unread:
        demand(silver, protocol({"ofLaterTimes"}))
    keeps(log, exclude="shop.a")  # one edit takes it out of both lists
    assert log.apply().states["shop.a"].state is State.LEFT
    keeps(log, history="shop.a")
    standing = log.apply().states["shop.a"]
    if not unread:
        assert (standing.state, since(silver, "a")) == (State.RELEASED, 0)
        return
    assert (standing.state, standing.needs) == (State.HELD, Needs.ROWS)
    assert "ofLaterTimes" in standing.reason
    demand(silver, {"protocol": whole})
    assert since(silver, "a") == 50
    assert log.apply().states["shop.a"] == standing
    log.send("one", "TRUNCATE TABLE shop.a", ("shop.a",))
    log.level()
    assert log.apply().states["shop.a"].state is State.ACTIVE
    assert since(silver, "a") == 0


@pytest.mark.parametrize("unread", [False, True])
def test_no_snapshot_begins_before_the_history_is_forgotten(unread: bool, tmp_path: Path) -> None:
    log = Log(tmp_path)
    keeps(log, history="shop.t")
    waves = Waves(log, baseline(log, "shop", "t"))
    silver = remembering(log, "t")
    whole = silver.state().protocol
    if unread:
        demand(silver, protocol({"ofLaterTimes"}))
    log.started().record_states({"shop.t": LACKS})
    token = waves.read([1, 2], L, L)
    log.level()
    app, window = log.first_window()
    publish(app, *to_waves(app, window))
    if not unread:
        assert (app.states["shop.t"].state, since(silver, "t")) == (State.SNAPSHOT, 0)
        return
    assert waves.answers() == {token: "refused"}
    assert app.states["shop.t"] == LACKS, "a release would let it go on with what it knew"
    demand(silver, {"protocol": whole})
    assert since(silver, "t") == 50
