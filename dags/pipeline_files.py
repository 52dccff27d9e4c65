"""Show broken pipeline files as Airflow's import errors.

In:  the folder of pipeline files.
Out: nothing when all are good; else this file's import error says in one line per broken file what is wrong,
     in which line, and what to do.

An import error of dags/capture.py or dags/apply.py would stop every pipeline (Airflow then schedules no DAG
of that file), so those two make DAGs of the good files only, and this file has no DAG that could be stopped.
"""

from __future__ import annotations

from tidegate import pipelines

_, broken = pipelines.read()
for error in broken:
    # Only the line: pydantic's account of the same and our own frames would bury it.
    error.with_traceback(None).__cause__ = None
    error.__suppress_context__ = True
if len(broken) == 1:
    raise broken[0]
if broken:
    raise ExceptionGroup("pipeline files that can't be used", broken)
