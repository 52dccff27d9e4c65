"""A real Airflow runs apply with the OpenLineage provider, which writes what the operator says into a file.

In:  a pipeline without any bronze yet.
Out: the last event of the task.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dags.airflow_instance import AirflowInstance
from tidegate.lake.files import LakeFiles

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.timeout(1200)]

PIPELINE = """
pipeline: shop
lake: {{path: {lake}}}
sources: {{db: {{conn_id: db, flavour: mysql}}}}
tables: {{include: ["shop.*"]}}
"""
PATIENCE_SECONDS = 400


def events(path: Path) -> list[dict[str, Any]]:
    """Of apply's task that has ended well."""
    read = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [event for event in read if event["eventType"] == "COMPLETE" and event["job"]["name"] == "shop__apply.apply"]


def test_the_provider_asks_the_operator_and_sends_what_it_says(tmp_path: Path) -> None:
    pipelines, lake, sent = (tmp_path / name for name in ("pipelines", "lake", "events.json"))
    pipelines.mkdir()
    (pipelines / "shop.yaml").write_text(PIPELINE.format(lake=lake))
    airflow = AirflowInstance(tmp_path / "airflow", pipelines, {"db": "mysql://u:p@127.0.0.1:1"})
    transport = {"type": "file", "log_file_path": str(sent), "append": True}
    airflow._environment["AIRFLOW__OPENLINEAGE__TRANSPORT"] = json.dumps(transport)
    with airflow:
        airflow.unpause("shop__apply")
        airflow.call("POST", "/api/v2/dags/shop__apply/dagRuns", {"logical_date": None})
        (event,) = airflow.wait_for(lambda: events(sent), PATIENCE_SECONDS, "the event of the end")
    assert [each["name"] for each in event["inputs"]] == [LakeFiles(str(lake)).uri("bronze/segments")]
    facet = event["run"]["facets"]["tidegate"]
    assert (facet["cutTs"], facet["tablesChanged"]) == ("0", 0)
