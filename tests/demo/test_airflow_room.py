"""`tidegate check` says when Airflow has too few slots for all sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.cli.airflow_room import airflow_lines


@pytest.mark.parametrize(("sources", "said"), [(26, False), (27, True)])
@pytest.mark.parametrize("by", ["environment", "file"])
def test_too_few_slots_are_said(sources: int, said: bool, by: str, tmp_path: Path) -> None:
    environment = {"AIRFLOW_HOME": str(tmp_path)}
    (tmp_path / "airflow.cfg").write_text(f"[core]\nparallelism = {32 if by == 'file' else 8}\nfernet_key = a%b\n")
    if by == "environment":
        environment["AIRFLOW__CORE__PARALLELISM"] = "32"
    found = airflow_lines(sources, environment)
    assert [line.of for line in found] == (["Airflow"] if said else [])


def test_where_no_airflow_is_nothing_is_said(tmp_path: Path) -> None:
    assert airflow_lines(1000, {"AIRFLOW_HOME": str(tmp_path)}) == []
    (tmp_path / "airflow.cfg").write_text("no [section")
    assert airflow_lines(1000, {"AIRFLOW_HOME": str(tmp_path)}) == []
