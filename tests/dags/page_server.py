"""The page's own application behind a port, with views made by hand in place of lakes: a browser looks at it.

In:  views by pipeline.
Out: its address while the context lasts. Airflow's login is left out; tests/dags/pages.py looks at it with Airflow.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi import Request

from tests.support.pipeline_views import CUT
from tidegate.connections import from_text
from tidegate.lake.schema_history.schema_changes import SchemaChange
from tidegate.pipelines import PipelineFile, PipelineView
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.version_changes import changes
from tidegate_airflow.page.questions import DagState

if TYPE_CHECKING:
    from tidegate.config import Pipeline

START_SECONDS_MAX = 30
NO_SERVER = '{"conn_type": "mysql", "host": "127.0.0.1", "port": 1}'
COLUMNS = (Column(1, "id", "int(11)"), Column(2, "qty", "int(11)"), Column(3, "note", "text"))


class Views:
    """In place of PipelineReaders: the same view for every look."""

    def __init__(self, views: Mapping[str, PipelineView]) -> None:
        self._views = views

    def of(self, pipeline: Pipeline) -> Views:
        return Views({"": self._views[pipeline.pipeline]})

    @property
    def pipeline(self) -> Pipeline:
        return self._views[""].pipeline

    def view(self, span: str = "hour") -> PipelineView:
        del span
        changes = [("shop.orders_00001", change) for change in self.schema_changes("shop.orders_00001")[:1]]
        return replace(self._views[""], changes=tuple(changes))

    def actions_on(self, name: str) -> list[Any]:
        return []

    def schema_changes(self, name: str) -> list[SchemaChange]:
        """Two versions: the second has a column more, and a wider one."""
        old = TableVersion("eu", *name.split("."), 1, CUT, "b.1", 4, "baseline", "", COLUMNS[:2], (1,), "utf8mb4")  # type: ignore[arg-type]
        ddl = "ALTER TABLE t ADD note TEXT, MODIFY qty BIGINT"
        wide = (COLUMNS[0], replace(COLUMNS[1], type="bigint(20)"), COLUMNS[2])
        new = replace(old, version=2, commit_ts=CUT + 1, kind="alter", ddl=ddl, columns=wide)
        return [SchemaChange(new, tuple(changes(old, new))), SchemaChange(old, tuple(changes(None, old)))]


@contextmanager
def served(patch: pytest.MonkeyPatch, views: Mapping[str, PipelineView], readers: Any = None) -> Iterator[str]:
    """readers: what looks at the pipelines; else the views are shown. Whoever looks may edit nothing."""
    from tidegate_airflow.page import application

    files = [PipelineFile(Path("x.yaml"), view.pipeline) for view in views.values()]
    patch.setattr(application, "_readers", readers or Views(views))
    patch.setattr(application.pipelines, "read", lambda: (files, []))
    patch.setattr(application, "_allowed", lambda *_: [view.pipeline for view in views.values()])
    patch.setattr(application.rights, "may_edit", lambda *_: False)
    patch.setattr(application.rights, "may_see_import_errors", lambda *_: False)
    patch.setattr(application.rights, "dag_state", lambda _: DagState.RUNS)
    overrides: dict[Any, Any] = {application.rights.may_read: lambda: None}
    overrides[_get_user()] = lambda: None
    with _running(patch, overrides) as url:
        yield url


@contextmanager
def served_by(patch: pytest.MonkeyPatch, file: Path, connection: str = NO_SERVER) -> Iterator[str]:
    """A pipeline of real files, under the rights of Airflow's own SimpleAuthManager: the cookie `user` is ann, of role
    user, or vic, of role viewer; anybody else has a token of Airflow's, or none. Airflow's database is left out; it
    knows no teams.

    connection: as JSON, of all its sources.
    """
    from airflow.api_fastapi.app import create_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.security import resolve_user_from_token
    from airflow.models.dag import DagModel

    from tidegate.pipelines import PipelineReaders, load
    from tidegate_airflow.page import application

    users = {
        name: SimpleAuthManagerUser(username=name, role=role) for name, role in (("ann", "user"), ("vic", "viewer"))
    }

    async def get_user(request: Request) -> Any:
        user = users.get(request.cookies.get("user", ""))
        return user or await resolve_user_from_token(request.cookies.get("_token"))

    create_auth_manager()
    known = from_text("AIRFLOW_CONN_C", connection)
    patch.setattr(DagModel, "get_team_name", lambda *_, **__: None)
    patch.setattr(DagModel, "get_dagmodel", lambda dag_id: DagModel(dag_id=dag_id, is_paused=False, is_stale=False))
    patch.setattr(DagModel, "get_dag_id_to_team_name_mapping", lambda *_, **__: {})
    patch.setattr(application, "_readers", PipelineReaders(lambda _: known, lambda _: known))
    patch.setattr(application, "source_connection", lambda _: known)
    patch.setattr(application.pipelines, "read", lambda: ([PipelineFile(file, load(file))], []))
    with _running(patch, {_get_user(): get_user}) as url:
        yield url


def _get_user() -> Any:
    from airflow.api_fastapi.core_api.security import get_user

    return get_user


@contextmanager
def _running(patch: pytest.MonkeyPatch, overrides: Mapping[Any, Any]) -> Iterator[str]:
    import uvicorn

    from tidegate_airflow.page.application import app

    for dependency, instead in overrides.items():
        patch.setitem(app.dependency_overrides, dependency, instead)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        for _ in range(START_SECONDS_MAX * 20):
            if server.started:
                break
            threading.Event().wait(0.05)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_SECONDS_MAX)
