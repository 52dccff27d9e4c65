"""The page "tidegate" in Airflow reads, but for one route."""

from __future__ import annotations

import pytest

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("ignore"),  # of Airflow's own imports
]


def test_the_page_has_one_way_to_write() -> None:
    """It asks for the right to edit its DAG, and for a form of this very page. Another way needs both, too."""
    from fastapi.routing import APIRoute

    from tidegate_airflow.page import rights
    from tidegate_airflow.page.application import app

    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    assert {route.path for route in routes} == {
        "/",
        "/dags/{dag_id}",
        "/dags/{dag_id}/table",
        "/dags/{dag_id}/act",
        "/dags/{dag_id}/status.json",
        "/{name}.js",
    }
    writes = [route for route in routes if not route.methods <= {"GET", "HEAD"}]
    assert [(route.path, route.methods) for route in writes] == [("/dags/{dag_id}/act", {"POST"})]
    asks = [dependency.dependency for dependency in writes[0].dependencies]
    assert asks == [rights.may_read, rights.needs_edit, rights.same_origin]
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
