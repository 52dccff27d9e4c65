"""The page "tidegate" in Airflow reads, and changes nothing."""

from __future__ import annotations

import pytest

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("ignore"),  # of Airflow's own imports
]


def test_the_page_has_no_way_to_write() -> None:
    """One that comes needs requires_access_dag("PUT") of its DAG first, and Sec-Fetch-Site: same-origin."""
    from fastapi.routing import APIRoute

    from tidegate_airflow.page.application import app

    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    assert {route.path for route in routes} == {
        "/",
        "/dags/{dag_id}",
        "/dags/{dag_id}/table",
        "/dags/{dag_id}/status.json",
        "/page.js",
    }
    assert {method for route in routes for method in route.methods} <= {"GET", "HEAD"}
    assert len(app.routes) == len(routes), "nothing else is served: no mount, no socket"
    assert all(route.dependencies for route in routes), "each asks whether the user may read the DAG"


@pytest.mark.parametrize(
    ("dag_id", "of"),
    [("shop__capture", True), ("shop__capture_pump__2", True), ("shop__approve", True), ("shop__x__capture", False)],
)
def test_a_dag_is_shown_with_its_pipeline(dag_id: str, of: bool) -> None:
    from tidegate import config
    from tidegate_airflow.page.application import is_of

    pumps = ", ".join(f"{name}: {{conn_id: c, flavour: tidb, listen: ['unix:/p']}}" for name in ("pump_1", "pump__2"))
    text = f"pipeline: shop\nlake: {{path: x}}\nsources: {{{pumps}}}\ntables: {{include: ['*.*']}}\n"
    assert is_of(dag_id, config.parse(text, where="shop.yaml")) is of
