"""A database that holds much before its log is followed; capture, apply and the reader of snapshots, as users run them.

In:  a folder, a seed, a flavour, a Size, how much is written meanwhile.
Out: World, a context manager: snapshotted(), compared(), repaired(); each raises Wrong.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc
from deltalake import DeltaTable

from tests.size.compare import compared
from tests.size.disturbed import Disturbance
from tests.size.planted import plant
from tests.size.tables import BIG, DATABASE, Size, fill, names_at
from tests.size.works import Works
from tests.size.writers import Writers
from tests.soak.witness import Wrong
from tests.support.own_server import own_server
from tests.support.servers import ROOT
from tests.support.whole import Whole
from tidegate.errors import CutNotYet
from tidegate.lake.cuts.published import Cut, cut_at
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import last_states
from tidegate.snapshot.progress.requests import Told
from tidegate.tables import CHUNKS, WATERMARK_DATABASE, State

_FOREVER: Final = "86400"
_STILL_SECONDS: Final = 900.0  # nothing came for so long
_LOOK_SECONDS: Final = 1.0
_VERIFY_SECONDS: Final = "900"
_OPTIONS: Final = ("--innodb-buffer-pool-size=1G", "--innodb-flush-log-at-trx-commit=2")
_LOGS: Final = {"mariadb": ("--innodb-log-file-size=512M",), "mysql9": ("--innodb-redo-log-capacity=512M",)}


@dataclass(frozen=True, slots=True)
class Pace:
    """What sessions write, and the most bytes that the reader of snapshots reads; 0: no bound."""

    changes_per_second: float = 500.0
    bytes_per_second: int = 0


class World(Whole):
    """works: what is running; writers: who writes. began: time.monotonic()."""

    def __init__(self, folder: Path, flavour: str, size: Size, seed: int, pace: Pace) -> None:
        super().__init__()
        self.folder, self.size, self.seed, self.pace = folder, size, seed, pace
        self.began = time.monotonic()
        self.file, self.lake = folder / "size.yaml", folder / "lake"
        self.pipeline = f"size_{os.getpid()}"
        self.server = own_server(flavour, folder / "server", options=(*_OPTIONS, *_LOGS[flavour]))
        self.writers = Writers(self.server, size, seed, pace.changes_per_second)
        self._files = LakeFiles(str(self.lake))
        self._told = Told(self._files, self.pipeline)

    def say(self, line: str) -> None:
        print(f"{time.monotonic() - self.began:6.0f} s: {line}", file=sys.stderr, flush=True)

    def _begin(self) -> None:
        server = self.stack.enter_context(self.server)
        self.stack.callback(server.kill)  # nobody needs what it would write out
        server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
        server.query(f"GRANT LOCK TABLES, SELECT ON *.* TO '{server.user}'@'%'")  # of a MySQL's tables without a key
        fill(server, self.size)
        self.say(f"{self.size.rows + self.size.bag:,} rows and {self.size.small} small tables are there")
        self.file.write_text(
            f"pipeline: {self.pipeline}\nlake: {{path: '{self.lake}'}}\n"
            f"sources: {{one: {{conn_id: one, flavour: {server.flavour}, start: now}}}}\n"
            f"tables: {{include: ['{DATABASE}.*']}}\napply: {{mode: micro_batch}}\n"
            f"snapshot: {{bytes_per_second: {self.pace.bytes_per_second}}}\n"
        )
        login = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}"
        self.works = Works(os.environ | {"TIDEGATE_HOME": str(ROOT), "AIRFLOW_CONN_ONE": login}, self.folder)
        self.stack.callback(self.works.stop)
        self.stack.enter_context(self.writers)
        file = str(self.file)
        state = ("--state-dir", str(self.folder / "state"))
        self.works.start("capture", ("capture", file, *state, "--run-for", _FOREVER))
        self.works.start("apply", ("apply", file, "--run-for", "3600"))
        self.works.start("snapshot", ("snapshot", "run", file, "--follow"))

    # --- the snapshot -------------------------------------------------------------------------------------

    def snapshotted(self, disturbances: Sequence[Disturbance]) -> str:
        """Until all tables are whole; each disturbance has its place among the rows to be read. Raises Wrong."""
        began, rng = time.monotonic(), random.Random(f"{self.seed} disturbances")
        total = self.size.rows + self.size.bag
        places = [total * (at + 1) // (len(disturbances) + 1) for at in range(len(disturbances))]
        left = list(zip(places, disturbances, strict=True))
        while True:
            self._until(lambda: bool(left and self._rows() >= left[0][0]) or self._whole(), "the snapshot")
            if not left or self._whole():
                break
            rows, (_, disturb) = self._rows(), left.pop(0)
            self.say(f"{rows:,} rows are read: {disturb(self, rng)}")
        if left:
            raise Wrong(f"{len(left)} disturbances came too late: {[disturb.__name__ for _, disturb in left]}")
        return self._figures(time.monotonic() - began)

    def _rows(self) -> int:
        return sum(one.rows for one in self._told.tables()) if self._lake_is_there() else 0

    def _lake_is_there(self) -> bool:
        return (self.lake / "control" / "snapshots").exists()

    def _cut(self) -> Cut | None:
        try:
            return cut_at(self._files, self.pipeline) if self._lake_is_there() else None
        except CutNotYet:
            return None

    def _whole(self) -> bool:
        """Whether every table of the source is complete in the newest cut, and none is being read."""
        if not self._lake_is_there() or any(not one.state.is_over for one in self._told.tables()):
            return False
        cut = self._cut()
        return cut is not None and {f"{DATABASE}.{name}" for name in names_at(self.server)} <= cut.tables.keys()

    def _until(self, condition: Callable[[], bool], what: str) -> bool:
        """Raises Wrong when nothing comes any more, or something ended that mustn't."""
        seen, end = (-1, -1), 0.0
        while not condition():
            if self.works.trouble:
                raise Wrong("; ".join(self.works.trouble))
            cut = self._cut()
            now = (self._rows(), len(cut.tables) if cut else 0)
            if now != seen:
                seen, end = now, time.monotonic() + _STILL_SECONDS
            if time.monotonic() > end:
                raise Wrong(f"{what}: nothing came for {_STILL_SECONDS:.0f} s; {self._waiting()}")
            time.sleep(_LOOK_SECONDS)
        return True

    def _waiting(self) -> str:
        states = {name: one for name, one in last_states(self._files).items() if one.state is not State.ACTIVE}
        some = [f"{name} {one.state}: {one.reason}" for name, one in list(states.items())[:5]]
        is_open = [one for one in self._told.tables() if not one.state.is_over]
        return f"{len(states)} wait: {some}; {len(is_open)} are read: {is_open[:3]}"

    def _figures(self, seconds: float) -> str:
        read = self._told.tables()
        rows, landed = sum(one.rows for one in read), sum(one.bytes for one in read)
        anew = sum(len(one.refused) for one in read)
        cpu = self.works.cpu_seconds
        parts = ", ".join(f"{role} {spent:.0f}" for role, spent in sorted(cpu.items()))
        return (
            f"{rows:,} rows read in {seconds:.0f} s ({rows / seconds:,.0f} a second), {landed >> 20} MiB landed,"
            f" {anew} waves of tables refused, {len(read)} snapshots; silver {_mebibytes(self.lake / 'silver')} MiB,"
            f" bronze {_mebibytes(self.lake / 'bronze')} MiB; {self.writers.changes:,} changes written meanwhile\n"
            f"CPU seconds: {parts}; {sum(cpu.values()) / rows * 1e6:.1f} in all for a million rows; {self.peaks()};"
            f" starts {dict(self.works.starts)}"
        )

    def peaks(self) -> str:
        return "peak RSS " + ", ".join(
            f"{role} {mebibytes} MiB" for role, mebibytes in sorted(self.works.peaks.items())
        )

    # --- compare ------------------------------------------------------------------------------------------

    def compared(self) -> str:
        """Nobody writes: verify, and SELECT on both sides. Raises Wrong."""
        self.writers.pause()
        try:
            began = time.monotonic()
            code, report = self._verify()
            took = time.monotonic() - began
            bad = [
                f"{one['table']} {one['outcome']}: {one['reason']}" for one in report["tables"] if not _is_equal(one)
            ]
            if code or bad:
                raise Wrong(f"verify ends with {code}; {len(bad)} tables: {bad[:5]}")
            verified = {one["table"] for one in report["tables"] if _is_equal(one)}
            if lacks := {f"{DATABASE}.{name}" for name in names_at(self.server)} - verified:
                raise Wrong(f"verify leaves {len(lacks)} tables out: {sorted(lacks)[:5]}")
            rows = compared(self.server, self.lake)
            return f"{rows:,} rows in {len(verified)} tables equal by verify ({took:.0f} s) and by SELECT"
        finally:
            self.writers.resume()

    def _verify(self, *more: str) -> tuple[int, dict[str, Any]]:
        done = self.works.once("verify", str(self.file), "--json", "--timeout", _VERIFY_SECONDS, *more)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            raise Wrong(f"verify ends with {done.returncode} and says {done.stdout[-300:]!r}: see verify.log") from None

    # --- repair -------------------------------------------------------------------------------------------

    def repaired(self, count: int) -> str:
        """Plant so many differences of each kind, and mend them, while all go on. Raises Wrong."""
        rng = random.Random(f"{self.seed} planted")
        keys = self.size.reserved(rng, 3 * count)
        plant(self.server, keys[:count], keys[count : 2 * count], keys[2 * count :])
        known = self._landed()
        began = time.monotonic()
        _, before = self._verify("--table", f"{DATABASE}.{BIG}")
        found = next(one for one in before["tables"])
        if found["different"] != 3 * count:
            raise Wrong(f"{3 * count} differences were planted, verify finds {found['different']}: {found['reason']}")
        took, began = time.monotonic() - began, time.monotonic()
        code, after = self._verify("--table", f"{DATABASE}.{BIG}", "--repair")
        if code:
            raise Wrong(f"verify --repair ends with {code}: {[one['reason'] for one in after['tables']]}")
        mended = self._landed() - known
        if mended != 3 * count:
            raise Wrong(f"{3 * count} rows were to be mended, {mended} were copied")
        return (
            f"{3 * count} differences found in {took:.0f} s, mended in {time.monotonic() - began:.0f} s, no other row"
        )

    def _landed(self) -> int:
        """Rows of all chunks of the large table, as they were landed."""
        chunks = DeltaTable(str(self.lake / CHUNKS.path)).to_pyarrow_table(columns=["table", "rows"])
        return int(pc.sum(chunks.filter(pc.equal(chunks["table"], BIG))["rows"]).as_py() or 0)


def _is_equal(result: dict[str, Any]) -> bool:
    return str(result["outcome"]) in ("equal", "dropped")


def _mebibytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) >> 20
