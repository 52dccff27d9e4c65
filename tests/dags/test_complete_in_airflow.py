"""A real Airflow adds complete hours to assets, and starts the documented DAG for each hour of three tables.

In:  a lake whose cuts the test writes; the DAGs of docs/completeness.md.
Out: partitions in Airflow's own record, and the runs that they start; the DAG by the clock fails while a table is held.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.dags.airflow_instance import AirflowInstance
from tests.support.bronze import QuietBronze
from tests.support.servers import ROOT
from tidegate import tables
from tidegate.commit_ts import compose
from tidegate.lake import control
from tidegate.lake.figures.complete_hours import partition_key
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import take_lease
from tidegate.lake.standing.held import to_row
from tidegate.limits import HOUR_SECONDS
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1800)]

PIPELINE = """
pipeline: shop
lake: {{path: {lake}}}
sources: {{db: {{conn_id: db, flavour: mysql}}}}
tables: {{include: ["shop.*"]}}
completeness: {{hourly: true, tables: [shop.orders, shop.items, shop.customers], include: ["shop.pay.*"],
  each_minute: true}}
"""
# What a user writes for a table of completeness.include: the asset is there because this DAG names it.
BY_PATTERN = """
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

with DAG("payments", schedule=PartitionedAssetTimetable(assets=Asset("shop__complete__shop.payments"))):

    @task
    def count():
        print("all payments of the hour are there")

    count()
"""
ORDERS, ITEMS, CUSTOMERS = "shop.orders", "shop.items", "shop.customers"
PAYMENTS, PAYERS = "shop.payments", "shop.payers"
PATIENCE_SECONDS = 400
NOW = int(time.time()) // HOUR_SECONDS


class Hours:
    """The lake, and what Airflow makes of it."""

    def __init__(self, airflow: AirflowInstance, lake: LakeFiles) -> None:
        self.airflow, self.lake = airflow, lake

    def cut(self, hours: int, held: dict[str, int] | None = None) -> None:
        """Complete through the end of hour NOW + hours - 1; held tables through less."""
        self.cut_at(compose((NOW + hours) * HOUR_SECONDS * 1000), held)

    def cut_at(self, cut_ts: int, held: dict[str, int] | None = None) -> None:
        """The same of any cut."""
        now = datetime.now(UTC)
        rows = [
            {"cut_ts": cut_ts, "table": name, "delta_version": 1, "state": "active", "published_at": now}
            | {"applied_ts": cut_ts if name not in (held or {}) else compose((NOW + held[name]) * HOUR_SECONDS * 1000)}
            for name in ("", ORDERS, ITEMS, CUSTOMERS, PAYMENTS, PAYERS)
        ]
        control.append(self.lake, tables.CUTS, rows)

    def set_state(self, table: str, standing: Standing) -> None:
        control.append(self.lake, tables.TABLE_STATES, [to_row(standing, "shop", table, datetime.now(UTC))])

    def events(self, asset: str) -> list[dict[str, Any]]:
        """All of an asset."""
        try:
            named = self.airflow.get(f"/assets?name_pattern={quote(asset)}&limit=50")["assets"]
            (asset_id,) = (each["id"] for each in named if each["name"] == asset)
            events: list[dict[str, Any]] = self.airflow.get(f"/assets/events?asset_id={asset_id}&limit=100")[
                "asset_events"
            ]
        except OSError:  # slow; and Airflow 3.3 fails on a run that an event has started and that waits in the queue
            return []
        return events

    def of(self, asset: str) -> list[int]:
        """The hours that an asset has, from NOW on."""
        keys = {partition_key(NOW + number): number for number in range(-50, 50)}
        return sorted(keys[event["partition_key"]] for event in self.events(asset))

    def runs(self, dag: str = "hourly_revenue") -> list[str]:
        """The partitions of a waiting DAG's runs."""
        return sorted(run["partition_key"] for run in self.airflow.get(f"/dags/{dag}/dagRuns")["dag_runs"])

    def late(self) -> str:
        """The state in which a run of the DAG by the clock ends."""
        run = self.airflow.call("POST", "/api/v2/dags/shop_is_late/dagRuns", {"logical_date": None})["dag_run_id"]

        def end() -> str:
            state: str = self.airflow.get(f"/dags/shop_is_late/dagRuns/{run}")["state"]
            return state if state in {"success", "failed"} else ""

        ended: str = self.airflow.wait_for(end, PATIENCE_SECONDS, "the DAG by the clock ends")
        return ended

    def wait(self, asset: str, hours: list[int]) -> None:
        self.airflow.wait_for(lambda: self.of(asset) == hours, PATIENCE_SECONDS, f"{asset} gets {hours}")


@pytest.fixture
def hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hours]:
    pipelines, dags, lake = (tmp_path / name for name in ("pipelines", "dags", "lake"))
    for folder in (pipelines, dags):
        folder.mkdir()
    (pipelines / "shop.yaml").write_text(PIPELINE.format(lake=lake))
    (dags / "cdc.py").write_text("import tidegate_airflow.dag_files  # airflow dag\n")
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/completeness.md").read_text(), re.DOTALL)
    for name, example in zip(("revenue", "late"), examples, strict=True):
        (dags / f"{name}.py").write_text(example)
    (dags / "payments.py").write_text(BY_PATTERN)
    airflow = AirflowInstance(tmp_path / "airflow", pipelines, {"db": "mysql://u:p@127.0.0.1:1"})
    airflow._environment["AIRFLOW__CORE__DAGS_FOLDER"] = str(dags)
    with airflow:
        yield Hours(airflow, LakeFiles(str(lake)))


def test_each_complete_hour_is_added_once_and_starts_what_waits_for_it(hours: Hours) -> None:
    hours.cut(-3)
    hours.airflow.unpause("hourly_revenue")
    hours.airflow.unpause("payments")
    hours.airflow.unpause("shop__complete")
    hours.wait("shop__complete__shop.orders", [-4])
    # While one table is held, the other goes on, and all together wait.
    hours.set_state(CUSTOMERS, Standing(State.HELD, "by this test", Cause.FAULT, fault="Fault"))
    hours.cut(-1, held={CUSTOMERS: -3})
    hours.wait("shop__complete__shop.orders", [-4, -3, -2])
    hours.wait("shop__complete__shop.customers", [-4])
    hours.wait("shop__complete", [-4])
    QuietBronze(hours.lake).land("db", (compose(int(time.time() * 1000)),))
    hours.airflow.unpause("shop_is_late")
    assert hours.late() == "failed"
    assert f"{CUSTOMERS} is held since" in hours.airflow.task_log("shop_is_late")
    # It follows again: every hour since comes, and none twice.
    hours.set_state(CUSTOMERS, Standing(State.ACTIVE))
    hours.cut(0)
    hours.wait("shop__complete", [-4, -3, -2, -1])
    hours.wait("shop__complete__shop.customers", [-4, -3, -2, -1])
    hours.wait("shop__complete__shop.orders", [-4, -3, -2, -1])
    wanted = [partition_key(NOW + number) for number in (-4, -3, -2, -1)]
    hours.airflow.wait_for(lambda: hours.runs() == wanted, PATIENCE_SECONDS, "a run for each hour of all three")
    hours.airflow.wait_for(
        lambda: hours.runs("payments") == wanted, PATIENCE_SECONDS, "a run for each hour of a table by pattern"
    )
    named = [asset["name"] for asset in hours.airflow.get("/assets?name_pattern=shop__complete__&limit=50")["assets"]]
    assert f"shop__complete__{PAYERS}" not in named, "no DAG waits for it"
    assert hours.late() == "success", hours.airflow.task_log("shop_is_late")


def test_silver_has_an_event_each_minute_of_a_run_that_goes_on_and_each_cut_once(hours: Hours) -> None:
    told = lambda: [event["extra"].get("cut_ts") for event in hours.events("shop__silver")]  # noqa: E731
    hours.cut(-3)
    take_lease(hours.lake, "shop", "apply", report=print)
    hours.airflow.unpause("shop__progress")
    began, cut_ts = time.monotonic(), 0
    while not told():
        assert time.monotonic() - began < PATIENCE_SECONDS
        cut_ts += 1
        hours.cut_at(compose(NOW * HOUR_SECONDS * 1000) + cut_ts)
        time.sleep(10)
    hours.airflow.wait_for(
        lambda: len(told()) > 1 or told()[0] == compose(NOW * HOUR_SECONDS * 1000) + cut_ts,
        PATIENCE_SECONDS,
        "the last cut is told",
    )
    assert len(set(told())) == len(told())
