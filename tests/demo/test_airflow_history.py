"""`tidegate up --keep-history`: Airflow's database of last time goes on, and what a killed Airflow left is put in line.

In:  Airflow's own schema, as `airflow db migrate` makes it.
Out: which task instances keep their state.
"""

from __future__ import annotations

import sqlite3
from importlib.metadata import version
from pathlib import Path

import pytest

from tidegate.local.airflow import Airflow

pytestmark = pytest.mark.airflow


def test_runs_of_a_killed_airflow_are_started_again_and_ended_ones_stay(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    airflow = Airflow(tmp_path / "home", tmp_path, tmp_path / "pipelines", {})
    airflow.home.mkdir()
    assert not airflow._database_goes_on(), "there is none yet"
    airflow._fresh_database()
    database = airflow.home / "airflow.db"
    with sqlite3.connect(database) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(task_instance)")]
        connection.execute("PRAGMA foreign_keys = OFF")
        needed = [row[1] for row in connection.execute("PRAGMA table_info(task_instance)") if row[3] and not row[4]]
        for number, state in enumerate(("running", "queued", "success", "deferred", "up_for_retry")):
            values = {name: f"{name}{number}" for name in needed} | {"state": state}
            marks = ", ".join("?" for _ in values)
            connection.execute(f"INSERT INTO task_instance ({', '.join(values)}) VALUES ({marks})", [*values.values()])
    assert "state" in names
    assert airflow._database_goes_on()
    with sqlite3.connect(database) as connection:
        states = {row[0] for row in connection.execute("SELECT state FROM task_instance")}
    assert states == {None, "success", "deferred", "up_for_retry"}
    (airflow.home / f"template-{version('apache-airflow')}.db").rename(airflow.home / "template-0.1.db")
    assert not airflow._database_goes_on(), "another version's database isn't this one's"
