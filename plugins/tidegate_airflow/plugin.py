"""The plugin: Airflow's view of tidegate.

In:  Airflow, which finds this by the package's entry point, or by plugins/tidegate_plugin.py.
Out: the plugin's name under Admin > Plugins, and the page of all pipelines: under Browse for all pipelines, and
     as a tab of each DAG. Operators, sensors and triggers need no registration: DAG files import them by name.
"""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from tidegate_airflow.page.opening import Page


class TidegatePlugin(AirflowPlugin):
    """The plugin: Airflow's view of tidegate."""

    name = "tidegate"
    fastapi_apps = [{"name": "tidegate", "app": Page(), "url_prefix": "/tidegate"}]  # noqa: RUF012 - Airflow's way
    external_views = [  # noqa: RUF012
        {"name": "tidegate", "href": "/tidegate/", "destination": "nav", "category": "browse", "url_route": "tidegate"},
        {
            "name": "tidegate",
            "href": "/tidegate/dags/{DAG_ID}",
            "destination": "dag",
            "url_route": "tidegate_pipeline",
        },
    ]
