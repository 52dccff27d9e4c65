"""Register tidegate with an Airflow that has this folder as its plugins folder.

In:  Airflow's plugin scanner, which loads this file in each of Airflow's processes.
Out: the plugin, as the installed package names it by an entry point; Airflow takes the first of two with one name.
"""

from tidegate_airflow.plugin import TidegatePlugin

__all__ = ["TidegatePlugin"]
