"""Rights on the page by Airflow's auth manager: to see, to change. And a check that no other site sent the request.

In:  requests.
Out: dependencies of routes, which answer 401 and 403; the DAGs that a user may see; whether the
     user may edit one; whether a DAG is paused.

The only module that uses more of Airflow than its SDK: a plugin's page has no authentication unless
it asks for it.

Airflow's session is a cookie. A browser sends it with each request, even if another site caused the
request. Airflow's own API takes JSON: another site can't send that without the server's consent
(CORS). But it can send a form. Therefore a change needs proof that a page of this site sent it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.configuration import conf
from airflow.models.dag import DagModel
from fastapi import HTTPException, Request

from tidegate.limits import PAGE_FORM_BYTES_MAX
from tidegate_airflow.page.questions import DagState

__all__ = [
    "GetUserDep",
    "allowed",
    "dag_state",
    "form_of",
    "may_edit",
    "may_read",
    "may_see_import_errors",
    "needs_edit",
    "same_origin",
]

_reads: Final = requires_access_dag("GET")
_edits: Final = requires_access_dag("PUT")
_FORM: Final = "application/x-www-form-urlencoded"
_PORTS: Final = {"http": 80, "https": 443}


def may_read(request: Request, user: GetUserDep) -> None:
    """Answer 403 to whoever may not read the DAG; without one, any DAG."""
    _check(_reads, request, user, f"this needs the right to read {_dag_of(request)}")


def needs_edit(request: Request, user: GetUserDep) -> None:
    """Answer 403 to whoever may not edit the DAG."""
    _check(_edits, request, user, f"this needs the right to edit {_dag_of(request)}, and your role in Airflow lacks it")


def _check(check: Callable[[Request, Any], None], request: Request, user: Any, refusal: str) -> None:
    try:
        check(request, user)
    except HTTPException as error:
        raise HTTPException(error.status_code, refusal) from error


def _dag_of(request: Request) -> str:
    dag_id = request.path_params.get("dag_id")
    return f"the DAG {dag_id}" if dag_id else "DAGs"


def allowed(dag_ids: Iterable[str], user: Any) -> set[str]:
    """The DAGs that the user may read. The question names a DAG's team: without a team Airflow would count the DAG as
    everybody's.
    """
    ids, of_teams = list(dag_ids), defaultdict[str | None, set[str]](set)
    teams = DagModel.get_dag_id_to_team_name_mapping(ids)
    for dag_id in ids:
        of_teams[teams.get(dag_id)].add(dag_id)
    readable, manager = set[str](), get_auth_manager()
    for team, of_team in of_teams.items():
        readable |= manager.filter_authorized_dag_ids(dag_ids=of_team, user=user, team_name=team)
    return readable


def may_see_import_errors(user: Any) -> bool:
    """Whether Airflow shows the user why files give no DAG."""
    return bool(get_auth_manager().is_authorized_view(access_view=AccessView.IMPORT_ERRORS, user=user))


def may_edit(dag_id: str, user: Any) -> bool:
    """Whether needs_edit would let the user pass."""
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
    return bool(get_auth_manager().is_authorized_dag(method="PUT", details=details, user=user))


def dag_state(dag_id: str) -> DagState:
    """Whether Airflow has the DAG, and whether it is paused."""
    dag = DagModel.get_dagmodel(dag_id)
    if dag is None or dag.is_stale:
        return DagState.MISSING
    return DagState.PAUSED if dag.is_paused else DagState.RUNS


def same_origin(request: Request) -> None:
    """Answer 403 unless the browser says that a page of this site sent the request.

    Over HTTPS and on localhost a browser sends Sec-Fetch-Site. Elsewhere it sends the Origin of the
    page. A request with neither header is refused, and so is one from a frame without an origin.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        is_ours = site == "same-origin"
    else:
        ours = {
            _origin(f"{request.url.scheme}://{request.headers.get('host', '')}"),
            _origin(conf.get("api", "base_url", fallback="")),
        }
        is_ours = (origin := _origin(request.headers.get("origin", ""))) is not None and origin in ours
    if not is_ours:
        raise HTTPException(403, "only a page of this Airflow may send this")


def _origin(url: str | None) -> tuple[str, int] | None:
    """Host and port; None of what has no host, such as the origin "null"."""
    try:
        parts = urlsplit(url or "")
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname else None


async def form_of(request: Request) -> dict[str, list[str]]:
    """The fields of a form. The body is read after the checks of rights, and only up to a bound."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HTTPException(415, "a form is expected")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > PAGE_FORM_BYTES_MAX:
            raise HTTPException(413, "the form is too long")
    try:
        return parse_qs(body.decode(), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=500)
    except ValueError as error:
        raise HTTPException(400, "the form can't be read") from error
