"""Register tidegate with Airflow.

In:  Airflow's plugin scanner, which loads this file.
Out: the plugin's name under Admin > Plugins. Operators, sensors and triggers need no registration: they
     are imported by name from the package tidegate_airflow beside this file (its folder is on sys.path).
"""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class TidegatePlugin(AirflowPlugin):
    """What Airflow shows of tidegate."""

    name = "tidegate"
