"""The arguments of every DAG of a pipeline besides its schedule.

In:  the pipeline, what its DAG does (capture, apply ...), its params, its file's docstring.
Out: keyword arguments of airflow.sdk.DAG.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate_airflow.params import manual
from tidegate_airflow.retries import TASK_DEFAULTS

if TYPE_CHECKING:
    from airflow.sdk import Param

    from tidegate.config import Pipeline

# Runs in a row that fail before Airflow pauses the DAG.
_FAILED_RUNS_MAX = 5


def dag_arguments(pipeline: Pipeline, work: str, params: Mapping[str, Param], doc: str | None) -> dict[str, Any]:
    """One run at a time, no run for the past, the retries of retries.py, and its manual."""
    return {
        "dag_id": f"{pipeline.pipeline}__{work}",
        # A day in the past, in any time zone of Airflow.
        "start_date": datetime(2026, 1, 1),  # noqa: DTZ001
        "catchup": False,
        # Events that arrive meanwhile wait as one, and start the next run when this one ends.
        "max_active_runs": 1,
        "max_consecutive_failed_dag_runs": _FAILED_RUNS_MAX,
        "default_args": TASK_DEFAULTS,
        "params": dict(params),
        "doc_md": manual(doc, params),
        "tags": ["tidegate", pipeline.pipeline, work],
    }
