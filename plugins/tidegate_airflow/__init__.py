"""Everything of tidegate that imports Airflow: sensors, triggers, operators, params, connections.

In:  pipeline files and Airflow connections.
Out: operators for dags/, and triggers for the triggerer. They reach Spark by argv and environment, and the
     lake by the library; nothing here moves data itself. No heavy import (Spark, pyarrow, numba, delta-rs,
     PyMySQL) stands at the top of a module, because the DAG processor imports them all every few seconds.
"""
