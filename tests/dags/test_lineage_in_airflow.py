"""A real Airflow runs capture, apply and verify with the OpenLineage provider, which writes their words into a file.

In:  a pipeline without any bronze yet; one of a real server, whose source is changed behind its log's back.
Out: the last events of the tasks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.dags.airflow_instance import AirflowInstance
from tests.support.servers import FreshDatabase
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.tables import silver_path

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.timeout(1800)]

PIPELINE = """
pipeline: shop
lake: {{path: {lake}}}
sources: {{db: {{conn_id: db, flavour: mysql}}}}
tables: {{include: ["shop.*"]}}
"""
WHOLE = """
pipeline: shop
lake: {{path: {lake}}}
sources: {{db: {{conn_id: db, flavour: mariadb}}}}
tables: {{include: ["{database}.*"]}}
capture: {{run_for_seconds: 20, idle_seconds: 5, heartbeat_seconds: 1, value_log_path: {spool}}}
apply: {{mode: batch, quiet_seconds: 20, driver_memory: 768m}}
verify: {{each_table_hours: 1}}
"""
PATIENCE_SECONDS = 400


def events(path: Path, job: str = "shop__apply.apply", kind: str = "COMPLETE") -> list[dict[str, Any]]:
    """Of a task that has ended: well, or with FAIL."""
    read = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [event for event in read if event["eventType"] == kind and event["job"]["name"] == job]


def telling(sent: Path, airflow: AirflowInstance) -> AirflowInstance:
    """An Airflow whose provider writes its events into a file."""
    transport = {"type": "file", "log_file_path": str(sent), "append": True}
    airflow._environment["AIRFLOW__OPENLINEAGE__TRANSPORT"] = json.dumps(transport)
    return airflow


def verdicts(event: dict[str, Any]) -> dict[str, list[bool]]:
    """Table of silver -> whether each of its assertions holds."""
    return {
        each["name"]: [said["success"] for said in each["inputFacets"]["dataQualityAssertions"]["assertions"]]
        for each in event["inputs"]
    }


@pytest.mark.server
def test_a_change_is_followed_from_its_table_to_silver_and_its_verdict(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    pipelines, lake, sent = (tmp_path / name for name in ("pipelines", "lake", "events.json"))
    pipelines.mkdir()
    database = fresh_database(mariadb)
    values = {"lake": lake, "database": database, "spool": tmp_path / "spool"}
    (pipelines / "shop.yaml").write_text(WHOLE.format(**values))
    mariadb.query(f"CREATE TABLE `{database}`.orders (id INT PRIMARY KEY, paid DECIMAL(9, 2))")
    mariadb.query(f"CREATE TABLE `{database}`.items (id INT PRIMARY KEY, name VARCHAR(20))")
    place = f"{quote(mariadb.user)}:{quote(mariadb.password)}@{mariadb.host}:{mariadb.port}"
    airflow = telling(sent, AirflowInstance(tmp_path / "airflow", pipelines, {"db": f"mysql://{place}/"}))
    source = f"mysql://{mariadb.host}:{mariadb.port}"
    files = LakeFiles(str(lake))
    bronze, orders, items = (files.uri(path) for path in ("bronze/segments", *_silver(database)))
    with airflow:
        for kind in ("capture", "apply"):
            airflow.unpause(f"shop__{kind}")
        airflow.wait_for((lake / "bronze/segments/_delta_log").exists, PATIENCE_SECONDS, "capture has begun")
        mariadb.query(f"INSERT INTO `{database}`.orders VALUES (1, 2.50), (2, 3.50)")
        mariadb.query(f"INSERT INTO `{database}`.items VALUES (1, 'one')")

        def written() -> dict[str, dict[str, Any]]:
            return {out["name"]: out for event in events(sent) for out in event["outputs"]}

        airflow.wait_for(lambda: {orders, items} <= written().keys(), PATIENCE_SECONDS, "apply names both tables")
        fields = written()[orders]["facets"]["columnLineage"]["fields"]
        (paid,) = fields["paid"]["inputFields"]
        assert (paid["namespace"], paid["name"], paid["field"]) == (source, f"{database}.orders", "paid")

        def captured() -> list[dict[str, Any]]:
            known = events(sent, "shop__capture.db")
            return [event for event in known if f"{database}.orders" in {each["name"] for each in event["inputs"]}]

        event, *_ = airflow.wait_for(captured, PATIENCE_SECONDS, "capture names the source's tables")
        assert {each["namespace"] for each in event["inputs"]} == {source}
        assert [each["name"] for each in event["outputs"]] == [bronze]
        airflow.unpause("shop__verify")
        airflow.call("POST", "/api/v2/dags/shop__verify/dagRuns", {"logical_date": None})

        def compared() -> list[dict[str, Any]]:
            """Of two runs, the scheduled one and this one, the later finds nothing due."""
            return [event for event in events(sent, "shop__verify.verify") if event["inputs"]]

        (ended,) = airflow.wait_for(compared, PATIENCE_SECONDS, "verify has compared both tables")
        assert verdicts(ended) == {orders: [True], items: [True]}
        # A row is changed that no log tells of: the task fails, and its verdicts are told all the same.
        with mariadb.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute("UPDATE orders SET paid = 9 WHERE id = 2")
        conf = {"tables": [f"{database}.orders"]}
        airflow.call("POST", "/api/v2/dags/shop__verify/dagRuns", {"logical_date": None, "conf": conf})
        (failed,) = airflow.wait_for(
            lambda: events(sent, "shop__verify.verify", "FAIL"), PATIENCE_SECONDS, "verify has seen it"
        )
        assert verdicts(failed) == {orders: [False]}
        (said,) = failed["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
        assert said["description"] == "1 rows differ, 0 keys are unsettled"
    assert mariadb.password not in sent.read_text()


def _silver(database: str) -> tuple[str, str]:
    return silver_path(database, "orders"), silver_path(database, "items")


def test_the_provider_asks_the_operator_and_sends_what_it_says(tmp_path: Path) -> None:
    pipelines, lake, sent = (tmp_path / name for name in ("pipelines", "lake", "events.json"))
    pipelines.mkdir()
    (pipelines / "shop.yaml").write_text(PIPELINE.format(lake=lake))
    airflow = telling(sent, AirflowInstance(tmp_path / "airflow", pipelines, {"db": "mysql://u:p@127.0.0.1:1"}))
    with airflow:
        airflow.unpause("shop__apply")
        airflow.call("POST", "/api/v2/dags/shop__apply/dagRuns", {"logical_date": None})
        (event,) = airflow.wait_for(lambda: events(sent), PATIENCE_SECONDS, "the event of the end")
    assert [each["name"] for each in event["inputs"]] == [LakeFiles(str(lake)).uri("bronze/segments")]
    facet = event["run"]["facets"]["tidegate"]
    assert (facet["cutTs"], facet["tablesChanged"]) == ("0", 0)
