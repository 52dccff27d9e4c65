"""Compare silver with its sources inside an Airflow task, and mend it when asked to.

In:  a pipeline file, the run's params: those of its part `verify`, tables, repair.
Out: rows in control/verification; the page of `tidegate verify` in the task's log. The task fails when something
     differs, couldn't be settled or can't be read by SQL, and with the library's own error when it can't be carried out
     (retries.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidegate import pipelines
from tidegate.errors import Terminal
from tidegate_airflow import lineage
from tidegate_airflow.connections import lake_connection, source_connection
from tidegate_airflow.params import with_params

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate_airflow.lineage import Lineage


class SilverDiffers(Terminal):
    """Rows of silver aren't the source's, or keys couldn't be settled."""


class NotVerified(Terminal):
    """Tables couldn't be compared: nobody can read their source by SQL."""


class VerifyOperator(BaseOperator):
    """Verifies a pipeline: the tables of the param `tables`, those that are due, or all."""

    _lineage: Lineage | None = None

    def __init__(self, *, pipeline_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file

    def execute(self, context: Context) -> None:
        """Raises what verify raises, SilverDiffers and NotVerified."""
        from tidegate.repair import due_tables, verify_and_repair  # DuckDB, pyarrow
        from tidegate.verify.printing import report_lines
        from tidegate.verify.under_way import VerifyOptions

        params = context["params"]
        file = pipelines.load(Path(self.pipeline_file))
        part = with_params(file.verify, params, where=str(context["run_id"]), beside=("tables", "repair"))
        pipeline = file.model_copy(update={"verify": part})
        lake = pipelines.open_lake(pipeline, lake_connection)
        named = params.get("tables") or ()
        tables = named or (due_tables(lake, pipeline) if part.each_table_hours else None)
        if tables is not None and not tables:
            self.log.info("every table was compared within %d hours", part.each_table_hours)
            return
        report = verify_and_repair(
            pipeline,
            lake,
            pipelines.sql_infos(pipeline, source_connection, lake),
            VerifyOptions.of(part, tables=tables),
            repair=bool(params.get("repair")),
            report=lambda line: self.log.info("%s", line),
        )
        if lineage.is_on():
            self._lineage = lineage.made(lambda: lineage.of_verify(pipeline, report))
        for line in report_lines(report):
            self.log.info("%s", line)
        if not report.equal:
            raise SilverDiffers(
                report.verdict,
                where=pipeline.pipeline,
                remedy="the lines above name the rows; trigger it again with repair to copy them again",
            )
        if not report.passed:
            raise NotVerified(
                report.verdict,
                where=pipeline.pipeline,
                remedy="the lines above say why; give the changefeed's source sql_conn_id, or name tables",
            )

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """The verdict on each table: the OpenLineage provider calls this."""
        del task_instance
        return self._lineage

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Lineage | None:
        """A difference fails the task, and its verdicts are reported as well."""
        del task_instance
        return self._lineage
