"""Register tidegate with an Airflow that has this folder as its plugins folder.

In:  Airflow's plugin scanner, which loads this file in each of Airflow's processes.
Out: the plugin; nothing where the installed package names it by an entry point. Airflow shows two plugins of one name
     as an import error to all its users.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="tidegate"):
    from tidegate_airflow.plugin import TidegatePlugin

    __all__ = ["TidegatePlugin"]
