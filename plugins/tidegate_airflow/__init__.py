"""Everything of tidegate that imports Airflow: sensors, triggers, operators, params, connections.

In:  pipeline files and Airflow connections.
Out: operators for dags/, and triggers for the triggerer. They reach Spark by argv and environment, and the lake by the
     library; nothing here moves data itself. No module has a heavy import (Spark, pyarrow, numba, PyMySQL) at its top,
     because the DAG processor imports all modules every few seconds.
"""
