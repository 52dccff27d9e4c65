"""The tables of a TiDB, by its DDL jobs.

In:  jobs (jobs.py), lists of tables.
Out: the present tables and each job's effect on them; versions for schema_history.
"""
