"""Show broken pipeline files as Airflow's import errors.

In:  the folder of pipeline files.
Out: nothing if all are good. Otherwise an import error of this file: one line per broken file, with the fault, its
     line, and the remedy.

An import error of dags/capture.py or dags/apply.py would stop every pipeline, since Airflow then schedules no DAG of
that file. Those two therefore make DAGs of the good files only. This file has no DAG to stop.
"""

from __future__ import annotations

from tidegate import pipelines

_, broken = pipelines.read()
for error in broken:
    # Show only the line. Pydantic's message and our own frames would hide it.
    error.with_traceback(None).__cause__ = None
    error.__suppress_context__ = True
if len(broken) == 1:
    raise broken[0]
if broken:
    raise ExceptionGroup("pipeline files that can't be used", broken)
