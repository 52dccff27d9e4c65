"""Apply's pairing of prewrites and commits of TiDB, when a million wait below the window that commits them.

In:  a folder; how many.
Out: rows that only the report shows: what a process grows by as it pairs them, and transactions per CPU second.

`python -m benchmarks.pairing fill FOLDER COUNT | pair FOLDER` are the processes: who makes the lake grows, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.cpu import peak_bytes
from benchmarks.figures import Row
from benchmarks.sizes import Sizes
from tests.kit.tidb import encode
from tests.kit.tidb.road import Fed, lake_with
from tidegate.pump.reader import PumpReader, PumpSettings, PumpSource
from tidegate.pump.server import Write
from tidegate.tidb.records.payload import BinlogType, Mutation, binlog_of, fake_payload

ROOT: Final = Path(__file__).resolve().parents[1]
_FIRST_TS: Final = 1 << 40
_LOT: Final = 2000
_KEY: Final = bytes(20)


def measure(folder: Path, sizes: Sizes) -> list[Row]:
    count = sizes.tidb_unanswered
    _run("fill", str(folder), str(count))
    told = json.loads(_run("pair", str(folder)))
    note = f"{count} prewrites without an answer, then the window that commits them all"
    return [
        Row("tidb_pairing", "apply, pairing, per transaction", "bytes", [told["bytes"]], note=note),
        Row("tidb_pairing_cpu", "apply, pairing", "transactions per CPU second", [told["rate"]], note=note),
    ]


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.pairing", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


class _Clock:
    def tso(self) -> int:
        return _FIRST_TS

    def close(self) -> None:
        pass


def fill(folder: Path, count: int) -> None:
    """A few first, which a small window commits; then the others."""
    from tidegate.lake.bronze.table import Bronze

    folder.mkdir(parents=True, exist_ok=True)
    fed: Any = Fed()
    settings = PumpSettings("one", "one", 1 << 20, 1e9, 1e9, _Clock, None, lambda *_: iter(()))
    reader = PumpReader(PumpSource(settings, lambda: fed))
    reader.open(reader.first_checkpoint(None))  # type: ignore[arg-type]
    _, lake = lake_with(folder, {"one": []})
    bronze = Bronze(lake, "one")

    def given(payloads: list[bytes]) -> None:
        fed.waiting = [Write(payload, binlog_of(payload)) for payload in payloads]
        if segments := reader.receive(0) + reader.cut_now():
            bronze.append(segments)

    at = _FIRST_TS
    for size in (_LOT, count):
        stamps = range(at, at + size)
        for first in range(0, size, _LOT):
            given([_prewrite(start_ts) for start_ts in stamps[first : first + _LOT]])
        at += size + 1
        for first in range(0, size, _LOT):
            mine = stamps[first : first + _LOT]
            given([encode.binlog(BinlogType.COMMIT, one, at + n, key=_KEY) for n, one in enumerate(mine, first)])
        at += size + 1
        given([fake_payload(at)])


def _prewrite(start_ts: int) -> bytes:
    row = encode.datum(start_ts) + encode.pairs({2: start_ts, 3: 7})
    return encode.binlog(BinlogType.PREWRITE, start_ts, value=encode.mutations(7, (Mutation.INSERT, row)), key=_KEY)


def pair(folder: Path) -> dict[str, float]:
    from spark_jobs.session.background import BackgroundSession
    from spark_jobs.window.application import Application
    from spark_jobs.window.pairing.pairs import pairs_of
    from spark_jobs.window.window import Window
    from tests.kit.spark import no_spark
    from tidegate import config
    from tidegate.lake.bronze.index import BronzeIndex
    from tidegate.lake.files import LakeFiles
    from tidegate.segments.window import in_window, resolved_everywhere

    pipeline, lake = config.load(folder / "road.yaml"), LakeFiles(str(folder / "lake"))
    app = Application(BackgroundSession(no_spark), pipeline, lake, BronzeIndex(lake))
    app.index.refresh(0)
    refs = app.index.refs["one"]
    last_ts = resolved_everywhere(app.index.refs, ["one"])
    found = list[tuple[int, int, float]]()
    low_ts = 0
    for cut_ts in (_FIRST_TS + 2 * _LOT + 2, last_ts):  # the first one's is what is loaded at first
        before, started = peak_bytes(), time.process_time()
        (told,) = pairs_of(app, Window(low_ts, cut_ts, in_window(refs, low_ts, cut_ts)))
        count = sum(len(one) for one in told.rows.values())
        assert not told.lost
        found.append((count, peak_bytes() - before, time.process_time() - started))
        low_ts = cut_ts
    assert found[0][0] == _LOT
    count, grew, seconds = found[1]
    return {"bytes": grew / count, "rate": count / seconds}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", folder, count]:
            fill(Path(folder), int(count))
        case ["pair", folder]:
            print(json.dumps(pair(Path(folder))))
