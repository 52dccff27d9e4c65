"""The page's routes, under Airflow's own login: only pipelines whose apply DAG the user may read.

In:  requests; the pipeline files.
Out: HTML pages, the same as JSON, and the page's one script, which brings a page up to date every few seconds and does
     nothing else. Nothing here writes.

The only module that uses more of Airflow than its SDK: a plugin's page has no authentication unless it asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response

from tidegate import pipelines
from tidegate.pipelines import PipelineReaders
from tidegate_airflow.connections import lake_connection, source_connection
from tidegate_airflow.page.layout import HEADERS, SCRIPT, document
from tidegate_airflow.page.overview import overview
from tidegate_airflow.page.pipeline_view import pipeline_view
from tidegate_airflow.page.table_view import table_view
from tidegate_airflow.page.tables_list import TablesAsked

if TYPE_CHECKING:
    from tidegate.config import Pipeline

app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(requires_access_dag("GET"))])
_readers: Final = PipelineReaders(lake_connection, source_connection)
Span = Literal["hour", "day", "week"]


@app.get("/")
def every_pipeline(user: GetUserDep) -> HTMLResponse:
    """All that the user may see."""
    views = [_readers.of(pipeline).view() for pipeline in _allowed(user)]
    return HTMLResponse(document("tidegate", overview(views), ""), 200, HEADERS)


@app.get("/dags/{dag_id}")
def one_dag(
    dag_id: str,
    q: Annotated[str, Query(max_length=200)] = "",
    state: Annotated[str, Query(max_length=20)] = "",
    sort: Literal["trouble", "name", "lag", "verified"] = "trouble",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    span: Span = "hour",
) -> HTMLResponse:
    """The pipeline that a DAG belongs to; access to that DAG is what the application demands."""
    asked = TablesAsked(q, state, sort, page, span)
    body = "".join(pipeline_view(_readers.of(each).view(span), asked) for each in _of(dag_id))
    return HTMLResponse(document(dag_id, body or "<p>This DAG is no pipeline's.</p>", "../"), 200, HEADERS)


@app.get("/dags/{dag_id}/table")
def one_table(dag_id: str, name: Annotated[str, Query(max_length=400)]) -> HTMLResponse:
    """A table of the pipeline that a DAG belongs to."""
    body = "".join(
        table_view(reader.view(), name, reader.schema_changes(name)) for reader in map(_readers.of, _of(dag_id))
    )
    return HTMLResponse(document(name, body or "<p>This DAG is no pipeline's.</p>", "../../"), 200, HEADERS)


@app.get("/dags/{dag_id}/status.json")
def status_json(dag_id: str, span: Span = "hour") -> JSONResponse:
    """What `tidegate status --json` says, with the pipeline's state in one word and its history."""
    pipelines_of = _of(dag_id)
    if not pipelines_of:
        raise HTTPException(404, "this DAG is no pipeline's")
    view = _readers.of(pipelines_of[0]).view(span)
    return JSONResponse(view.plain(), 503 if view.standing is None else 200, HEADERS)


@app.get("/page.js")
def script() -> Response:
    """The page's script."""
    return Response(SCRIPT, media_type="text/javascript", headers=HEADERS | {"Cache-Control": "max-age=3600"})


def _allowed(user: Any) -> list[Pipeline]:
    files = {f"{file.pipeline.pipeline}__apply": file.pipeline for file in pipelines.good_files()}
    allowed = get_auth_manager().filter_authorized_dag_ids(dag_ids=set(files), user=user)
    return [files[dag_id] for dag_id in sorted(allowed)]


def _of(dag_id: str) -> list[Pipeline]:
    return [file.pipeline for file in pipelines.good_files() if is_of(dag_id, file.pipeline)]


def is_of(dag_id: str, pipeline: Pipeline) -> bool:
    """Whether a DAG is one of this pipeline's."""
    name, _, work = dag_id.removeprefix(pipeline.pipeline).partition("__")
    return not name and (work in pipeline.captures or "__" not in work)
