"""Erase a person's rows inside an Airflow task.

In:  a pipeline file, the run's params: table, where, follow_keys, wait, dry_run; the user who
     started the run.
Out: rows of control/actions under that user's name; the certificate, as the task's result. A run
     without a user is refused, since nobody has ordered it.

The condition names the person. It is masked in the task's log, and no line, error or result has a
value of it. Airflow's own database keeps the params of a run (docs/runbooks/erase-a-person.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.log import mask_secret

from tidegate import pipelines
from tidegate.errors import UsageError
from tidegate_airflow.connections import PLACE, lake_connection, source_connection

if TYPE_CHECKING:
    from airflow.sdk import Context


class EraseOperator(BaseOperator):
    """One order: a dry run, unless the params say otherwise."""

    def __init__(self, *, pipeline_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file

    def execute(self, context: Context) -> dict[str, Any] | None:
        """The certificate; None of a dry run. Raises what an erasure raises, each without a value of the condition."""
        from tidegate.actions.desk import Desk
        from tidegate.actions.erase_order import carry_out
        from tidegate.erase.erasure import Order
        from tidegate.lake.people.audit import Author

        params = context["params"]
        mask_secret(params["where"])
        user = context["dag_run"].triggering_user_name
        if not user:
            raise UsageError(
                "nobody has ordered this erasure: the run has no user",
                where=str(context["run_id"]),
                remedy="start it by hand, in Airflow's trigger form or over its API",
            )
        table, where = str(params["table"] or ""), str(params["where"] or "")
        if not table or not where.strip():
            raise UsageError("the order lacks a table or a condition", where=str(context["run_id"]), remedy="give both")
        pipeline = pipelines.load(Path(self.pipeline_file))
        is_dry = params["dry_run"] is not False
        if not is_dry and user not in pipeline.erase.by:
            raise UsageError(
                f"{user} may not erase rows, only make dry runs",
                where=pipeline.pipeline,
                remedy="whoever writes the pipeline file names the user in erase.by",
            )
        lake = pipelines.open_lake(pipeline, lake_connection)
        order = Order(table, where, float(params["wait"]), bool(params["follow_keys"]))
        done = carry_out(
            Desk(pipeline, lake, source_connection, Author(user, PLACE)),
            order,
            lambda source: pipelines.sql_info(pipeline, source, source_connection, lake),
            lambda line: self.log.info("%s", line),
            dry_run=is_dry,
        )
        for line in done.lines:
            self.log.info("%s: %s", "would be erased" if is_dry else "erased", line)
        what = "the order is %s in control/actions: the SHA-256 of %s, the table and the condition"
        self.log.info(what, done.order, done.proof)
        return None if is_dry else done.certificate
