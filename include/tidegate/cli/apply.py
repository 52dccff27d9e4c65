"""`tidegate apply PIPELINE`: the job that <pipeline>__apply submits, without Airflow.

In:  a pipeline file; an object store's keys in the lake's connection (AIRFLOW_CONN_<ID>).
Out: silver; spark-submit's exit code, the job's last line on stderr.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate import pipelines
from tidegate.cli.submit import submit
from tidegate.config import ApplyMode
from tidegate.errors import UsageError


def apply(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    mode: Annotated[ApplyMode | None, typer.Option(help="Default: apply.mode of the pipeline file")] = None,
    run_for: Annotated[int | None, typer.Option(help="micro_batch: run for this many seconds", min=5)] = None,
    master: Annotated[str, typer.Option(help="Spark master")] = "local[2]",
) -> None:
    """Apply bronze to silver."""
    loaded = pipelines.load(pipelines.find(pipeline))
    if run_for is not None and (mode or loaded.apply.mode) is ApplyMode.BATCH:
        raise UsageError(
            "--run-for bounds nothing in mode batch: it makes one pass",
            where=loaded.pipeline,
            remedy="leave it out, or give --mode micro_batch",
        )
    arguments = []
    if mode is not None:
        arguments += ["--set", f"mode={mode.value}"]
    if run_for is not None:
        arguments += ["--set", f"run_for_seconds={run_for}"]
    raise typer.Exit(submit("apply", pipeline, arguments, master))
