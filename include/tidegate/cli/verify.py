"""`tidegate verify PIPELINE`: silver against the source's own SELECT, while the workload is quiet.

In:  a pipeline file; the sources' connections in AIRFLOW_CONN_<ID>, the lake's keys likewise.
Out: a line per table on stdout, or JSON; exit code 1 when a table differs, and only then: what is held is named, and
     `tidegate status` and its exit code are about that.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tidegate import pipelines
from tidegate.cli.lake import open_lake
from tidegate.connections import from_environment
from tidegate.home import EXIT_ERROR


def verify(
    pipeline: Annotated[str, typer.Argument(help="Pipeline: its name, or its file")],
    table: Annotated[str | None, typer.Option(help="Only this table, database.table")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a cut that holds everything", min=0)] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs")] = False,
) -> None:
    """Compare silver with the source's own SELECT."""
    from tidegate.verify.printing import report_lines
    from tidegate.verify.verification import Options
    from tidegate.verify.verification import verify as compare

    loaded, lake = open_lake(pipeline)
    connections = {name: pipelines.source_info(loaded, name, from_environment) for name in loaded.sources}
    report = compare(loaded, connections, lake.root, lake.storage_options, Options(table, timeout))
    if as_json:
        print(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        print("\n".join(report_lines(report)))
    raise typer.Exit(0 if report.equal else EXIT_ERROR)
