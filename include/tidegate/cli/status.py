"""`tidegate status PIPELINE`: how far the sources and the tables are.

In:  a pipeline file; its lake (keys in the lake's connection, AIRFLOW_CONN_<ID>).
Out: tables on stdout, or JSON, and where markers are written (`tidegate latency`) a line of latency; exit code 1
     when a table is held. How capture does comes first, from its own file on this machine: it is there when the lake
     isn't.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate import spark_settings
from tidegate.cli.lake import open_lake
from tidegate.cli.main import EXIT_ERROR
from tidegate.errors import LakeUnavailable

if TYPE_CHECKING:
    from rich.table import Table

    from tidegate.capture.lifeboat import Lifeboat
    from tidegate.config import Pipeline

# Markers of this long are summed up.
_LATENCY_SECONDS = 300


def status(
    pipeline: Annotated[str, typer.Argument(help="Pipeline: its name, or its file")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs")] = False,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the value log; .tidegate when empty")] = None,
) -> None:
    """How far a pipeline's sources and tables are."""
    from deltalake.exceptions import DeltaError
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tidegate.commit_ts import physical_ms
    from tidegate.lake import latency
    from tidegate.lake import status as lake_status

    loaded, lake = open_lake(pipeline)
    boats = _lifeboats(loaded, state_dir or spark_settings.home() / ".tidegate")
    console = Console()
    if boats and not as_json:
        console.print(_capture_table(boats))
    try:
        sources, tables, cut = lake_status.sources(lake), lake_status.table_statuses(lake), lake_status.cut_ts(lake)
        markers = latency.recent(lake, _LATENCY_SECONDS)
    except (DeltaError, OSError) as error:
        raise LakeUnavailable(f"can't be read: {error}", where=lake.root, remedy="check the lake's store") from error
    held = any(table.state == "held" for table in tables)
    if as_json:
        found: dict[str, object] = {
            "cut_ts": cut,
            "sources": [asdict(s) for s in sources],
            "tables": [asdict(t) for t in tables],
        }
        found["capture"] = {name: asdict(boat) for name, boat in boats.items()}
        found["latency"] = asdict(markers) if markers else None
        print(json.dumps(found))
        raise typer.Exit(EXIT_ERROR if held else 0)

    def lag(commit_ts: int) -> str:
        return f"{max(0.0, time.time() - physical_ms(commit_ts) / 1000):.1f} s" if commit_ts else "-"

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


def _lifeboats(pipeline: Pipeline, state_dir: Path) -> dict[str, Lifeboat]:
    """What capture wrote beside its value logs on this machine, by source."""
    from tidegate.capture import lifeboat
    from tidegate.capture.value_log import value_log_folder

    found = {name: lifeboat.read(value_log_folder(pipeline, name, state_dir)) for name in pipeline.sources}
    return {name: boat for name, boat in found.items() if boat is not None}


def _capture_table(boats: dict[str, Lifeboat]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from tidegate.capture import retention
    from tidegate.capture.lifeboat import lasts

    table = Table("source", "lander", "behind", "value log", "source's purge", "said", title="Capture on this machine")
    for name, boat in boats.items():
        lander = boat.state + (f" for {boat.written_at - boat.since:.0f} s" if boat.state != "direct" else "")
        lander += f"\n{boat.chases} times, {boat.chasing_seconds:.0f} s in all" if boat.chases else ""
        why = "\n".join(text for text in (boat.reason, boat.lake_error) if text)
        told = f"{time.time() - boat.written_at:.0f} s ago"
        behind = f"{boat.behind_bytes / 1e6:.1f} MB"
        purge = retention.told(boat.retention) if boat.retention else "-"
        table.add_row(name, lander, behind, lasts(boat), purge, Text(f"{told}\n{why}" if why else told))
    return table
