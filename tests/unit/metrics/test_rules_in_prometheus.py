"""Prometheus itself reads the alert rules: each fires once it is so for long enough, and not before.

In:  promtool (apt package prometheus); without it the tests are skipped, and say so.
Out: what promtool says.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tidegate.config import Alert
from tidegate.metrics.catalogue import METRICS
from tidegate.metrics.rules import RULES, Measure, Sign, Term

ROOT: Final = Path(__file__).resolve().parents[3]
FILE: Final = ROOT / "docker/monitoring/alerts.yaml"
# promtool's clock begins at 0: an age above the bound needs so many minutes of silence first.
_LATE_MINUTES: Final = 60 * 24 * 4


@pytest.fixture
def promtool() -> str:
    """Its path."""
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("no promtool here: apt-get install prometheus")
    return tool


def said(*command: str) -> str:
    """Raises AssertionError with what promtool says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def series(metric: str, labels: dict[str, str], value: float) -> dict[str, Any]:
    """A series of one value for the whole test."""
    named = ", ".join(f'{name}="{labels.get(name, name)}"' for name in METRICS[metric].labels)
    return {"series": f"{metric}{{{named}}}", "values": f"{value:g}x{_LATE_MINUTES + 600}"}


def figures(term: Term, bound: float) -> list[dict[str, Any]]:
    """Series that make the term so."""
    times = 1000.0
    bound = bound if term.bound is None else term.bound
    value = {Sign.ABOVE: bound + 1, Sign.BELOW: bound / 2 * (times if term.times else 1), Sign.IS: bound}[term.sign]
    if term.form is Measure.AGE:
        value = 1.0
    labels = dict(term.labels or {})
    more = [series(term.times, labels, times)] if term.times else []
    more += [series(term.only_if, labels, 1.0)] if term.only_if else []
    return [series(term.metric, labels, value), *more]


def test_promtool_reads_the_rules(promtool: str) -> None:
    assert f"{len(RULES) + 1} rules" in said(promtool, "check", "rules", str(FILE))


@pytest.mark.parametrize("alert", list(Alert))
def test_a_rule_fires_after_its_time_and_not_before(alert: Alert, promtool: str, tmp_path: Path) -> None:
    rule = RULES[alert]
    name = "Tidegate" + "".join(word.capitalize() for word in alert.split("_"))
    firing = f'count(ALERTS{{alertname="{name}", alertstate="firing"}})'
    silent = f'count(ALERTS{{alertname="{name}"}})'
    for term in rule.terms:
        begins = _LATE_MINUTES if term.form is Measure.AGE else 0
        after = begins + rule.for_seconds // 60 + 2
        expected = [{"expr": firing, "eval_time": f"{after}m", "exp_samples": [{"labels": "{}", "value": 1}]}]
        if begins:
            expected.append({"expr": silent, "eval_time": "1m", "exp_samples": []})
        elif rule.for_seconds >= 120:
            expected.append({"expr": firing, "eval_time": "1m", "exp_samples": []})
        written = {
            "rule_files": [str(FILE)],
            "evaluation_interval": "1m",
            "tests": [
                {"interval": "1m", "input_series": figures(term, rule.bound), "promql_expr_test": expected},
            ],
        }
        file = tmp_path / f"{term.metric}.yaml"
        file.write_text(yaml.safe_dump(written))
        said(promtool, "test", "rules", str(file))


def test_the_alert_of_an_overdue_hour_names_the_tables_that_it_waits_for(promtool: str, tmp_path: Path) -> None:
    waits = [series("tidegate_waiting_table_overdue_seconds", {"table": name}, 900) for name in ("shop.a", "shop.b")]
    other = {"pipeline": "other", "table": "crm.c"}
    late = series("tidegate_hour_overdue_seconds", {"table": "*"}, 900)
    said_of = RULES[Alert.HOUR_OVERDUE].do.format(pipeline="pipeline")
    alert = {
        "exp_labels": {"severity": "warning", "pipeline": "pipeline", "table": "*"},
        "exp_annotations": {
            "summary": "pipeline: an hour of all tables is over for 15m 0s and isn't complete",
            "description": f"{said_of} It waits for: shop.a shop.b",
            "runbook": "docs/runbooks/hour-overdue.md",
        },
    }
    written = {
        "rule_files": [str(FILE)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [late, *waits, series("tidegate_waiting_table_overdue_seconds", other, 900)],
                "alert_rule_test": [{"alertname": "TidegateHourOverdue", "eval_time": "5m", "exp_alerts": [alert]}],
            }
        ],
    }
    file = tmp_path / "overdue.yaml"
    file.write_text(yaml.safe_dump(written))
    said(promtool, "test", "rules", str(file))
