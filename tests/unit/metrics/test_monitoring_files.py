"""The alerts, the dashboard and the page about metrics name metrics and labels that are emitted, and all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate.metrics.catalogue import METRICS

ROOT = Path(__file__).resolve().parents[3]
ALERTS = ROOT / "docker/monitoring/alerts.yaml"
DASHBOARD = ROOT / "docker/monitoring/dashboard.json"
PAGE = ROOT / "docs/metrics.md"

NAME = re.compile(r"tidegate_[a-z_]+")
SELECTED = re.compile(r"(tidegate_[a-z_]+)\{([^}]*)\}")
LABEL = re.compile(r"([a-z_]+)\s*(?:=~|!~|!=|=)")
USED = re.compile(r"\{\{\s*(?:\$labels\.)?([a-z]+)\s*\}\}")


def rules() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def queries() -> Iterator[tuple[str, str]]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        yield from ((target["expr"], target["legendFormat"]) for target in panel["targets"])


def labels_of(expression: str) -> set[str]:
    return {label for name in NAME.findall(expression) for label in METRICS[name].labels}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_is_emitted(rule: dict[str, Any]) -> None:
    names = set(NAME.findall(rule["expr"]))
    assert names
    assert names <= set(METRICS)
    for name, selected in SELECTED.findall(rule["expr"]):
        assert set(LABEL.findall(selected)) <= set(METRICS[name].labels)
    for text in rule["annotations"].values():
        assert set(re.findall(r"\$labels\.([a-z]+)", text)) <= labels_of(rule["expr"])
    assert rule["labels"]["severity"] in ("info", "warning", "critical")


@pytest.mark.parametrize(("expression", "legend"), list(queries()))
def test_a_panel_shows_what_is_emitted(expression: str, legend: str) -> None:
    assert set(NAME.findall(expression)) <= set(METRICS)
    for name, selected in SELECTED.findall(expression):
        assert set(LABEL.findall(selected)) <= set(METRICS[name].labels)
    assert set(USED.findall(legend)) <= labels_of(expression)


def test_a_panel_shows_whatever_is_up_or_down() -> None:
    shown = {name for expression, _ in queries() for name in NAME.findall(expression)}
    assert {name for name in METRICS if name.endswith(("_up", "_down"))} <= shown


def test_a_state_and_an_outcome_in_an_alert_exist() -> None:
    from tidegate.capture.health import Health
    from tidegate.snapshot.progress.events import SnapshotState
    from tidegate.verify.report import Outcome

    quoted = {value for rule in rules() for value in re.findall(r'(?:state|outcome)="([^"]+)"', rule["expr"])}
    assert quoted
    assert quoted <= {*map(str, Health), *map(str, Outcome), *map(str, SnapshotState)}


def test_the_page_has_every_metric() -> None:
    rows = re.findall(r"^\| `(tidegate_[a-z_]+)` \| (.*?) \| (.*?) \|$", PAGE.read_text(), re.MULTILINE)
    expected = [
        (metric.name, ", ".join(f"`{label}`" for label in metric.labels if label != "pipeline"), metric.meaning)
        for metric in METRICS.values()
    ]
    assert [(name, labels.strip(), meaning) for name, labels, meaning in rows] == expected
