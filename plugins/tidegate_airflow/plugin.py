"""The plugin: Airflow's view of tidegate.

In:  Airflow, which finds this by the package's entry point, or by plugins/tidegate_plugin.py.
Out: the plugin's name under Admin > Plugins, and the page of all pipelines: under Browse for all pipelines, and
     as a tab of each DAG. Operators, sensors and triggers need no registration: DAG files import them by name.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin


class _Page:
    """The page's application, imported when it is opened first: only the API server ever needs it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from tidegate_airflow.page.application import app

        await app(scope, receive, send)


class TidegatePlugin(AirflowPlugin):
    """The plugin: Airflow's view of tidegate."""

    name = "tidegate"
    fastapi_apps = [{"name": "tidegate", "app": _Page(), "url_prefix": "/tidegate"}]  # noqa: RUF012 - Airflow's way
    external_views = [  # noqa: RUF012
        {"name": "tidegate", "href": "/tidegate/", "destination": "nav", "category": "browse", "url_route": "tidegate"},
        {
            "name": "tidegate",
            "href": "/tidegate/dags/{DAG_ID}",
            "destination": "dag",
            "url_route": "tidegate_pipeline",
        },
    ]
