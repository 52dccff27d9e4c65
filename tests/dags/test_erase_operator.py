"""The erase task's own behaviour: who may order, what its log and its result say; called as Airflow's runner calls it.

In:  a real MariaDB, a lake with rows of a person.
Out: the lake has no value of the person after the one order that may erase. No line, error or result has a value of
     the condition. Airflow itself, with its API and its files of logs: test_erase_in_airflow.py, nightly.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.dags.person import PERSON, road_with_person
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.errors import ConfigError, UsageError
from tidegate.lake.people import audit
from tidegate.local.server import Server
from tidegate.tables.actions_table import ActionOutcome

pytestmark = [pytest.mark.airflow, pytest.mark.server]

USER = "ann"


def ordered(road: Road, *, user: str | None = USER, **params: object) -> Any:
    """The task's result. Params are the DAG's, where none are given."""
    from tidegate_airflow.erase_operator import EraseOperator

    task = EraseOperator(task_id="erase", pipeline_file=str(road.file))
    given = {"table": "", "where": "", "follow_keys": False, "wait": 600, "dry_run": True} | params
    context: Any = {"params": given, "run_id": "manual__1", "dag_run": SimpleNamespace(triggering_user_name=user)}
    return task.execute(context)


def test_an_erasure_is_ordered_by_a_user_who_may(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate_airflow import erase_operator

    masked: list[object] = []
    monkeypatch.setattr(erase_operator, "mask_secret", masked.append)
    monkeypatch.setenv(
        "AIRFLOW_CONN_ROAD_ONE", f"mysql://{mariadb.user}:{mariadb.password}@{mariadb.host}:{mariadb.port}/"
    )
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    table, where = f"{database}.t", f"mail = '{PERSON}'"
    road = road_with_person(mariadb, database, tmp_path)
    before = places_of(lake, PERSON)
    assert before >= {"bronze"}
    with capture_logs() as lines:
        said = [refused(road, "lacks a table or a condition")]
        said.append(refused(road, "nobody has ordered this erasure", user=None, table=table, where=where))
        assert ordered(road, table=table, where=where) is None, "a dry run has no certificate"
        assert f"would be erased: {table}: 1 key; 2 logged rows in" in str(lines)
        said.append(refused(road, f"{USER} may not erase rows", table=table, where=where, dry_run=False))
        road.file.write_text(f"{road.file.read_text()}erase: {{by: [{USER}]}}\n")
        said.append(refused(road, "is no date", table=table, where=f"born = '{PERSON}'", dry_run=False))
        assert places_of(lake, PERSON) == before
        certificate = ordered(road, table=table, where=where, dry_run=False)
    assert places_of(lake, PERSON) == set()
    assert (certificate["by"], certificate["in"]) == (USER, "Airflow")
    (of_table,) = certificate["tables"]
    assert (of_table["table"], of_table["keys"], of_table["rows_of_the_log"]) == (table, 1, 2)
    assert of_table["files_written"]
    acts = [(str(each.outcome), each.action.author.user, each.detail) for each in audit.actions(road.lake)]
    assert [(outcome, by) for outcome, by, _ in acts] == [("done", USER), ("refused", USER), ("done", USER)]
    assert acts[2][2].startswith("dry run, nothing is erased: ")
    assert acts[0][0] == ActionOutcome.DONE
    assert not any(PERSON in text for text in (*said, str(acts), str(certificate), str(lines)))
    assert set(masked) == {"", where, f"born = '{PERSON}'"}


def refused(road: Road, why: str, **order: Any) -> str:
    """What the order's error says."""
    with pytest.raises((UsageError, ConfigError), match=why) as error:
        ordered(road, **order)
    return str(error.value)
