"""A person's rows are erased by a DAG in a real Airflow: a dry run first, then for good, under the
user's name.

In:  a real MariaDB, a lake with rows of a person; runs triggered over Airflow's API.
Out: the lake has no value of the person. The certificate is the task's result. No file of
     Airflow's logs, and no file of the lake, has a value of the condition; a refused order
     neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession

from tests.dags.airflow_instance import AirflowInstance
from tests.dags.person import PERSON, road_with_person
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.lake.people import audit
from tidegate.local.server import Server
from tidegate.tables.actions_table import ActionOutcome

pytestmark = [pytest.mark.airflow, pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(1800)]

DAG = "road__erase"
PATIENCE_SECONDS = 400


def ended(airflow: AirflowInstance, **params: object) -> tuple[str, str]:
    """A run's state and its id."""
    body = {"logical_date": None, "conf": params}
    run_id: str = airflow.call("POST", f"/api/v2/dags/{DAG}/dagRuns", body)["dag_run_id"]

    def end() -> str:
        state: str = airflow.get(f"/dags/{DAG}/dagRuns/{quote(run_id)}")["state"]
        return state if state in {"success", "failed"} else ""

    state: str = airflow.wait_for(end, PATIENCE_SECONDS, f"the run with {sorted(params)} ends")
    return state, run_id


def test_an_erasure_is_ordered_in_airflow(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    table, where = f"{database}.t", f"mail = '{PERSON}'"
    road = road_with_person(mariadb, database, tmp_path, spark)
    assert places_of(lake, PERSON) >= {"bronze"}
    pipelines = tmp_path / "pipelines"
    pipelines.mkdir()
    file = pipelines / "road.yaml"
    road.file.rename(file)
    login = f"mysql://{quote(mariadb.user)}:{quote(mariadb.password)}@{mariadb.host}:{mariadb.port}/"
    with AirflowInstance(tmp_path / "airflow", pipelines, {"road_one": login}) as airflow:
        airflow.unpause(DAG)
        in_airflow(airflow, file, table, where, lambda: places_of(lake, PERSON))
        user = airflow.user
    acts = [(str(each.outcome), each.action.author.user, each.detail) for each in audit.actions(road.lake)]
    assert [(outcome, by) for outcome, by, _ in acts] == [("done", user), ("refused", user), ("done", user)]
    assert acts[2][2].startswith("dry run, nothing is erased: ")
    assert "no date" in acts[1][2]
    assert acts[0][0] == ActionOutcome.DONE
    logs = [path.read_bytes() for path in (tmp_path / "airflow").rglob("*.log")]
    assert len(logs) > 3
    assert not any(PERSON.encode() in data for data in logs)
    assert PERSON not in str(acts)


def in_airflow(airflow: AirflowInstance, file: Path, table: str, where: str, places: Callable[[], set[str]]) -> None:
    before = places()
    assert ended(airflow)[0] == "failed", "an order without a table"
    assert ended(airflow, table=table, where=where)[0] == "success"
    log = airflow.task_log(DAG)
    assert f"would be erased: {table}: 1 key; 2 logged rows in" in log, log
    assert places() == before
    assert ended(airflow, table=table, where=where, dry_run=False)[0] == "failed", "nobody is named"
    assert f"{airflow.user} may not erase rows" in airflow.task_log(DAG)
    assert places() == before
    file.write_text(f"{file.read_text()}erase: {{by: [{airflow.user}]}}\n")
    assert ended(airflow, table=table, where=f"born = '{PERSON}'", dry_run=False)[0] == "failed"
    assert "is no date" in airflow.task_log(DAG)
    state, run_id = ended(airflow, table=table, where=where, dry_run=False)
    assert state == "success", airflow.task_log(DAG)
    assert places() == set()
    at = f"/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/erase/xcomEntries/return_value"
    value: Any = airflow.get(at)["value"]
    certificate = json.loads(value) if isinstance(value, str) else value
    assert (certificate["by"], certificate["in"]) == (airflow.user, "Airflow")
    (of_table,) = certificate["tables"]
    assert (of_table["table"], of_table["keys"], of_table["rows_of_the_log"]) == (table, 1, 2)
    assert of_table["files_written"]
