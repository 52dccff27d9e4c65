"""A pipeline is shown to whoever may read its apply DAG, by Airflow's own auth manager, and to nobody else."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
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


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("path", "cookie", "code", "words"),
    [
        ("dags/road__apply/act?name=shop.a&action=approve", "user=vic", 403, "right to edit the DAG road__apply"),
        ("dags/road__apply/act?name=shop.a&action=frobnicate", "user=ann", 422, "action: Input should be"),
        ("dags/road__apply?page=0", "user=vic", 422, "page: Input should be greater"),
        ("dags/other__apply/act?name=shop.a&action=approve", "user=ann", 404, "isn&#x27;t the apply DAG of a pipeline"),
        ("dags/road__apply/nowhere", "user=vic", 404, "Not Found"),
        ("dags/road__apply/table?name=shop.a", "", 401, "You aren&#x27;t logged in"),
        ("dags/road__apply/table?name=shop.a", "_token=not.a.token", 403, "You aren&#x27;t logged in"),
        ("", "_token=not.a.token", 403, "You aren&#x27;t logged in"),
    ],
)
def test_a_browser_gets_a_refusal_in_words_and_a_program_json(
    url: str, path: str, cookie: str, code: int, words: str
) -> None:
    got, shown, kind = ask(f"{url}/{path}", cookie, BROWSER)
    assert (got, kind) == (code, "text/html; charset=utf-8")
    assert words in shown
    assert "<title>" in shown
    roots = re.findall("href='((?:\\.\\./)*)'>All pipelines", shown)
    assert roots == ["../" * path.partition("?")[0].count("/")], "the way back"
    login = re.findall("href='([^']*api/v2/auth/login[^']*)'", shown)
    assert bool(login) is ("logged in" in words)
    assert not login or login[0].endswith("login?next=" + urllib.parse.quote(f"/{path}", safe=""))
    got, shown, kind = ask(f"{url}/{path}", cookie, "*/*")
    assert (got, kind) == (code, "application/json")
    assert json.loads(shown)["detail"]


def ask(url: str, cookie: str, accept: str) -> tuple[int, str, str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as caught:
        opener.open(urllib.request.Request(url, headers={"Cookie": cookie, "Accept": accept}))
    return caught.value.code, caught.value.read().decode(), str(caught.value.headers["content-type"])


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
