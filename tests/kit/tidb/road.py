"""A recorded stream on the whole road: a Pump's reader cuts it into segments, bronze, apply, silver.

In:  a Recording, a folder.
Out: a lake; how a silver table differs from a recorded one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.apply import run as run_apply
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.tidb.replay.recording import Recording
from tests.support.readers import by_polars
from tidegate import config, tables
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.pump.door import Door
from tidegate.pump.reader import PumpReader, PumpSettings, PumpSource
from tidegate.pump.server import Write
from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical
from tidegate.segments.segment import Segment
from tidegate.tidb.records.payload import BinlogType, binlog_of, fake_payload
from tidegate.tidb.values.cells import float_text

TEXT_OF_NO_TABLES = b"[]"


class Told:
    """What a recording's TiDB would say: timestamps, jobs, fates of orphans."""

    def __init__(self, recording: Recording, folder: Path, first_tso: int) -> None:
        binlogs = [binlog_of(payload) for _, payload in recording.payloads()]
        answers = {one.start_ts: one.commit_ts for one in binlogs if one.tp in (BinlogType.COMMIT, BinlogType.ROLLBACK)}
        self._fates = answers | recording.orphans
        lines = (folder / "ddl_jobs.jsonl").read_text().splitlines()
        self._jobs = {json.loads(line)["id"]: line.encode() for line in lines if line}
        self._tso = first_tso

    def tso(self) -> int:
        return self._tso

    def close(self) -> None:
        pass

    def job(self, job_id: int) -> bytes | None:
        return self._jobs.get(job_id)

    def tables(self, tso: int) -> bytes:
        return TEXT_OF_NO_TABLES

    def fate(self, key: bytes, start_ts: int) -> int | None:
        return self._fates.get(start_ts)

    def safe_point(self) -> int:
        return 0


class Fed:
    """In the place of the gRPC server: gives what a test puts in."""

    def __init__(self) -> None:
        self.waiting: list[Write] = []
        self.door = Door()

    def start(self) -> None:
        pass

    def take(self, timeout_seconds: float, bytes_max: int) -> list[Write]:
        found, self.waiting = self.waiting, []
        return found

    def close(self, why: str) -> None:
        pass


def reader_of(source: str, told: Told, fed: Fed) -> PumpReader:
    """A Pump that begins."""
    settings = PumpSettings(source, source, 1 << 20, 1e9, 0.000001, lambda: told, told, lambda *_: iter(()), told)
    reader = PumpReader(PumpSource(settings, lambda: fed))  # type: ignore[arg-type,return-value]
    reader.open(reader.first_checkpoint(None))  # type: ignore[arg-type]
    return reader


def segments_of(folder: Path, payloads_each: int) -> dict[str, list[Segment]]:
    """Per Pump of a recording, cut behind so many payloads."""
    recording = Recording(folder)
    payloads = list(recording.payloads())
    stamps = [(binlog.start_ts, binlog.commit_ts) for binlog in (binlog_of(payload) for _, payload in payloads)]
    told = Told(recording, folder, min(start for start, _ in stamps) - 1)
    end_ts = max(max(pair) for pair in stamps) + 1000 * 1000 << 18 >> 18
    found: dict[str, list[Segment]] = {}
    for pump in sorted({pump for pump, _ in payloads}):
        fed = Fed()
        reader = reader_of(f"pump_{pump}", told, fed)
        mine = [payload for of, payload in payloads if of == pump]
        segments = found[f"pump_{pump}"] = []
        for at in range(0, len(mine), payloads_each):
            fed.waiting = [Write(payload, binlog_of(payload)) for payload in mine[at : at + payloads_each]]
            segments += reader.receive(0) + reader.cut_now()
        fed.waiting = [Write(payload, binlog_of(payload)) for payload in [fake_payload(end_ts)]]
        reader._orphans.ask_at = 0.0
        segments += reader.receive(0) + reader.cut_now()
        while reader.resolved_ts < end_ts:
            time.sleep(0.01)  # DDL jobs are asked for aside
            segments += reader.receive(0) + reader.cut_now()
    return found


def lake_with(
    folder: Path, segments: dict[str, list[Segment]], *, include: str = "*.*", apply: str = "", more: str = ""
) -> tuple[config.Pipeline, LakeFiles]:
    """Bronze with these, and a pipeline over it, as the file road.yaml. more: keys of `tables`, each behind a comma."""
    lake = LakeFiles(str(folder / "lake"))
    for source, mine in segments.items():
        if mine:
            Bronze(lake, source).append(mine)
    listed = ", ".join(f"{s}: {{conn_id: tidb, flavour: tidb, listen: ['unix:{s}.sock']}}" for s in segments)
    text = (
        f"pipeline: road\nlake: {{path: {folder / 'lake'}}}\nsources: {{{listed}}}\n"
        f"tables: {{include: ['{include}']{more}}}\n"
        f"apply: {{mode: batch{apply}}}\n"
    )
    file = folder / "road.yaml"
    file.write_text(text)
    return config.load(file), lake


def applied(pipeline: config.Pipeline, lake: LakeFiles, spark: SparkSession, lines: list[str]) -> Application:
    app = Application(BackgroundSession(lambda: spark), pipeline, lake, BronzeIndex(lake))
    run_apply(app, report=lines.append)
    return app


def compared(app: Application, expected: dict[str, Any]) -> str:
    """How a silver table differs from a recorded one; "held: why" for one that is held; "" when it is equal."""
    name = f"{expected['db'].lower()}.{expected['table']}"
    state = app.states.get(name)
    if state is not None and state.state == tables.State.HELD:
        return f"held: {state.reason}"
    wanted = [column for column in expected["columns"] if not column.get("hidden")]
    version = app.histories[next(iter(app.pipeline.sources))].last((expected["db"].lower(), expected["table"]))
    assert version is not None
    columns = version.columns
    if [column.name for column in columns] != [column["name"] for column in wanted]:
        return f"columns {[column.name for column in columns]}"
    want = sorted((_told(row, columns) for row in expected["rows"]), key=_order)
    path = Path(app.lake.root) / tables.silver_path(expected["db"].lower(), expected["table"])
    if not path.exists():
        return "" if not want else "no silver table"
    rows = by_polars(str(path))
    texts = [[_text(column, cell) for cell in rows[column.silver].to_pylist()] for column in columns]
    found = sorted((list(row) for row in zip(*texts, strict=True)), key=_order)
    if found == want:
        return ""
    missing = [row for row in want if row not in found]
    extra = [row for row in found if row not in want]
    return f"{len(want)}/{len(found)} rows, missing {missing[:2]}, extra {extra[:2]}"


def _told(row: list[str | None], columns: Sequence[Column]) -> list[str | None]:
    """Silver has NULL for what no calendar knows."""
    moments = (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP)
    return [
        None if cell is not None and canonical(column).kind in moments and "-00" in cell[:10] else cell
        for cell, column in zip(row, columns, strict=False)
    ]


def _order(row: list[str | None]) -> list[tuple[bool, str]]:
    return [(cell is None, cell or "") for cell in row]


def _text(column: Any, value: Any) -> str | None:
    kind = canonical(column)
    if value is None:
        return None
    match value:
        case bool():
            return "1" if value else "0"
        case bytes() if kind.kind is Kind.BIT:
            return f"{int.from_bytes(value, 'big'):X}"
        case bytes() | bytearray():
            return bytes(value).hex().upper()
        case float():
            return float_text(value, is_float=kind.kind is Kind.FLOAT)
        case Decimal():
            return f"{value:f}"
        case datetime():
            digits = kind.text.numbers[0] if kind.text.numbers else 0
            text = value.strftime("%Y-%m-%d %H:%M:%S")
            text = f"{value.year:04}{text[text.index('-') :]}"
            return text + f".{value.microsecond:06}"[: digits + 1] if digits else text
        case date():
            return value.isoformat()
        case int() if kind.kind is Kind.YEAR:
            return f"{value:04}"
    return str(value)
