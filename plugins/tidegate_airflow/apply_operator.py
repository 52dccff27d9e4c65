"""Submit spark_jobs/apply.py with a run's params.

In:  a pipeline file, the run's params.
Out: silver, written by the job; the silver asset's event with how far it is and which tables are held; a warning per
     held table at the end of the log. With the OpenLineage provider also lineage (lineage.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidegate import pipelines
from tidegate.errors import TidegateError
from tidegate_airflow import lineage
from tidegate_airflow.assets import silver_asset
from tidegate_airflow.connections import lake_connection
from tidegate_airflow.params import with_params
from tidegate_airflow.spark_job_operator import SparkJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.config import Pipeline
    from tidegate.lake.files import LakeFiles
    from tidegate.standing.shown import LacksSnapshots
    from tidegate_airflow.lineage import Lineage


_NAMED_MAX: Final = 5


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


def silver_event(lake: LakeFiles, lacks_snapshots: LacksSnapshots = lambda _: False) -> dict[str, Any]:
    """The content of the silver asset's event: {"cut_ts", "cut_at", "held": {table: reason and way out}, "text": a
    sentence}.
    """
    from tidegate.commit_ts import time_text
    from tidegate.lake.held import held_tables
    from tidegate.lake.status import cut_ts
    from tidegate.standing.shown import line_of
    from tidegate.text_layout import counted

    newest = cut_ts(lake)
    cut_at = time_text(newest)
    held = {table: line_of(state, lacks_snapshots) for table, state in sorted(held_tables(lake).items())}
    text = f"Silver is complete up to {cut_at}"
    if held:
        more = f" and {len(held) - _NAMED_MAX} more" if len(held) > _NAMED_MAX else ""
        first = ", ".join(list(held)[:_NAMED_MAX]) + more
        text += f", but for {counted(len(held), 'held table', 'held tables')}: {first}"
    return {"cut_ts": newest, "cut_at": cut_at, "held": held, "text": f"{text}."}
