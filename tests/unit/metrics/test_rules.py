"""The one list of alerts: its figures exist, a look says what is so, and Prometheus' rules are the same list."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tools import alert_rules

from tests.support.pipeline_views import CHASING, NOW, view
from tidegate import config
from tidegate.capture.chaser import ChaserState
from tidegate.capture.silence import LastSign, LeasedWork, Silence
from tidegate.config import BOUNDED, Alert
from tidegate.lake.figures.verified import Verified
from tidegate.metrics.catalogue import METRICS
from tidegate.metrics.measured import samples
from tidegate.metrics.rules import HOUR, RULES, LookSays, Sign, says
from tidegate.pipelines import PipelineView
from tidegate.snapshot.progress.events import SnapshotState


def so(look: PipelineView, **captures: object) -> dict[Alert, LookSays]:
    return says(look, samples(look, captures))  # type: ignore[arg-type]


def names(said: dict[Alert, LookSays]) -> dict[str, list[str]]:
    return {str(alert): sorted(of.so) for alert, of in said.items() if of.so}


def test_the_file_for_prometheus_is_written_from_the_list() -> None:
    assert alert_rules.PATH.read_text() == alert_rules.text(), "make docs"


def test_every_alert_has_a_rule_whose_figures_exist() -> None:
    assert set(RULES) == set(Alert)
    for rule in RULES.values():
        for term in rule.terms:
            assert {term.metric, term.times or term.metric, term.only_if or term.metric} <= set(METRICS)
    with_bound = {alert for alert, rule in RULES.items() if not rule.tables and rule.terms[0].sign is not Sign.IS}
    assert with_bound == BOUNDED


def test_a_pipeline_that_is_well_says_nothing() -> None:
    assert names(so(view(held=False), eu=replace(CHASING, state=ChaserState.DIRECT, retention=None))) == {}


def test_a_look_says_what_is_so_of_which_table_and_source() -> None:
    look = view(lag=400.0)
    (going,) = look.snapshots
    different = {"shop.orders_00006": Verified("different", 1, "2026-09-21T13:00:00+00:00")}
    failed = replace(going, state=SnapshotState.FAILED, table="orders_00007")
    said = so(replace(look, verified=different, failed_snapshots=(failed,)), eu=CHASING)
    assert names(said) == {
        "silver_behind": [""],
        "source_down": ["us"],
        "tables_held": ["shop.orders_00001"],
        "snapshot_failed": ["shop.orders_00007 of eu"],
        "verification_differs": ["shop.orders_00006"],
        "verification_old": [""],
        "purge_near": ["eu"],
        "value_log_full": ["eu"],
    }
    assert said[Alert.SILVER_BEHIND].so[""] == "silver is 7 min behind"
    assert said[Alert.TABLES_HELD].so["shop.orders_00001"] == "ddl_asks"
    assert said[Alert.PURGE_NEAR].so["eu"] == "eu purges uncaptured log in 2.0 h"


def test_nothing_is_known_of_what_has_no_figure() -> None:
    said = so(view())
    assert said[Alert.PURGE_NEAR].known == {"eu"}, "as the source itself says; us doesn't answer"
    assert said[Alert.VALUE_LOG_FULL].known == frozenset(), "capture isn't here"
    broken = so(PipelineView(view().pipeline, NOW, "no route"))
    assert names(broken) == {"lake_unreadable": [""]}
    assert {alert for alert, of in broken.items() if of.known != frozenset()} == {Alert.LAKE_UNREADABLE}


def test_the_pipeline_file_leaves_alerts_out_and_has_bounds_of_its_own() -> None:
    look = view(lag=400.0)
    part = config.Alerts(leave_out=(Alert.SOURCE_DOWN,), bounds={Alert.SILVER_BEHIND: 900, Alert.PURGE_NEAR: HOUR})
    said = so(replace(look, pipeline=look.pipeline.model_copy(update={"alerts": part})), eu=CHASING)
    assert Alert.SOURCE_DOWN not in said
    assert not said[Alert.SILVER_BEHIND].so
    assert not said[Alert.PURGE_NEAR].so


def test_stopped_work_is_said_of_its_source_and_of_apply() -> None:
    look = view(held=False)
    assert look.standing is not None
    name = look.pipeline.pipeline
    silences = tuple(
        Silence(work, of, name, LastSign.ENDED, NOW, "dag")
        for work, of in ((LeasedWork.CAPTURE, "us"), (LeasedWork.APPLY, name))
    )
    said = so(replace(look, standing=replace(look.standing, silences=silences)))
    assert names(said) == {"capture_down": ["us"], "apply_down": [""]}
    assert said[Alert.CAPTURE_DOWN].so["us"] == "capture of us doesn't run"
    assert said[Alert.CAPTURE_DOWN].known == {"eu", "us"}


@pytest.mark.parametrize(("run_for", "is_silent"), [(600, True), (3600, False)])
def test_capture_at_rest_for_as_long_as_a_run_is_not_silent(run_for: int, is_silent: bool) -> None:
    look = view()
    capture = look.pipeline.capture.model_copy(update={"run_for_seconds": run_for})
    resting = replace(CHASING, written_at=NOW - 1000)
    said = so(replace(look, pipeline=look.pipeline.model_copy(update={"capture": capture})), eu=resting)
    assert bool(said[Alert.CAPTURE_SILENT].so) is is_silent


@pytest.mark.parametrize("hours", [1, 3])
def test_a_purge_is_near_by_the_hours_of_the_pipeline_file(hours: int) -> None:
    look = view()
    capture = look.pipeline.capture.model_copy(update={"retention_alert_hours": hours})
    said = so(replace(look, pipeline=look.pipeline.model_copy(update={"capture": capture})), eu=CHASING)
    assert bool(said[Alert.PURGE_NEAR].so) is (hours == 3)


def test_the_page_has_every_alert_with_its_time() -> None:
    page = (alert_rules.PATH.parents[2] / "docs/alerts.md").read_text()
    rows = re.findall(r"^\| \[?`([a-z_]+)`(?:\]\(runbooks/(.*)\.md\))? \| .* \| ([^|]*) \|$", page, re.MULTILINE)
    times = {0: "at once", 3600: "1 h"}
    assert rows == [
        (str(alert), rule.runbook, times.get(rule.for_seconds, f"{rule.for_seconds // 60} min"))
        for alert, rule in RULES.items()
    ]
    pages = alert_rules.PATH.parents[2] / "docs/runbooks"
    assert all((pages / f"{rule.runbook}.md").exists() for rule in RULES.values() if rule.runbook)
