"""The trigger of alerts looks now and then, begins anew where it was, and asks for connections in Airflow's loop.

In:  a lake whose verdicts the test writes; no server at all.
Out: what is fired, and what is kept.
"""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tidegate import tables
from tidegate.commit_ts import compose
from tidegate.config import Alert, Pipeline, parse
from tidegate.errors import ConfigError, SourceUnavailable
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.limits import ALERT_OVER_SECONDS
from tidegate.patience import Patience
from tidegate.tables.snapshot_tables import VERIFICATION
from tidegate_airflow import alerts_trigger
from tidegate_airflow.alerts_trigger import AlertsTrigger, FollowedPipeline

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")]
NAMES = ("shop.a", "shop.b")
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def no_connection(conn_id: str) -> Any:
    raise ConfigError(f"no {conn_id}")


class Clock:
    """Time of the trigger and of the looks."""

    def __init__(self) -> None:
        self.now = NOW.timestamp()

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(alerts_trigger, "time", made)
    monkeypatch.setattr("tidegate.pipelines.watching.time", made)
    return made


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr("tidegate.home.state_folder", lambda: tmp_path / "state")
    left_out = ", ".join(alert for alert in Alert if alert not in (Alert.VERIFICATION_DIFFERS, Alert.LAKE_UNREADABLE))
    return parse(
        f"pipeline: shop\nlake: {{path: {tmp_path / 'lake'}}}\nsources: {{db: {{conn_id: db, flavour: mysql}}}}\n"
        f"tables: {{include: ['shop.*']}}\nalerts: {{leave_out: [{left_out}]}}\n",
        where="shop.yaml",
    )


def say(pipeline: Pipeline, outcome: str, at: float) -> None:
    lake = LakeFiles(pipeline.lake.path)
    moment = datetime.fromtimestamp(at, UTC)
    if not control.exists(lake, tables.CUTS):
        cut_ts = compose(int(at * 1000))
        rows = [
            {"cut_ts": cut_ts, "table": name, "delta_version": 1, "state": "active", "applied_ts": cut_ts}
            | {"published_at": moment}
            for name in ("", *NAMES)
        ]
        control.append(lake, tables.CUTS, rows)
    empty = {field.name: "" if field.type == "string" else 0 for field in VERIFICATION.schema}
    by = {"source": "db", "database": "shop", "outcome": outcome, "recorded_at": moment}
    control.append(lake, VERIFICATION, [{**empty, **by, "table": name[5:], "silver": name} for name in NAMES])


def followed(pipeline: Pipeline, kept: Any = None) -> FollowedPipeline:
    made = FollowedPipeline(pipeline, json.loads(json.dumps(kept)), (no_connection, no_connection), 30.0)
    made.open("", {})
    return made


def test_it_looks_now_and_then_and_goes_on_where_it_was(pipeline: Pipeline, clock: Clock) -> None:
    say(pipeline, "different", clock.now)
    first = followed(pipeline)
    fired = first.look()
    assert fired is not None
    (change,) = fired["changes"]
    assert (change["alert"], change["count"], change["names"]) == ("verification_differs", 2, list(NAMES))
    again = followed(pipeline, first.kept)
    assert again.look() is None, "told before"
    say(pipeline, "equal", clock.now + 1)
    clock.now += 10
    assert again.look() is None, "it looked ten seconds ago"
    clock.now += 30
    assert again.look() is None, "the end isn't certain yet"
    clock.now += ALERT_OVER_SECONDS + 1
    fired = again.look()
    assert fired is not None
    assert (fired["changes"][0]["began"], fired["changes"][0]["count"]) == (False, 2)
    assert again.kept == {}


def test_what_wasnt_written_down_is_fired_again(pipeline: Pipeline, clock: Clock) -> None:
    """The triggerer died between firing and remembering: each message comes at least once."""
    say(pipeline, "different", clock.now)
    assert followed(pipeline).look() == followed(pipeline, None).look() is not None


def test_a_lake_that_cant_be_read_is_an_alert_and_ends_no_other(
    pipeline: Pipeline, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(pipeline, "different", clock.now)
    table = followed(pipeline)
    assert table.look() is not None
    monkeypatch.setattr("tidegate.pipelines.watching.look", no_connection)
    told: list[dict[str, Any]] = []
    for _ in range(40):
        clock.now += 31
        told += (table.look() or {"changes": []})["changes"]
    assert [(change["alert"], change["began"]) for change in told] == [("lake_unreadable", True)]


def test_a_lake_whose_mount_hangs_is_one_that_cant_be_read(
    pipeline: Pipeline, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = threading.Event()
    monkeypatch.setattr("tidegate.pipelines.watching.look", lambda *_: back.wait(120))
    table, told = followed(pipeline), list[dict[str, Any]]()
    table._patience = Patience(0.2)
    for _ in range(15):
        clock.now += 31
        told += (table.look() or {"changes": []})["changes"]
    back.set()
    assert [(change["alert"], change["began"]) for change in told] == [("lake_unreadable", True)]


def test_it_is_made_again_from_plain_values_and_asks_in_the_loop(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops: list[Any] = []

    async def connection(conn_id: str) -> str:
        loops.append(asyncio.get_running_loop())
        return conn_id

    async def broken(conn_id: str) -> str:
        raise RuntimeError(conn_id)

    monkeypatch.setattr(alerts_trigger, "alake_connection", connection)
    monkeypatch.setattr(alerts_trigger, "asource_connection", connection)
    path, arguments = AlertsTrigger(pipeline.model_dump(mode="json")).serialize()
    assert path == "tidegate_airflow.alerts_trigger.AlertsTrigger"
    trigger = AlertsTrigger(**json.loads(json.dumps(arguments)))

    async def main() -> None:
        table = trigger.follow(None)
        for ask in table._connections:
            assert await asyncio.to_thread(ask, "db") == "db"
        assert loops == [asyncio.get_running_loop()] * 2
        monkeypatch.setattr(alerts_trigger, "alake_connection", broken)
        with pytest.raises(SourceUnavailable, match="Airflow doesn't give connection 'db': RuntimeError"):
            await asyncio.to_thread(trigger.follow(None)._connections[0], "db")

    asyncio.run(main())
