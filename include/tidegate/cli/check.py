"""`tidegate check PIPELINE`: can the pipeline run, and which tables will wait? It works before the first capture and
later.

In:  a pipeline file; the sources' connections in AIRFLOW_CONN_<ID>, the lake's keys likewise.
Out: a line per finding on stdout, then what is to be pasted at a server; or JSON; exit code 1 when something is refused
     or a table will be held, 75 when a source or the lake could not be asked. Nothing is changed at the sources.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, assert_never

import typer

from tidegate import pipelines
from tidegate.cli.airflow_room import airflow_lines
from tidegate.cli.lake import open_lake
from tidegate.config import MysqlSource, TicdcSource, TidbSource
from tidegate.connections import from_environment
from tidegate.errors import TidegateError
from tidegate.home import EXIT_ERROR, EXIT_TRANSIENT, state_folder
from tidegate.masks.mask_keys import mask_passwords
from tidegate.text_layout import paragraph, size_text

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.config import Pipeline
    from tidegate.lake.files import LakeFiles


def check(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs")] = False,
) -> None:
    """Check whether a pipeline can run: settings, grants, clock, tables, lake."""
    from tidegate.changefeed.examination import changefeed_lines
    from tidegate.mysql.checking.examination import SourceVerdict, examine
    from tidegate.mysql.connecting.connection import ConnectionInfo
    from tidegate.pump.examination import pump_lines, sql_lines

    loaded, lake = open_lake(pipeline)
    elsewhere: dict[str, Callable[[], Iterable[Any]]] = {}
    for name, source in loaded.sources.items():  # a missing connection is an error of the call, not a finding
        match source:
            case MysqlSource():
                pipelines.source_info(loaded, name, from_environment)
            case TidbSource():
                elsewhere[name] = partial(pump_lines, loaded, name, pipelines.sql_info(loaded, name, from_environment))
            case TicdcSource():
                options = pipelines.changefeed_options(source, from_environment)
                asked = [partial(changefeed_lines, loaded, name, options)]
                if source.sql_conn_id is not None:
                    asked.append(partial(sql_lines, name, pipelines.sql_info(loaded, name, from_environment)))
                elsewhere[name] = partial(_all, asked)
            case kind:
                assert_never(kind)
    mask_passwords(loaded.tables, from_environment)
    examination = examine(loaded, lake, ConnectionInfo.from_env, elsewhere)
    examination.lines += airflow_lines(sum(len(file.pipeline.sources) for file in pipelines.good_files()))
    examination.lines += _unheard_lines(loaded, lake)
    examination.lines += _purged_lines(loaded, lake)
    examination.lines += lost_lines(loaded, lake, state_folder())
    examination.lines += shared_log_lines(loaded)
    examination.lines += disk_lines(loaded, state_folder())
    examination.lines += _renamed_lines(loaded, lake)
    if as_json:
        print(json.dumps(examination.to_json(), ensure_ascii=False))
    else:
        for line in examination.lines:
            print("\n".join(paragraph("", line.shown(loaded.sources), indent="  ")[1:]).lstrip())
        for name, what in examination.to_run.items():
            print("\n".join(what.lines("the server" if len(loaded.sources) == 1 else f"the server of source {name}")))
    bad = examination.has(SourceVerdict.REFUSED) or examination.has(SourceVerdict.HELD)
    raise typer.Exit(EXIT_ERROR if bad else EXIT_TRANSIENT if examination.has(SourceVerdict.UNKNOWN) else 0)


def _unheard_lines(pipeline: Pipeline, lake: LakeFiles) -> list[Any]:
    """The remedies for silent Pumps; none if the lake can't be read, since another line reports
    that.
    """
    from tidegate.capture.unheard import unheard
    from tidegate.lake.figures.status import sources
    from tidegate.mysql.checking.examination import Line, SourceVerdict

    if not any(source.traits.pushes for source in pipeline.sources.values()):
        return []
    try:
        captured = {status.source: status for status in sources(lake)}
    except TidegateError:
        return []
    return [Line(name, SourceVerdict.CAUTION, text) for name, text in unheard(pipeline, captured, time.time()).items()]


def lost_lines(pipeline: Pipeline, lake: LakeFiles, state_dir: Path) -> list[Any]:
    """Sources that this machine has captured, while the empty lake has no data of them."""
    from tidegate.capture.standing import lost_words
    from tidegate.lake.figures.status import source_status
    from tidegate.mysql.checking.examination import Line, SourceVerdict

    lines = list[Line]()
    for name in pipeline.sources:
        with suppress(TidegateError):  # the lake's: reported already
            if source_status(lake, name) is None and (words := lost_words(pipeline, name, state_dir)):
                lines.append(Line(name, SourceVerdict.REFUSED, words))
    return lines


def shared_log_lines(pipeline: Pipeline) -> list[Any]:
    """Sources of other pipelines that have the same name, and their value log in the same place."""
    from tidegate.mysql.checking.examination import Line, SourceVerdict

    others = [file.pipeline for file in pipelines.good_files() if file.pipeline.pipeline != pipeline.pipeline]
    path, lines = pipeline.capture.value_log_path, list[Line]()
    for other in others if path is not None else ():
        for name in sorted(pipeline.sources.keys() & other.sources.keys()):
            if other.capture.value_log_path == path:
                text = f"capture.value_log_path is pipeline {other.pipeline}'s, which has a source {name}, too: on one"
                text += " machine only one of them captures. Give each pipeline a folder of its own"
                lines.append(Line(name, SourceVerdict.CAUTION, text))
    return lines


def disk_lines(pipeline: Pipeline, state_dir: Path) -> list[Any]:
    """The free room on this machine's disks: capture's, the lake's, Spark's. The alert disk_low has the same bounds."""
    from tidegate.metrics.disks import disks
    from tidegate.metrics.rules import is_low
    from tidegate.mysql.checking.examination import Line, SourceVerdict

    lines = list[Line]()
    for name, disk in disks(pipeline, state_dir, is_capture_here=True).items():
        if disk is None:
            lines.append(
                Line(f"disk of {name}", SourceVerdict.UNKNOWN, "it doesn't answer: its mount hangs, or is stale")
            )
            continue
        low = is_low(disk, pipeline)
        room = f"{size_text(disk.free)} of {size_text(disk.total)} are free where {disk.folder} is"
        text = f"{room}: make room, or move it (docs/runbooks/disk-full.md)" if low else room
        lines.append(Line(f"disk of {name}", SourceVerdict.CAUTION if low else SourceVerdict.NOTE, text))
    return lines


def _purged_lines(pipeline: Pipeline, lake: LakeFiles) -> list[Any]:
    """Servers that have purged the binlog file of capture's position. A lake or server that doesn't answer gives no
    line.
    """
    from tidegate.capture.standing import source_standing
    from tidegate.lake.figures.status import source_status
    from tidegate.mysql.checking.examination import Line, SourceVerdict

    ask, lines = pipelines.asking(pipeline, lake, from_environment), list[Line]()
    for name in pipeline.sources:
        try:
            captured = source_status(lake, name)
        except TidegateError:
            return lines
        stands = source_standing(name, captured, ask(name)) if captured else None
        if captured and stands and stands.is_purged:
            text = f"the server has purged the binlog file that capture stopped in ({captured.file}): if no GTID tells"
            text += (
                f" where to go on, capture is refused; `tidegate accept {pipeline.pipeline} {name}` says what is lost"
            )
            lines.append(Line(name, SourceVerdict.CAUTION, text))
    return lines


def _renamed_lines(pipeline: Pipeline, lake: LakeFiles) -> list[Any]:
    """Tables whose columns have other names in the pipeline file than in silver. A lake that doesn't answer gives no
    line.
    """
    from tidegate.lake.silver.changed_names import changed_names
    from tidegate.mysql.checking.examination import Line, SourceVerdict

    with suppress(TidegateError):
        return [Line("pipeline file", SourceVerdict.CAUTION, text) for text in changed_names(lake, pipeline)]
    return []


def _all(asked: Iterable[Callable[[], Iterable[Any]]]) -> Iterator[Any]:
    for lines in asked:
        yield from lines()
