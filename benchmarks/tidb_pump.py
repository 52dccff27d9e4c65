"""A Pump: what it takes in at 64 writers, each answered after a sync, and what waits in its memory.

In:  a folder on the disk that is meant; sizes.
Out: rows that only the report shows: WriteBinlog per second, per CPU second of the Pump, p99; the memory of prewrites
     that nobody answers. The writers are a process of their own, which takes CPU, too: on two cores about half of it.

`python -m benchmarks.tidb_pump serve FOLDER | write ADDRESS COUNT LOT | wait COUNT` are those processes.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.cpu import peak_bytes, tree_cpu
from benchmarks.figures import Row
from benchmarks.sizes import Sizes
from tests.kit.tidb import encode
from tidegate.pump.door import Door
from tidegate.pump.reader import PumpReader, PumpSettings, PumpSource
from tidegate.pump.server import Write
from tidegate.tidb.codec.protobuf import bytes_field, number_field
from tidegate.tidb.records.payload import BinlogType, binlog_of

ROOT: Final = Path(__file__).resolve().parents[1]
_WRITERS: Final = 64
_PAYLOAD_BYTES: Final = 400
_FIRST_TS: Final = 1 << 40
_SEGMENT_BYTES: Final = 8 << 20
_KEY: Final = b"k" * 20


def measure(folder: Path, sizes: Sizes) -> list[Row]:
    folder.mkdir(parents=True, exist_ok=True)
    address, found = f"unix:{folder}/p.sock", list[dict[str, float]]()
    serving = _process("serve", str(folder))
    try:
        assert serving.stdout is not None
        serving.stdout.readline()
        for lot in range(sizes.runs + 1):
            before = tree_cpu(serving.pid)
            told = json.loads(_process("write", address, str(sizes.tidb_writes), str(lot)).communicate()[0])
            found.append(told | {"cpu": sizes.tidb_writes / (tree_cpu(serving.pid) - before)})
    finally:
        serving.terminate()
        serving.wait(60)
    waiting = json.loads(_process("wait", str(sizes.tidb_unanswered)).communicate()[0])
    runs = found[1:]  # the first one's is what is loaded at first
    note = f"{_WRITERS} writers, prewrites of {_PAYLOAD_BYTES} bytes and commits, a sync before each answer"

    def row(key: str, title: str, unit: str, name: str) -> Row:
        return Row(f"tidb_{key}", title, unit, [one[name] for one in runs], note=note)

    return [
        row("writes", "Pump, WriteBinlog", "a second", "rate"),
        row("writes_cpu", "Pump, WriteBinlog", "per CPU second of the Pump", "cpu"),
        row("writes_p99", "Pump, WriteBinlog, p99", "ms", "p99"),
        Row(
            "tidb_unanswered",
            "Pump, prewrites without an answer",
            "MB",
            [waiting["mb"]],
            note=f"{sizes.tidb_unanswered} of them: what its process grew by",
        ),
    ]


def _process(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.tidb_pump", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def serve(folder: Path) -> None:
    """Until the process is ended."""
    from tests.kit.tidb.pump_world import Counter, pump_run, running

    with running(pump_run(folder, Counter(_FIRST_TS), land_seconds=1.0)):
        while not (folder / "p.sock").exists():
            time.sleep(0.01)
        print("serving", flush=True)
        threading.Event().wait()


async def _write(address: str, count: int, lot: int) -> dict[str, float]:
    import grpc.aio

    numbers, spent = iter(range(count // 2)), list[float]()
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.unary_unary("/binlog.Pump/WriteBinlog")
        await channel.channel_ready()

        async def writer() -> None:
            for number in numbers:
                start_ts = _FIRST_TS + (lot << 32) + 10 * number
                value = bytes_field(2, bytes(_PAYLOAD_BYTES - 50))
                prewrite = encode.binlog(BinlogType.PREWRITE, start_ts, value=value, key=_KEY)
                for payload in (prewrite, encode.binlog(BinlogType.COMMIT, start_ts, start_ts + 1, key=_KEY)):
                    asked = time.monotonic()
                    answer = await call(number_field(1, 7) + bytes_field(2, payload))
                    spent.append(time.monotonic() - asked)
                    assert not answer, answer

        started = time.monotonic()
        await asyncio.gather(*(writer() for _ in range(_WRITERS)))
        seconds = time.monotonic() - started
    spent.sort()
    return {"rate": len(spent) / seconds, "p99": 1000 * spent[len(spent) * 99 // 100]}


class _Given:
    """In the place of the gRPC server and of PD."""

    idle = True

    def __init__(self) -> None:
        self.waiting = list[Write]()
        self.door = Door()

    def start(self) -> None:
        pass

    def take(self, timeout_seconds: float, bytes_max: int) -> list[Write]:  # noqa: ARG002
        found, self.waiting = self.waiting, []
        return found

    def tso(self) -> int:
        return _FIRST_TS

    def close(self, why: str = "") -> None:
        pass


def wait(count: int) -> dict[str, float]:
    """A Pump's reader that is given prewrites which nobody answers."""
    given: Any = _Given()
    settings = PumpSettings("one", "one", _SEGMENT_BYTES, 1e9, 240.0, lambda: given, None, lambda *_: iter(()))
    reader = PumpReader(PumpSource(settings, lambda: given))
    captured: Any = None
    reader.open(reader.first_checkpoint(captured))
    before = peak_bytes()
    for first in range(0, count, 1000):
        stamps = range(_FIRST_TS + first, _FIRST_TS + first + min(1000, count - first))
        payloads = [encode.binlog(BinlogType.PREWRITE, at, value=b"v", key=at.to_bytes(20, "big")) for at in stamps]
        given.waiting = [Write(payload, binlog_of(payload)) for payload in payloads]
        reader.receive(0)
        reader.cut_now()
        reader.acknowledge()
    assert reader.resolved_ts <= _FIRST_TS
    return {"mb": (peak_bytes() - before) / 1e6}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", folder]:
            serve(Path(folder))
        case ["write", address, count, lot]:
            print(json.dumps(asyncio.run(_write(address, int(count), int(lot)))))
        case ["wait", count]:
            print(json.dumps(wait(int(count))))
