"""A Pump in this process, its lake and its value log, and a TiDB's side of the wire.

In:  a folder; timestamps and fates as a test wants them.
Out: a CaptureRun over a PumpSource; a client that writes payloads over gRPC as TiDB does.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from tidegate.capture.run import CaptureRun
from tidegate.config import parse
from tidegate.errors import SourceUnavailable
from tidegate.lake.files import LakeFiles
from tidegate.pump.opened import PumpRun
from tidegate.pump.orphans import Words
from tidegate.pump.pulled import Pulls
from tidegate.pump.reader import PumpSettings, PumpSource
from tidegate.pump.registration import PumpAddress, Registration
from tidegate.pump.server import PumpServer, PumpServerSettings
from tidegate.pump.stored import stored_in
from tidegate.tidb.codec.protobuf import bytes_field, fields, number_field

NODE = "one"


class Counter:
    """PD's timestamps, each above `floor` and the ones before; None: nobody can be asked."""

    def __init__(self, floor: int | None = 1) -> None:
        self.floor = floor
        self._count = itertools.count(1)

    def tso(self) -> int:
        if self.floor is None:
            raise SourceUnavailable("TiDB is down")
        return self.floor + next(self._count)

    def close(self) -> None:
        pass


class Fates(dict[int, int | None]):
    """start_ts -> what TiDB's MVCC says; whom it doesn't know it can't be asked of. collected_ts: its safe point."""

    collected_ts = 0

    def safe_point(self) -> int:
        return self.collected_ts

    def fate(self, key: bytes, start_ts: int) -> int | None:
        if start_ts not in self:
            raise SourceUnavailable(f"nobody answers for {key.hex()}")
        return self[start_ts]


class Jobs(dict[int, bytes]):
    """TiDB's DDL history: job id -> JSON. down: it can't be asked. listed: the timestamps that it was asked about."""

    down = False

    def __init__(self) -> None:
        self.listed: list[int] = []

    def job(self, job_id: int) -> bytes | None:
        if self.down:
            raise SourceUnavailable("TiDB is down")
        return self.get(job_id)

    def tables(self, tso: int) -> bytes:
        if self.down:
            raise SourceUnavailable("TiDB is down")
        self.listed.append(tso)
        return b"[]"


def pump_run(
    folder: Path,
    counter: Counter,
    fates: Fates | None = None,
    jobs: Jobs | None = None,
    place: PumpAddress | None = None,
    words: Words | None = None,
    **capture: Any,
) -> PumpRun:
    """capture: settings of that part; and cluster_id, of the source, None for a file that names none."""
    cluster_id: int | None = capture.pop("cluster_id", 7)
    settings = {"land_seconds": 0.1, "value_log_reserve_bytes": 0} | capture
    pipeline = parse(
        f"pipeline: test\nlake: {{path: {folder / 'lake'}}}\n"
        f"sources: {{one: {{conn_id: one, flavour: tidb, listen: ['unix:{folder}/p.sock']}}}}\n"
        f"tables: {{include: ['*.*']}}\n"
        f"capture: {{{', '.join(f'{key}: {value}' for key, value in settings.items())}}}\n",
        where="test",
    )
    lake = LakeFiles(str(folder / "lake"))
    stored = stored_in(lake, "one")
    pump = PumpSettings(
        "one", NODE, pipeline.capture.segment_bytes, 0.2, 0.000001, lambda: counter, fates, stored, jobs, words
    )
    listen = [f"unix:{folder}/p.sock", *([place.host] if place else [])]
    served = PumpServerSettings(listen, 1 << 24, cluster_id=cluster_id)

    def source(registration: Registration | None) -> PumpSource:
        return PumpSource(pump, lambda: PumpServer(served, Pulls(lake, "one", NODE)), registration)

    return PumpRun(pipeline, "one", lambda: source(None), folder / "state", lake, pump=source, place=place)


@contextmanager
def running(run: CaptureRun) -> Iterator[None]:
    """While the block runs, the Pump serves; what ends it otherwise is raised."""
    stop, errors = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            run.run(600, stop=stop)
        except BaseException as error:  # noqa: BLE001  raised in the test's own thread
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if errors:
        raise errors[0]


class Client:
    """TiDB's side."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        channel = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
        self._channel = channel
        self._write = channel.unary_unary("/binlog.Pump/WriteBinlog")

    def write(self, payload: bytes, cluster: int = 7, seconds: float = 120) -> str:
        """The error that TiDB would see; "" when it is stored."""
        request = number_field(1, cluster) + bytes_field(2, payload)
        answer = self._write(request, timeout=seconds, wait_for_ready=True)
        return b"".join(value for number, value in fields(answer) if number == 1 and isinstance(value, bytes)).decode()

    def pull(self, after_ts: int, cluster: int = 7, seconds: float = 60) -> Iterator[tuple[int, bytes]]:
        """(Pos.offset, payload) as a drainer gets them (tipb's proto/binlog/pump.proto)."""
        stream = self._channel.unary_stream("/binlog.Pump/PullBinlogs")
        place = number_field(1, 0) + number_field(2, after_ts)
        for answer in stream(number_field(1, cluster) + bytes_field(2, place), timeout=seconds, wait_for_ready=True):
            ((_, entity),) = fields(answer)
            cells = dict(fields(entity))
            yield dict(fields(cells[1]))[2], cells[2]

    def close(self) -> None:
        self._channel.close()


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not met():
        assert time.monotonic() < end
        time.sleep(0.1)
