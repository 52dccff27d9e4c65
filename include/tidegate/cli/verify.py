"""`tidegate verify PIPELINE`: silver against the source's own SELECT, while the source is written to.

In:  a pipeline file; the sources' connections in AIRFLOW_CONN_<ID>, the lake's keys likewise. Capture and apply run, or
     have come to the end of what a quiet source wrote.
Out: a line per table on stdout, or JSON; rows in control/verification. Exit code 1 when a table differs, or keys of one
     couldn't be settled, and only then: what is held is named, and `tidegate status` and its exit code are about that.
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
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a cut that holds what was read", min=0)] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs")] = False,
) -> None:
    """Compare silver with the source's own SELECT, while both go on."""
    from tidegate.verify.printing import report_lines
    from tidegate.verify.under_way import Options
    from tidegate.verify.verification import verify as compare

    loaded, lake = open_lake(pipeline)
    connections = {name: pipelines.source_info(loaded, name, from_environment) for name in loaded.sources}
    options = Options.of(loaded.verify, table=table, timeout_seconds=timeout)
    report = compare(loaded, connections, lake.root, lake.storage_options, options)
    if as_json:
        print(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        print("\n".join(report_lines(report)))
    raise typer.Exit(0 if report.equal else EXIT_ERROR)
