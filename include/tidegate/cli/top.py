"""`tidegate top PIPELINE`: the state of a pipeline, live in the terminal.

In:  a pipeline file; its lake and its sources, as `tidegate status` asks them.
Out: a screen that is drawn again every few seconds until Ctrl-C; without a terminal one screen of text, and the end.
"""

from __future__ import annotations

import sys
import time
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidegate import pipelines
from tidegate.cli.lake import open_lake
from tidegate.connections import from_environment
from tidegate.errors import TidegateError
from tidegate.text_layout import age_text, columns, counted, rate_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.capture.standing import CaptureStanding, SourceStanding
    from tidegate.config import Pipeline
    from tidegate.lake.figures.timeline import Timeline
    from tidegate.lake.files import LakeFiles

_BARS: Final = "▁▂▃▄▅▆▇█"
_HOUR: Final = 3600.0


def top(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    every: Annotated[float, typer.Option(help="Seconds between two looks", min=0.5, max=3600)] = 2.0,
) -> None:
    """Watch a pipeline live, in the terminal."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    loaded, lake = open_lake(pipeline)
    console = Console()
    if not sys.stdout.isatty():
        print("\n".join(screen(loaded, lake, rows=10_000, width=10_000)))
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(Text("\n".join(screen(loaded, lake, console.height, console.width))), refresh=True)
            time.sleep(every)


def screen(pipeline: Pipeline, lake: LakeFiles, rows: int, width: int) -> list[str]:
    """The screen: at most `rows` lines of `width` characters. If the lake doesn't answer, a line says so."""
    from tidegate.capture.health import health, why
    from tidegate.lake.figures.timeline import timeline

    now = time.time()
    at = time.strftime("%H:%M:%S UTC", time.gmtime(now))
    try:
        stands = pipelines.seen_standing(pipeline, lake, pipelines.asking(pipeline, lake, from_environment))
        past = timeline(lake, now, _HOUR, pipeline.sources).with_lag_now(stands.lag_seconds)
    except (TidegateError, OSError) as error:
        return [f"{pipeline.pipeline}: unreadable, {at}", *wrap(str(error), width)][:rows]
    lines = [f"{stands.pipeline}: {health(stands)}, {at}", *wrap(why(stands), width), "", *_rates(past), ""]
    lines += columns([("source", "behind", "captured to", "the server is at"), *map(_source, stands.sources)])
    lines += ["", *_tables(stands, rows - len(lines) - 2)]
    return [shorten(line, width) for line in lines[:rows]]


def shorten(line: str, width: int) -> str:
    """Cut to the width of a screen."""
    return line if len(line) <= width else f"{line[: width - 3]}..."


def _rates(past: Timeline) -> list[str]:
    volume = size_text(past.bytes_a_second)
    return [
        f"lag {age_text(past.lag[-1])}, in the last hour:",
        bars(past.lag),
        f"{rate_text(past.rows_a_second)} rows and {volume} of binlog a second, in the last hour:",
        bars(past.rows),
    ]


def bars(values: Sequence[float | None]) -> str:
    """A character for each: a bar of its height, a blank where nothing is known."""
    most = max((value for value in values if value is not None), default=0) or 1
    return "".join(" " if value is None else _BARS[round((len(_BARS) - 1) * value / most)] for value in values)


def _source(source: SourceStanding) -> tuple[str, str, str, str]:
    captured = f"{source.captured.file}:{source.captured.end_pos}" if source.captured else "nothing yet"
    behind = "0.0 s" if source.nothing_missing else age_text(source.lag_seconds)
    return source.source, behind, captured, source.server.error or source.server.position or "-"


def _tables(stands: CaptureStanding, room: int) -> list[str]:
    """Lines of tables: those that wait, then those that are furthest behind."""
    order = sorted(
        stands.tables, key=lambda table: (not table.state.waits, -(stands.seconds_behind(table) or 0), table.table)
    )
    shown = order[: max(0, room - 1)]
    rows = [(table.table, str(table.state), age_text(stands.seconds_behind(table)), table.reason) for table in shown]
    more = [f"and {counted(len(order) - len(shown), 'table', 'tables')} more"] if len(order) > len(shown) else []
    return [*columns([("table", "state", "behind", "why"), *rows]), *more]
