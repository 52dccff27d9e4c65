"""The page "tidegate" in Airflow: all pipelines at a glance, and each with its road, its history and its tables.

In:  the pipeline files; each lake, each source's binlog position.
Out: HTML that needs no script, and the same as JSON; application.py has the routes and who may see what.
"""
