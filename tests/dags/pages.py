"""What tidegate's own pages in Airflow show, looked at with a browser.

In:  a running Airflow with a pipeline.
Out: nothing; AssertionError names what a person would miss.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.dags.airflow_instance import AirflowInstance
from tests.dags.browser import browser, can_be_clicked, click, log_in, see, see_in_frame

EVENT_SECONDS_MAX = 400


def look_for_held_table(airflow: AirflowInstance, pipeline: str, table: str, screenshots: Path) -> None:
    """On the page of all pipelines, in the DAG's tab, in the asset's event and as a warning; not without a login."""
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{airflow.url}/tidegate/")
    with browser() as chromium:
        log_in(chromium, airflow)
        see(chromium, f"{airflow.url}/tidegate/", [pipeline, "tables wait", "1 held", "tables waits."])
        chromium.save_screenshot(str(screenshots / "pipelines.png"))
        see(
            chromium,
            f"{airflow.url}/tidegate/dags/{pipeline}__apply",
            [table, "DROP COLUMN", "Required Actions", "Lag"],
        )
        chromium.save_screenshot(str(screenshots / "held.png"))
        chromium.get(f"{airflow.url}/dags/{pipeline}__apply/plugin/tidegate_pipeline")
        see_in_frame(chromium, [table, "Required Actions"])
    newest = f"/assets/events?source_dag_id={pipeline}__apply&order_by=-timestamp&limit=1"
    airflow.wait_for(
        lambda: table in airflow.get(newest)["asset_events"][0]["extra"]["held"], EVENT_SECONDS_MAX, "the event says it"
    )

    def warned() -> bool:
        text = airflow.task_log(f"{pipeline}__apply")  # of a run that may have begun just now, and writes it
        lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
        return any(line["level"] == "warning" and f"{table} is held: " in line["event"] for line in lines)

    airflow.wait_for(warned, EVENT_SECONDS_MAX, "the task's log warns")


def look_at_maintain_form(airflow: AirflowInstance, chromium: Chrome, pipeline: str, screenshots: Path) -> None:
    """A run for all tables is triggered by the form as it opens. The browser is logged in."""
    see(chromium, f"{airflow.url}/dags/{pipeline}__maintain", ["Owner"])
    click(chromium, "[data-testid='trigger-dag-button']")
    see(chromium, None, ["Run Parameters", "One silver table, database.table; empty: all"])
    chromium.save_screenshot(str(screenshots / "maintain.png"))
    assert can_be_clicked(chromium, "Trigger")
