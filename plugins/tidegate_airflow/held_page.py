"""The page "tidegate" in Airflow: per pipeline silver's lag, the held tables, why, and the way out, and the progress
of snapshots.

In:  the pipeline files; each lake, and each source's binlog position, when the page is opened.
Out: one HTML page without scripts, under Airflow's own login: only pipelines whose apply DAG the user may read.

The only module that uses more of Airflow than its SDK: a plugin's page has no authentication unless it asks for it.
"""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Final

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI
from fastapi.responses import HTMLResponse

from tidegate import pipelines
from tidegate.tables import State
from tidegate_airflow.connections import lake_connection, source_connection
from tidegate_airflow.progress_table import progress_table

if TYPE_CHECKING:
    from tidegate.capture.standing import SourceStanding, Standing
    from tidegate.config import Pipeline
    from tidegate.lake.status import TableStatus

_STYLE: Final = """
body {font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; max-width: 70rem; color: #1a202c; background: #fff}
h2 {margin: 1.6rem 0 .2rem} table {border-collapse: collapse; margin: .6rem 0; width: 100%}
td, th {border-bottom: 1px solid #cbd5e0; padding: .35rem .7rem .35rem 0; text-align: left; vertical-align: top}
.held {color: #9b2c2c; font-weight: 600} .good {color: #276749} code {overflow-wrap: anywhere}
@media (prefers-color-scheme: dark) {body {color: #e2e8f0; background: #12161c} .held {color: #fc8181}
.good {color: #68d391} td, th {border-color: #2d3748}}
"""
# No script, no frame but Airflow's own, nothing from elsewhere.
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'",
    "Cache-Control": "no-store",
}

app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(requires_access_dag("GET"))])


@app.get("/")
def every_pipeline(user: GetUserDep) -> HTMLResponse:
    """All that the user may see."""
    files = {f"{file.pipeline.pipeline}__apply": file.pipeline for file in pipelines.good_files()}
    allowed = get_auth_manager().filter_authorized_dag_ids(dag_ids=set(files), user=user)
    shown = [_shown(files[dag_id]) for dag_id in sorted(allowed)]
    return _page("".join(shown) or "<p>There is no pipeline that you may see.</p>")


@app.get("/dags/{dag_id}")
def one_dag(dag_id: str) -> HTMLResponse:
    """The pipeline of a DAG; the application demands access to that DAG."""
    found = [file.pipeline for file in pipelines.good_files() if _is_of(dag_id, file.pipeline)]
    return _page("".join(map(_shown, found)) or "<p>This DAG is no pipeline's.</p>")


def _is_of(dag_id: str, pipeline: Pipeline) -> bool:
    name, _, work = dag_id.removeprefix(pipeline.pipeline).partition("__")
    return not name and (work in pipeline.captures or "__" not in work)


def _page(body: str) -> HTMLResponse:
    head = f"<meta charset='utf-8'><title>tidegate</title><style>{_STYLE}</style>"
    return HTMLResponse(f"<!doctype html><html lang='en'><head>{head}</head><body>{body}</body></html>", 200, _HEADERS)


def _shown(pipeline: Pipeline) -> str:
    """A pipeline's part of the page; a lake that can't be read is said, and the others are shown."""
    from tidegate.capture.standing import standing
    from tidegate.snapshot.progress.automatic import seen
    from tidegate.snapshot.progress.standing import under_way

    title = f"<h2>{escape(pipeline.pipeline)}</h2>"
    try:
        lake = pipelines.open_lake(pipeline, lake_connection)
        found = standing(pipeline, lake, pipelines.asking(pipeline, lake, source_connection))
        found = replace(found, tables=seen(pipeline, lake, found.tables))
        snapshots = under_way(lake)
    except Exception as error:  # noqa: BLE001 - of whatever a store says; the page is where a person looks
        return f"{title}<p class='held'>The lake can't be read: {escape(' '.join(str(error).split())[:500])}</p>"
    return title + _summary(found) + _held_tables(found) + progress_table(snapshots)


def _summary(found: Standing) -> str:
    from tidegate.commit_ts import time_text

    count, held = len(found.tables), len(found.held)
    if not found.cut_ts:
        state = "<span class='held'>Nothing is applied yet</span>"
    elif found.ahead:
        state = "<span class='held'>The cut is in the future, and apply goes no further: its log says why</span>"
    elif found.nothing_missing:
        state = "<span class='good'>Nothing is missing</span>"
    else:
        state = f"{found.lag_seconds or 0:.0f} s behind"
    tables = f", but for <span class='held'>{held} of {count} tables, held</span>" if held else f" in {count} tables"
    filled = sum(table.state is State.SNAPSHOT for table in found.tables)
    tables += f"; {filled} lack rows until their snapshots end" if filled else ""
    at = f", at the cut of {escape(time_text(found.cut_ts))}" if found.cut_ts else ""
    return f"<p>{state}{tables if count else ''}{at}.</p>" + "".join(_source(source) for source in found.sources)


def _source(source: SourceStanding) -> str:
    name = escape(source.source)
    if source.unheard:
        return f"<p>Source {name}: <span class='held'>{escape(source.unheard)}</span></p>"
    if source.server.error:
        return f"<p>Source {name}: <span class='held'>not asked: {escape(source.server.error)}</span></p>"
    if source.captured is None:
        return f"<p>Source {name}: <span class='held'>nothing is captured yet</span></p>"
    said = "nothing is missing" if source.nothing_missing else f"{source.lag_seconds or 0:.0f} s behind the server"
    place = escape(f"{source.captured.file}:{source.captured.end_pos}")
    if source.behind_ts is not None:
        said += "; <span class='held'>the cut goes on without it, and its tables wait</span>"
    return f"<p>Source {name}: {said}; captured to <code>{place}</code>; last change {escape(source.changed_at)}.</p>"


def _held_tables(found: Standing) -> str:
    if not found.held:
        return ""
    rows = "".join(map(_row, found.held))
    return f"<table><tr><th>Held table</th><th>Since</th><th>Why</th><th>What ends it</th></tr>{rows}</table>"


def _row(table: TableStatus) -> str:
    cells = (table.table, table.since, table.reason, table.way_out)
    name, *rest = (escape(cell) for cell in cells)
    return f"<tr><td class='held'>{name}</td>" + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
