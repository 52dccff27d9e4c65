"""A real Airflow tells a webhook what began and what ended, once each, while another notifier is down.

In:  a lake whose verdicts the test writes; a server of HTTP on this machine.
Out: what was posted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.dags.airflow_instance import AirflowInstance
from tests.support.webhook import Webhook
from tidegate import tables
from tidegate.commit_ts import compose
from tidegate.config import Alert
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.tables.snapshot_tables import VERIFICATION

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1800)]

LEFT_OUT = ", ".join(alert for alert in Alert if alert is not Alert.VERIFICATION_DIFFERS)
PIPELINE = f"""
pipeline: shop
lake: {{path: LAKE}}
sources: {{db: {{conn_id: db, flavour: mysql}}}}
tables: {{include: ["shop.*"]}}
alerts:
  notifiers:
    good: {{notifier: tidegate_airflow.webhook_notifier.WebhookNotifier, arguments: {{http_conn_id: good}}}}
    sick: {{notifier: tidegate_airflow.webhook_notifier.WebhookNotifier, arguments: {{http_conn_id: sick}}}}
  leave_out: [{LEFT_OUT}]
"""
PATIENCE_SECONDS = 400
NAMES = [f"shop.t{number:03}" for number in range(500)]


class Verdicts:
    """The lake, and the two notifiers."""

    def __init__(self, airflow: AirflowInstance, lake: LakeFiles, good: Webhook, sick: Webhook) -> None:
        self.airflow, self.lake, self.good, self.sick = airflow, lake, good, sick

    def say(self, outcome: str) -> None:
        """Of all tables."""
        now = datetime.now(UTC)
        empty = {field.name: "" if field.type == "string" else 0 for field in VERIFICATION.schema}
        by = {"source": "db", "database": "shop", "outcome": outcome, "recorded_at": now}
        rows = [{**empty, **by, "table": name.partition(".")[2], "silver": name} for name in NAMES]
        control.append(self.lake, VERIFICATION, rows)

    def lines(self, hook: Webhook) -> list[str]:
        """All that was posted, in order."""
        return [change["line"] for body in hook.bodies for change in body["changes"]]

    def wait(self, hook: Webhook, count: int) -> None:
        self.airflow.wait_for(lambda: len(self.lines(hook)) >= count, PATIENCE_SECONDS, f"{count} lines")


@pytest.fixture
def verdicts(tmp_path: Path) -> Iterator[Verdicts]:
    pipelines, lake = tmp_path / "pipelines", tmp_path / "lake"
    pipelines.mkdir()
    (pipelines / "shop.yaml").write_text(PIPELINE.replace("LAKE", str(lake)))
    with Webhook() as good, Webhook() as sick:
        hooks = {
            name: json.dumps({"conn_type": "http", "host": "127.0.0.1", "port": hook.port})
            for name, hook in (("good", good), ("sick", sick))
        }
        sick.status = 500
        files = LakeFiles(str(lake))
        cut_ts = compose(int(time.time() * 1000))
        rows = [
            {"cut_ts": cut_ts, "table": name, "delta_version": 1, "state": "active", "applied_ts": cut_ts}
            | {"published_at": datetime.now(UTC)}
            for name in ("", *NAMES)
        ]
        control.append(files, tables.CUTS, rows)
        airflow = AirflowInstance(tmp_path / "airflow", pipelines, {"db": "mysql://u:p@127.0.0.1:1"} | hooks)
        with airflow:
            yield Verdicts(airflow, files, good, sick)


def test_trouble_and_its_end_are_told_once_each_and_a_sick_notifier_holds_nobody_up(verdicts: Verdicts) -> None:
    verdicts.say("different")
    verdicts.airflow.unpause("shop__alerts_good")
    verdicts.airflow.unpause("shop__alerts_sick")
    verdicts.wait(verdicts.good, 1)
    verdicts.airflow.wait_for(lambda: verdicts.sick.refused, PATIENCE_SECONDS, "the sick one is asked")
    verdicts.say("equal")
    verdicts.wait(verdicts.good, 2)
    lines = verdicts.lines(verdicts.good)
    assert len(lines) == 2, lines
    assert lines[0].startswith("Tables differ from the source (500): shop.t000, shop.t001, ")
    assert lines[1].startswith("Over: Tables differ from the source (500): shop.t000, ")
    assert verdicts.sick.bodies == []
    # The sick one is well again: it gets all that it missed.
    verdicts.sick.status = 200
    verdicts.wait(verdicts.sick, 2)
    assert verdicts.lines(verdicts.sick) == lines
