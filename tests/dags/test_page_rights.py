"""A pipeline is shown to whoever may read its apply DAG, by Airflow's own auth manager, and to nobody else."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.models.dag import DagModel

from tests.dags.page_server import served_by
from tests.support.event_log import Log

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    log = Log(tmp_path)
    log.level()
    log.apply()
    with served_by(monkeypatch, log.file) as url:
        yield url


def get(url: str) -> tuple[int, str]:
    """As vic, who may read."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers={"Cookie": "user=vic"})) as answer:
            return int(answer.status), str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.code, ""


@pytest.mark.parametrize("dag_id", ["road__report", "__report", "road"])
def test_a_dag_of_such_a_name_shows_no_pipeline(url: str, monkeypatch: pytest.MonkeyPatch, dag_id: str) -> None:
    """Such a DAG may be another team's: the right to read it is none to read the pipeline."""
    of_manager = SimpleAuthManager.is_authorized_dag

    def this_alone(manager: SimpleAuthManager, *, details: Any = None, **asked: Any) -> bool:
        is_this = details is None or details.id in (None, dag_id)
        return is_this and of_manager(manager, details=details, **asked)

    assert "id='road'" in get(f"{url}/dags/road__apply")[1], "with the right for all DAGs"
    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", this_alone)
    assert get(f"{url}/dags/road__apply")[0] == 403
    assert "road__apply" not in get(f"{url}/")[1]
    for page, back in ((dag_id, "../"), (f"{dag_id}/table?name=shop.a", "../../")):
        shown = get(f"{url}/dags/{page}")[1]
        assert f"This DAG belongs to no pipeline with a good file. See <a href='{back}'>all" in shown
    assert get(f"{url}/dags/{dag_id}/status.json")[0] == 404


def test_another_teams_pipeline_is_not_in_the_list(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Airflow knows teams: vic is in none."""
    assert "road__apply" in get(f"{url}/")[1]
    monkeypatch.setattr(DagModel, "get_team_name", lambda *_, **__: "red")
    monkeypatch.setattr(DagModel, "get_dag_id_to_team_name_mapping", lambda ids, **_: dict.fromkeys(ids, "red"))
    assert get(f"{url}/dags/road__apply")[0] == 403
    assert "road__apply" not in get(f"{url}/")[1]
