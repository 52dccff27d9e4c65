"""`tidegate status PIPELINE`: how far the sources and the tables are.

In:  a pipeline file; its lake (keys in the lake's connection, AIRFLOW_CONN_<ID>).
Out: two tables on stdout, or JSON, and where markers are written (`tidegate latency`) a line of latency; exit code 1
     when a table is held.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Annotated

import typer

from tidegate.cli.lake import open_lake
from tidegate.cli.main import EXIT_ERROR

# Markers of this long are summed up.
_LATENCY_SECONDS = 300


def status(
    pipeline: Annotated[str, typer.Argument(help="Pipeline: its name, or its file")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs")] = False,
) -> None:
    """How far a pipeline's sources and tables are."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tidegate.commit_ts import physical_ms
    from tidegate.lake import latency
    from tidegate.lake import status as lake_status

    _, lake = open_lake(pipeline)
    sources, tables, cut = lake_status.sources(lake), lake_status.table_statuses(lake), lake_status.cut_ts(lake)
    markers = latency.recent(lake, _LATENCY_SECONDS)
    held = any(table.state == "held" for table in tables)
    if as_json:
        found = {"cut_ts": cut, "sources": [asdict(s) for s in sources], "tables": [asdict(t) for t in tables]}
        found["latency"] = asdict(markers) if markers else None
        print(json.dumps(found))
        raise typer.Exit(EXIT_ERROR if held else 0)

    def lag(commit_ts: int) -> str:
        return f"{max(0.0, time.time() - physical_ms(commit_ts) / 1000):.1f} s" if commit_ts else "-"

    console = Console()
    captured = Table("source", "seq", "position", "GTID", "bronze", "resolved, behind now", title="Captured")
    for source in sources:
        size = f"{source.bytes / 1e6:.1f} MB"
        place = f"{source.file}:{source.end_pos}"
        captured.add_row(source.source, str(source.seq), place, source.gtid_executed, size, lag(source.resolved_ts))
    applied = Table("table", "state", "applied, behind now", "Delta version", "why", title=f"Applied, cut {cut}")
    for table in tables:
        why = table.reason + (f" (since {table.since})" if table.since else "")
        why += f"\n{table.file}:{table.pos} {table.ddl}" if table.file else ""
        why += f"\n-> {table.way_out}" if table.way_out else ""
        applied.add_row(table.table, table.state, lag(table.applied_ts), str(table.delta_version), Text(why))
    console.print(captured)
    console.print(applied)
    if markers:
        console.print(
            f"Commit at the source to visible in silver, {markers.markers} markers of the last minutes: {markers}"
        )
    raise typer.Exit(EXIT_ERROR if held else 0)
