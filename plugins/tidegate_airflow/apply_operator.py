"""Submit spark_jobs/apply.py with a run's params.

In:  a pipeline file, the run's params.
Out: silver, written by the job; the silver asset's event with how far it is and which tables are held; a warning per
     held table at the end of the log. With the OpenLineage provider also lineage (lineage.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate import pipelines
from tidegate.errors import TidegateError
from tidegate_airflow import lineage
from tidegate_airflow.assets import silver_asset
from tidegate_airflow.connections import lake_connection
from tidegate_airflow.params import with_params
from tidegate_airflow.silver_event import is_known, silver_event
from tidegate_airflow.spark_job_operator import SparkJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.config import Pipeline
    from tidegate_airflow.lineage import Lineage


class ApplyOperator(SparkJobOperator):
    """One apply run of a pipeline."""

    job = "apply"
    _lineage: Lineage | None = None

    def execute(self, context: Context) -> None:
        """Run the job; then say what is held, in the log and in the asset's event."""
        pipeline = pipelines.load(Path(self.pipeline_file))
        after_ts = lineage.cut_before(pipeline)
        super().execute(context)
        try:
            event = silver_event(pipelines.open_lake(pipeline, lake_connection), pipeline.lacks_snapshots)
        except (TidegateError, OSError) as error:  # the run has done its work
            self.log.warning("the run has done its work, but which tables are held can't be read: %s", error)
            return
        for table, reason in event["held"].items():
            self.log.warning("%s is held: %s", table, reason)
        if pipeline.completeness.each_minute and is_known(event, pipeline, context):
            self.outlets = []  # the DAG progress has made this event already
        else:
            context["outlet_events"][silver_asset(pipeline)].extra.update(event)
        if after_ts is not None:
            self._lineage = lineage.made(lambda: lineage.of_apply(pipeline, after_ts))

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """The tables changed by this run: the OpenLineage provider calls this."""
        del task_instance
        return self._lineage

    def configured(self, pipeline: Pipeline, context: Context) -> tuple[Pipeline, list[str]]:
        """The part `apply` with the run's params. Raises ConfigError for a param out of bounds."""
        part = with_params(pipeline.apply, context["params"], where=str(context["run_id"]))
        arguments = pipelines.encoded(part, pipeline.apply)
        return pipeline.model_copy(update={"apply": part}), arguments
