"""Submit spark_jobs/apply.py with a run's params.

In:  a pipeline file, the run's params.
Out: silver, written by the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate_airflow.params import changed, with_params
from tidegate_airflow.spark_job_operator import SparkJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.config import Pipeline

# What is not passed as --set: an argument of its own, or a setting of spark-submit.
_ELSEWHERE = ("mode", "run_for_seconds", "spark_conn_id", "spark_conf", "driver_memory")


class ApplyOperator(SparkJobOperator):
    """One apply run of a pipeline."""

    job = "apply"

    def configured(self, pipeline: Pipeline, context: Context) -> tuple[Pipeline, list[str]]:
        """The part `apply` with the run's params. Raises ConfigError for a param out of bounds."""
        part = with_params(pipeline.apply, context["params"], where=str(context["run_id"]))
        arguments = ["--mode", str(part.mode), "--run-for-seconds", str(part.run_for_seconds)]
        for name, value in changed(part, pipeline.apply).items():
            if name not in _ELSEWHERE:
                arguments += ["--set", f"{name}={value}"]
        return pipeline.model_copy(update={"apply": part}), arguments
