"""Submit spark_jobs/maintain.py with a run's params.

In:  a pipeline file, the run's params: those of its part `maintain`, and table and dry_run.
Out: the silver and control tables in fewer files, by the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate import pipelines
from tidegate_airflow.params import with_params
from tidegate_airflow.spark_job_operator import SparkJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.config import Pipeline


class MaintainOperator(SparkJobOperator):
    """One maintain run of a pipeline."""

    job = "maintain"

    def configured(self, pipeline: Pipeline, context: Context) -> tuple[Pipeline, list[str]]:
        """The part `maintain` with the run's params. Raises ConfigError for a param out of bounds."""
        params = context["params"]
        part = with_params(pipeline.maintain, params, where=str(context["run_id"]), beside=("table", "dry_run"))
        arguments = pipelines.encoded(part, pipeline.maintain)
        if params.get("table"):
            arguments += ["--table", str(params["table"])]
        if params.get("dry_run"):
            arguments.append("--dry-run")
        return pipeline.model_copy(update={"maintain": part}), arguments
