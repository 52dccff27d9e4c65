"""The page leads to a question under Airflow's Required Actions, and says when nobody asks it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.models.dag import DagModel

from tests.dags.page_server import served_by
from tests.dags.test_page_acts import World
from tests.dags.waiting_table import waits_for_approval
from tidegate import tables
from tidegate.lake import control
from tidegate.lake.standing import held
from tidegate.limits import PAGE_LOOK_SECONDS
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place, Standing
from tidegate.tables import State
from tidegate_airflow.page.questions import DagState

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    log = waits_for_approval(tmp_path)
    with served_by(monkeypatch, log.file) as url:
        yield World(log, url)


@pytest.mark.parametrize("state", DagState)
def test_a_question_is_said_to_be_where_it_is(world: World, monkeypatch: pytest.MonkeyPatch, state: DagState) -> None:
    """A paused DAG asks nobody, and there is none before Airflow has read its file."""
    known = DagModel(dag_id="road__approve", is_paused=state is DagState.PAUSED, is_stale=state is DagState.MISSING)
    monkeypatch.setattr(DagModel, "get_dagmodel", lambda dag_id: known if dag_id == "road__approve" else None)
    for page, root in ((f"{world.url}/dags/road__apply", "../../"), (world.table, "../../../")):
        shown = world.get(page, "vic")
        links = re.findall("href='([^']*road__approve[^']*)' target='_top'", shown)
        match state:
            case DagState.RUNS:
                assert links == [f"{root}dags/road__approve/required_actions?response_received=false"]
            case DagState.PAUSED:
                assert links == [f"{root}dags/road__approve"]
                assert "is paused, so Required Actions doesn't have the question" in shown
            case DagState.MISSING:
                assert not links
                assert "Airflow hasn't read <code>road__approve</code> yet" in shown
    held.release(world.log.lake, held.last_states(world.log.lake)["shop.a"])
    time.sleep(PAGE_LOOK_SECONDS)
    assert "road__approve" not in world.get(world.table, "vic"), "nothing is asked any more"


@pytest.mark.parametrize("state", DagState)
def test_whoever_asks_for_rows_hears_that_nobody_reads_them(
    world: World, monkeypatch: pytest.MonkeyPatch, state: DagState
) -> None:
    """The question said that the DAG begins within a minute, also while it is paused."""
    known = DagModel(dag_id="road__snapshot", is_paused=state is DagState.PAUSED, is_stale=state is DagState.MISSING)
    monkeypatch.setattr(DagModel, "get_dagmodel", lambda dag_id: known if dag_id == "road__snapshot" else None)
    lacks = Standing(
        State.HELD, "it has older rows", Cause.NEEDS_ROWS, 20, Place("one", "shop", "b", "b.000001", 4, 20)
    )
    control.append(world.log.lake, tables.TABLE_STATES, [held.to_row(lacks, "road", "shop.b", datetime.now(UTC))])
    page = world.get(f"{world.acts}?name=shop.b&action=snapshot", "ann")
    assert "road__snapshot begins within about a minute" in page
    assert ("But road__snapshot is paused, or Airflow hasn&#x27;t read it" in page) is (state is not DagState.RUNS)
