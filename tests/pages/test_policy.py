"""The policy of docs/how-to/celery.md, as Airflow reads it: capture's tasks, and no others, get the queue."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import ROOT

pytestmark = pytest.mark.airflow

PIPELINE = """
pipeline: shop
lake: {path: lakes/shop}
sources: {eu: {conn_id: eu_db, flavour: mariadb}, us: {conn_id: us_db, flavour: mariadb}}
tables: {include: ["shop.*"]}
"""


def tasks(dag: dict[str, Any]) -> list[dict[str, Any]]:
    return [task["__var"] for task in dag["serialised"]["dag"]["tasks"]]


def test_captures_tasks_alone_get_the_queue(tmp_path: Path) -> None:
    (policy,) = re.findall(r"    ```python\n(.*?)    ```", (ROOT / "docs/how-to/celery.md").read_text(), re.DOTALL)
    for folder in ("airflow/config", "pipelines"):
        (tmp_path / folder).mkdir(parents=True)
    lines = [line.removeprefix("    ") for line in policy.splitlines()]
    (tmp_path / "airflow" / "config" / "airflow_local_settings.py").write_text("\n".join(lines) + "\n")
    (tmp_path / "pipelines" / "shop.yaml").write_text(PIPELINE)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/dags/parse_dags.py"), str(ROOT / "dags"), str(tmp_path / "parsed.json")],
        env=os.environ | {"AIRFLOW_HOME": str(tmp_path / "airflow"), "TIDEGATE_PIPELINES": str(tmp_path / "pipelines")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    dags = json.loads((tmp_path / "parsed.json").read_text())["dags"]
    queues = {dag_id: {task.get("queue", "default") for task in tasks(dag)} for dag_id, dag in dags.items()}
    assert [queues.pop(dag_id) for dag_id in ("shop__capture", "shop__capture_us")] == [{"capture"}] * 2
    assert "shop__apply" in queues
    assert set().union(*queues.values()) == {"default"}
