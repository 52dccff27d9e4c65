"""`tidegate check` says when Airflow has too few slots for all sources; that of `tidegate up` has enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.cli.airflow_room import airflow_lines
from tidegate.local.airflow import Airflow


@pytest.mark.parametrize(("sources", "said"), [(26, False), (27, True)])
@pytest.mark.parametrize("by", ["environment", "file"])
def test_too_few_slots_are_said(sources: int, said: bool, by: str, tmp_path: Path) -> None:
    environment = {"AIRFLOW_HOME": str(tmp_path)}
    (tmp_path / "airflow.cfg").write_text(f"[core]\nparallelism = {32 if by == 'file' else 8}\nfernet_key = a%b\n")
    if by == "environment":
        environment["AIRFLOW__CORE__PARALLELISM"] = "32"
    found = airflow_lines(sources, environment)
    assert [line.of for line in found] == (["Airflow"] if said else [])


@pytest.mark.parametrize("sources", [1, 30])
def test_tidegate_ups_own_airflow_has_enough(sources: int, tmp_path: Path) -> None:
    listed = ", ".join(f"s{number}: {{conn_id: c{number}, flavour: mysql}}" for number in range(sources))
    text = f"pipeline: p\nlake: {{path: x}}\nsources: {{{listed}}}\ntables: {{include: ['*.*']}}\n"
    (tmp_path / "p.yaml").write_text(text)
    environment = Airflow(tmp_path / "home", tmp_path, tmp_path, {})._environment
    assert airflow_lines(sources, environment) == []
    assert airflow_lines(sources + 1, environment) != []


def test_where_no_airflow_is_nothing_is_said(tmp_path: Path) -> None:
    assert airflow_lines(1000, {"AIRFLOW_HOME": str(tmp_path)}) == []
    (tmp_path / "airflow.cfg").write_text("no [section")
    assert airflow_lines(1000, {"AIRFLOW_HOME": str(tmp_path)}) == []


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ("workers", "execution_api_timeout"),
        ("core", "dagbag_import_timeout"),
        ("dag_processor", "dag_file_processor_timeout"),
    ],
)
def test_tidegate_ups_own_airflow_waits_for_a_busy_machine(section: str, name: str, tmp_path: Path) -> None:
    environment = Airflow(tmp_path / "home", tmp_path, tmp_path, {})._environment
    assert float(environment[f"AIRFLOW__{section}__{name}".upper()]) >= 60, "by Airflow's own, tasks are killed there"
