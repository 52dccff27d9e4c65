"""The page's routes, under Airflow's own login: only pipelines whose apply DAG the user may read.

In:  requests; the pipeline files.
Out: HTML pages, the same as JSON, and the page's scripts: one brings a page up to date every few
     seconds. One route changes something: a form of this very page, by a user who may edit the
     pipeline's apply DAG (rights.py).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from urllib.parse import urlencode

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from tidegate import pipelines
from tidegate.errors import LakeUnavailable, TidegateError, UsageError
from tidegate.patience import NoAnswer, NotAsked
from tidegate.pipelines import PipelineReader, PipelineReaders
from tidegate.tables.actions_table import Act
from tidegate_airflow.connections import PLACE, lake_connection, source_connection
from tidegate_airflow.page import refusals, rights
from tidegate_airflow.page.act_view import NO_ACTIONS, TableActions, not_known, nothing_done, question
from tidegate_airflow.page.acting import SentForm, digest, held_with, perform
from tidegate_airflow.page.layout import ASK_SCRIPT, HEADERS, SCRIPT, document
from tidegate_airflow.page.overview import broken_files, overview
from tidegate_airflow.page.patient import PatientReader, PatientReaders
from tidegate_airflow.page.pipeline_view import pipeline_view
from tidegate_airflow.page.questions import APPROVE, DagState, is_asked, way_to_answer
from tidegate_airflow.page.rights import GetUserDep
from tidegate_airflow.page.table_view import table_view
from tidegate_airflow.page.tables_list import TablesAsked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.actions.desk import Desk
    from tidegate.actions.offers import Offer
    from tidegate.config import Pipeline
    from tidegate.lake.schema_history.schema_changes import SchemaChange
    from tidegate.pipelines import PipelineFile, PipelineView
    from tidegate.standing.standing import Standing

log = logging.getLogger(__name__)
app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(rights.may_read)])
refusals.add_to(app)
_readers: Final = PipelineReaders(lake_connection, source_connection)
_patient: Final = PatientReaders()
Span = Literal["hour", "day", "week"]
Sort = Literal["trouble", "name", "lag", "verified", "rows", "files", "bytes"]
TableName = Annotated[str, Query(max_length=400)]
# %s: the way to the page of all pipelines, which has the errors of files.
_NO_PIPELINE: Final = "<p>This DAG belongs to no pipeline with a good file. See <a href='%s'>all pipelines</a>.</p>"


@app.get("/")
def every_pipeline(user: GetUserDep) -> HTMLResponse:
    """All that the user may see."""
    files, broken = pipelines.read()
    views = _patient.views([_readers.of(pipeline) for pipeline in _allowed(user, files)])
    broken = broken if rights.may_see_import_errors(user) else []
    return HTMLResponse(document("tidegate", broken_files(broken) + overview(views), ""), 200, HEADERS)


def tables_asked(
    q: Annotated[str, Query(max_length=200)] = "",
    state: Annotated[str, Query(max_length=20)] = "",
    sort: Sort = "trouble",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    span: Span = "hour",
) -> TablesAsked:
    """The query of a pipeline's page."""
    return TablesAsked(q, state, sort, page, span)


@app.get("/dags/{dag_id}")
def one_dag(dag_id: str, user: GetUserDep, asked: Annotated[TablesAsked, Depends(tables_asked)]) -> HTMLResponse:
    """The pipeline that a DAG belongs to."""
    body = ""
    for pipeline in _of(dag_id, user):
        can_act = rights.may_edit(f"{pipeline.pipeline}__apply", user)
        patient = _patiently(pipeline)
        view = patient.view(asked.span)
        way = way_to_answer(view, _asker(view), "../../")
        body = pipeline_view(view, asked, patient.disks(), can_act=can_act, answer=way)
    return HTMLResponse(document(dag_id, body or _NO_PIPELINE % "../", "../"), 200, HEADERS)


@app.get("/dags/{dag_id}/table")
def one_table(
    dag_id: str, name: TableName, user: GetUserDep, done: Annotated[str, Query(max_length=32)] = ""
) -> HTMLResponse:
    """A table of the pipeline that a DAG belongs to. done: the id of the action that the user comes from."""
    body = _NO_PIPELINE % "../../"
    for pipeline in _of(dag_id, user):
        reader = _patiently(pipeline)
        can_act = rights.may_edit(f"{pipeline.pipeline}__apply", user)
        view, changes, actions = _table(reader, name, can_act=can_act)
        if actions.past and actions.past[0].at.timestamp() > view.at:  # somebody acted, maybe in another process
            reader.look_again()
            view, changes, actions = _table(reader, name, can_act=can_act)
        way = way_to_answer(view, _asker(view, name), "../../../")
        body = table_view(view, name, changes, replace(actions, done=done), answer=way)
    return HTMLResponse(document(name, body, "../../"), 200, HEADERS)


def _asker(view: PipelineView, name: str = "") -> DagState | None:
    return rights.dag_state(f"{view.pipeline.pipeline}__{APPROVE}") if is_asked(view, name) else None


def _table(
    reader: PatientReader, name: str, *, can_act: bool
) -> tuple[PipelineView, Sequence[SchemaChange] | None, TableActions]:
    """A look with the details of one table: none of an unknown table, or without an answer in time."""
    view = reader.view()
    tables = view.standing.tables if view.standing is not None and not view.is_old else ()
    if any(table.table == name for table in tables):
        with suppress(NoAnswer):
            asked = partial(_details, reader.reader, name, can_act=can_act)
            return view, *reader.ask(f"{name} {can_act}", asked)
    return view, None, NO_ACTIONS


def _details(reader: PipelineReader, name: str, *, can_act: bool) -> tuple[list[SchemaChange], TableActions]:
    offered = _offers(reader, name)[0] if can_act else []
    return reader.schema_changes(name), TableActions(offered, reader.actions_on(name))


@app.get("/dags/{dag_id}/act", dependencies=[Depends(rights.needs_edit)])
def ask_first(dag_id: str, name: TableName, action: Act, user: GetUserDep) -> HTMLResponse:
    """The question before an action, with the form that does it. Nothing is changed."""
    pipeline = _applied_by(dag_id)
    patient, desk = _patiently(pipeline), _desk(pipeline, user, "")
    if patient.view().is_old:
        return _not_done(name, _silent(pipeline))
    try:
        body = patient.act(f"{action} {name}", lambda: _question(patient.reader, name, action, desk))
    except NoAnswer:
        return _not_done(name, _silent(pipeline))
    except UsageError as error:
        return _not_done(name, error)
    return HTMLResponse(document(name, body, "../../", "ask.js"), 200, HEADERS)


def _question(reader: PipelineReader, name: str, action: Act, desk: Desk) -> str:
    """Raises UsageError if the action isn't offered."""
    offered, standing = _offers(reader, name)
    offer = next((each for each in offered if each.act is action), None)
    if offer is None:
        raise UsageError("the table doesn't wait for that any more")
    dag_id = f"{reader.pipeline.pipeline}__snapshot"
    if action in (Act.SNAPSHOT, Act.RESUME) and rights.dag_state(dag_id) is not DagState.RUNS:
        lacks = f"But {dag_id} is paused, or Airflow hasn't read it yet: nothing is read before somebody unpauses it."
        offer = replace(offer, effect=f"{offer.effect} {lacks}")
    judged = list[str]()
    if action is Act.JUDGE and standing is not None and standing.event is not None:
        judged = held_with(desk, standing.event)
    about = judged or [progress.snapshot for progress in reader.snapshots_of(name)]
    return question(name, offer, standing, reader.schema_changes(name), judged, digest(about))


def _silent(pipeline: Pipeline) -> LakeUnavailable:
    return LakeUnavailable("doesn't answer", where=pipeline.lake.path, remedy="try again once it answers")


@app.post("/dags/{dag_id}/act", dependencies=[Depends(rights.needs_edit), Depends(rights.same_origin)])
def act(dag_id: str, user: GetUserDep, fields: Annotated[dict[str, list[str]], Depends(rights.form_of)]) -> Response:
    """Do it, as the command does; then show the table, and what became of it."""
    pipeline = _applied_by(dag_id)
    patient = _patiently(pipeline)
    reader = patient.reader
    try:
        form = SentForm.of(fields)
    except UsageError as error:
        return _not_done("", error)
    if patient.view().is_old:  # nothing is begun that a person can't see the end of
        return _not_done(form.name, _silent(pipeline))
    try:
        patient.act(form.id, lambda: perform(_desk(pipeline, user, form.id), form))
    except NotAsked:
        return _not_done(form.name, _silent(pipeline))
    except NoAnswer:
        return _not_known(form.name)
    except Exception as error:
        if not isinstance(error, TidegateError | OSError):
            log.exception("%s of %s met a fault", form.act, form.name)
        try:
            recorded = patient.ask(form.id, lambda: reader.actions_on(form.name))
        except NoAnswer:
            return _not_known(form.name)
        # If a button is pressed twice, the action is done once, and the record shows its outcome.
        if form.id not in {known.action.id for known in recorded}:
            return _not_done(form.name, error)
    finally:
        patient.look_again()
    return RedirectResponse("table?" + urlencode({"name": form.name, "done": form.id}), 303, HEADERS)


def _not_known(name: str) -> HTMLResponse:
    return HTMLResponse(document(name, not_known(name), "../../", "ask.js"), 504, HEADERS)


def _not_done(name: str, error: Exception) -> HTMLResponse:
    text = nothing_done(name, " ".join(str(error).split()))
    return HTMLResponse(document(name, text, "../../", "ask.js"), 409, HEADERS)


@app.get("/dags/{dag_id}/status.json")
def status_json(dag_id: str, user: GetUserDep, span: Span = "hour") -> JSONResponse:
    """The JSON of `tidegate status --json`, with the pipeline's state in one word and its
    history.
    """
    pipelines_of = _of(dag_id, user)
    if not pipelines_of:
        raise HTTPException(404, "this DAG belongs to no pipeline")
    view = _patiently(pipelines_of[0]).view(span)
    return JSONResponse(pipelines.as_json(view), 503 if view.standing is None or view.is_old else 200, HEADERS)


@app.get("/{name}.js")
def script(name: Literal["page", "ask"]) -> Response:
    """The page's scripts."""
    text = SCRIPT if name == "page" else ASK_SCRIPT
    return Response(text, media_type="text/javascript", headers=HEADERS | {"Cache-Control": "max-age=3600"})


def _patiently(pipeline: Pipeline) -> PatientReader:
    return _patient.of(_readers.of(pipeline))


def _allowed(user: Any, files: Sequence[PipelineFile]) -> list[Pipeline]:
    by_dag = {f"{file.pipeline.pipeline}__apply": file.pipeline for file in files}
    return [by_dag[dag_id] for dag_id in sorted(rights.allowed(by_dag, user))]


def _of(dag_id: str, user: Any) -> list[Pipeline]:
    """The pipeline of a DAG, if the user may also read its apply DAG: anybody may give another DAG such a name."""
    return [pipeline for pipeline in _allowed(user, pipelines.read()[0]) if is_of(dag_id, pipeline)]


def _applied_by(dag_id: str) -> Pipeline:
    """The pipeline of this apply DAG: only its edit right allows a change. Raises HTTPException."""
    for file in pipelines.read()[0]:
        if dag_id == f"{file.pipeline.pipeline}__apply":
            return file.pipeline
    raise HTTPException(404, "this isn't the apply DAG of a pipeline")


def is_of(dag_id: str, pipeline: Pipeline) -> bool:
    """Whether a DAG is one of this pipeline's."""
    name, _, work = dag_id.removeprefix(pipeline.pipeline).partition("__")
    return dag_id.startswith(pipeline.pipeline) and not name and (work in pipeline.captures or "__" not in work)


def _offers(reader: PipelineReader, name: str) -> tuple[list[Offer], Standing | None]:
    """Offers for a table, and where it stands; nothing if the lake can't be read."""
    from tidegate.actions.offers import offers

    try:
        standing = reader.standing_of(name)
    except (TidegateError, OSError):
        return [], None
    return offers(reader.pipeline, name, standing, reader.snapshots_of(name)), standing


def _desk(pipeline: Pipeline, user: Any, token: str) -> Desk:
    from tidegate.actions.desk import Desk
    from tidegate.lake.people.audit import Author

    lake = pipelines.open_lake(pipeline, lake_connection)
    return Desk(pipeline, lake, source_connection, Author(user.get_name(), PLACE), token)
