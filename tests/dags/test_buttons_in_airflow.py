"""A person presses the page's buttons in a real Airflow: behind its login, in the DAG's tab, with its own rights.

In:  a lake with a table that waits for approval of a statement, and one that waits for a release; the pipeline file
     says `ask` only once Airflow runs.
Out: Airflow asks, once, without anybody unpausing the new DAG. Both are released, recorded under the name of Airflow's
     user; and the question in Airflow ends by itself.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from tests.dags.airflow_instance import AirflowInstance
from tests.dags.browser import browser, click, log_in, see
from tests.dags.page_looks import look_at, resize, walk_by_keyboard
from tests.dags.page_server import NO_SERVER
from tests.dags.waiting_table import DDL, waits_for_approval
from tests.support.event_log import Log
from tidegate import tables
from tidegate.lake import control
from tidegate.lake.people.audit import actions
from tidegate.lake.standing import held
from tidegate.lake.standing.held import to_row
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1800), pytest.mark.filterwarnings("ignore")]

DAG = "road__apply"


def waiting(folder: Path) -> Log:
    """shop.a waits at a statement, shop.b for a cause that a person removes."""
    log = waits_for_approval(folder)
    stops = Standing(State.HELD, "shop.b: the disk of silver is full", Cause.FAULT, 1)
    control.append(log.lake, tables.TABLE_STATES, [to_row(stops, "road", "shop.b", datetime.now(UTC))])
    return log


def state(log: Log, name: str) -> State:
    return held.last_states(log.lake)[name].state


def press(chromium: Chrome, log: Log, name: str, words: list[str], screenshots: Path) -> None:
    """From the list in the DAG's tab to the button that asks, and the one that does it."""
    click(chromium, f"a[href*='name={name}'][href$='#acts']")
    see(chromium, None, ["What you can do", words[0]])
    click(chromium, "a.button")
    see(chromium, None, words[1:])
    chromium.save_screenshot(str(screenshots / f"airflow-{name}.png"))
    assert state(log, name) is State.HELD, "nothing is done yet"
    click(chromium, "form.ask button")
    see(chromium, None, [f"Done. {name} goes on", "Who did what", "(Airflow)"])
    assert state(log, name) is State.RELEASED


class ReadingOften(AirflowInstance):
    """It reads DAG files every half minute, as an Airflow without settings does."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._environment |= {"AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30"}


def is_asked(airflow: AirflowInstance) -> bool:
    questions = airflow.get("/dags/road__approve/dagRuns/~/hitlDetails")["hitl_details"]
    return [question["subject"] for question in questions] == ["shop.a: may silver follow this DDL?"]


def runs(airflow: AirflowInstance) -> list[str]:
    """States of the runs that ask, the oldest first."""
    return [run["state"] for run in airflow.get("/dags/road__approve/dagRuns?order_by=run_after")["dag_runs"]]


def test_release_and_approve_are_pressed_in_airflow_itself(tmp_path: Path) -> None:
    screenshots = Path(os.environ.get("SCREENSHOTS", tmp_path))
    pipelines = tmp_path / "pipelines"
    pipelines.mkdir()
    log = waiting(tmp_path)
    asks = log.file.read_text()
    file = pipelines / "road.yaml"
    file.write_text(asks.replace("drop_column: ask, ", ""))
    with ReadingOften(tmp_path / "airflow", pipelines, {"c": NO_SERVER, "d": NO_SERVER}) as airflow:
        airflow.wait_for(lambda: airflow.get(f"/dags/{DAG}"), 600, "Airflow has the DAGs")
        file.write_text(asks)
        airflow.wait_for(lambda: airflow.get("/dags/road__approve"), 600, "and the new one")
        airflow.wait_for(lambda: is_asked(airflow), 600, "which asks, though nobody has unpaused it")
        airflow.call("POST", "/api/v2/dags/road__approve/dagRuns", {"logical_date": None})
        airflow.wait_for(lambda: runs(airflow) == ["running", "success"], 600, "a run by hand has nothing to ask")
        assert is_asked(airflow), "no question is asked twice"
        with browser() as chromium:
            resize(chromium, 1400)
            log_in(chromium, airflow)
            see(chromium, f"{airflow.url}/tidegate/dags/{DAG}", ["Required Actions of road__approve"])
            click(chromium, "a[href$='required_actions?response_received=false']")
            see(chromium, None, ["shop.a: may silver follow this DDL?"])
            chromium.save_screenshot(str(screenshots / "airflow-required-actions.png"))
            tab = f"{airflow.url}/dags/{DAG}/plugin/tidegate_pipeline"
            for name, words in (
                ("shop.a", ["Approve the statement ...", "Approve the statement: shop.a", DDL, "- v", "+ note text"]),
                ("shop.b", ["Release ...", "Release: shop.b", "the disk of silver is full", "held again"]),
            ):
                chromium.switch_to.default_content()
                chromium.get(tab)
                frame(chromium)
                see(chromium, None, ["shop.a", "shop.b"])
                press(chromium, log, name, words, screenshots)
            chromium.switch_to.default_content()
            see(chromium, f"{airflow.url}/tidegate/dags/{DAG}", ["catching up"])
            look_at(chromium, screenshots, "airflow")
            assert walk_by_keyboard(chromium) >= 5
            airflow.wait_for(lambda: set(runs(airflow)) == {"success"}, 120, "the question ends in Airflow, too")
            (ended,) = airflow.get("/dags/road__approve/dagRuns/~/hitlDetails")["hitl_details"]
            assert ended["chosen_options"] == ["Ended elsewhere"]
            see(chromium, f"{airflow.url}/dags/road__approve/required_actions?response_received=false", ["Required"])
            chromium.save_screenshot(str(screenshots / "airflow-no-required-actions.png"))
            open_ones = airflow.get("/dags/road__approve/dagRuns/~/hitlDetails?response_received=false")
            assert open_ones["hitl_details"] == []
        done = {(str(each.action.act), each.action.author.user, str(each.outcome)) for each in actions(log.lake)}
        assert done == {("approve", airflow.user, "done"), ("release", airflow.user, "done")}


def frame(chromium: Chrome) -> None:
    """Into the plugin's tab."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.expected_conditions import frame_to_be_available_and_switch_to_it
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(chromium, 120).until(frame_to_be_available_and_switch_to_it((By.TAG_NAME, "iframe")))
