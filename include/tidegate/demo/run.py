"""`make demo`: a shop on MariaDB, Airflow and Spark keeping it equal in Delta, and the proof at the end.

In:  the project's root, how long the shop is open.
Out: True when every table in silver equals its source at one cut; False when one differs. Every started process is
     ended, whatever happens; the files are under .tidegate/demo.

The order matters. Airflow takes longest to start, so it starts first; the server and the shop's past come meanwhile.
The shop opens once capture has begun, and a snapshot reads older rows while it is open. It closes before the
comparison, which reads the server's newest rows.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from tidegate import pipelines
from tidegate.demo import queries
from tidegate.demo.outcome import show
from tidegate.demo.progress import DemoMoment, Progress
from tidegate.demo.workload import Workload
from tidegate.errors import ProcessFailed
from tidegate.home import folder_of
from tidegate.lake.files import LakeFiles
from tidegate.local import jars, mariadb
from tidegate.local.airflow import Airflow
from tidegate.local.processes import sole
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.position import MariadbGtidPosition
from tidegate.tables import WATERMARK_DATABASE
from tidegate.verify.report import Report
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

_PARTS: Final = ("capture", "apply", "snapshot")
CONN_ID: Final = "tidegate_demo_shop"
_TICK_SECONDS: Final = 0.5
# Spark's first window waits for a cold JVM; the shop stays open this long after it, to show what follows ...
_SEEN_SECONDS: Final = 10.0
# ... but not for ever.
_PATIENCE_SECONDS: Final = 120.0
_BUSY: Final = "see the task logs there; where the machine is only busy, run it again once it is idle"
_COVERED_SECONDS: Final = 600.0
# About 300,000 rows in all.
_PAST_ORDERS: Final = 75_000
_RIGHTS: Final = f"CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.*"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """seconds: how long the shop is open; transactions: close it earlier, after so many; rate: per second."""

    seconds: float = 45.0
    transactions: int | None = None
    seed: int = 7
    sessions: int = 4
    rate: float = 80.0


class Demo:
    """One run of the demo."""

    def __init__(self, root: Path, options: DemoOptions, console: Console) -> None:
        self.state = root / ".tidegate" / "demo"
        self.console = console
        self._root = root
        self._options = options
        self._connection = ""
        self._file = folder_of("include/pipelines") / "demo.yaml"
        self.pipeline = pipelines.load(self._file)
        self.lake = LakeFiles(self.pipeline.lake.path, self.pipeline.lake.storage_options)

    def run(self, *, stay: bool) -> bool:
        """Whether silver equals the source. stay: keep all up until Ctrl-C once that is known."""
        with ExitStack() as ending:
            ending.enter_context(sole(self.state, "a demo"))  # a second one would delete its lake
            self._clean()
            jar_folder = ending.enter_context(jars.at_hand(self._root))
            self._say("MariaDB starts" if (self._root / ".tidegate" / "servers").exists() else "fetching MariaDB, once")
            server = ending.enter_context(mariadb.MariaDB(self.state / "mariadb", mariadb.install(self._root)))
            self._connection = _connection(server)
            airflow = self._airflow()
            ending.callback(airflow.stop)
            self._say("Airflow starts: a minute or more (its logs are in .tidegate/airflow/logs)")
            airflow.start()
            workload = self._workload(server)
            server.query(f"GRANT {_RIGHTS} TO '{server.user}'@'%'")  # marks of snapshots
            workload.create(orders=_PAST_ORDERS)
            airflow.wait_healthy(self._say)
            for part in _PARTS:
                airflow.unpause(f"{self.pipeline.pipeline}__{part}")
            self._say(f"Airflow runs at {airflow.url}: login {airflow.user}, password {airflow.password}")
            self._say(
                f"the shop has {_PAST_ORDERS:,} orders already, which a snapshot reads; its customers go on for"
                f" {self._options.seconds:.0f} s, and capture and apply follow its binlog"
            )
            progress = Progress(self.console, self.pipeline, self.lake, workload.counters)
            with progress.shown():
                self._wait_begun(airflow, progress)
                self._open_shop(workload, progress)
                self._wait_covered(server, airflow, progress)
            report = self._verify()
            show(report, progress.lag_summary, self.console)
            self.console.print(
                "\n[bold]Ask silver yourself[/bold], by DuckDB and by Spark (it stays until the next demo):"
            )
            for command in (
                queries.query_command(),
                queries.spark_command(Path(self.lake.root), self.state, jar_folder),
            ):
                self.console.print(f"\n{command}", soft_wrap=True, highlight=False, markup=False)
            self.console.print("\nNext: docs/tutorial.md, a pipeline of your own in ten minutes.")
            if stay:
                self.console.print(
                    f"\nAirflow stays at {airflow.url} (login {airflow.user}, password {airflow.password})"
                )
                self._stay(airflow)
        return report.equal and report.complete

    def _wait_begun(self, airflow: Airflow, progress: Progress) -> None:
        """Until capture follows the log: what the shop holds now is the snapshot's. Raises ProcessFailed."""
        progress.phase = "capture begins"
        end = time.monotonic() + _COVERED_SECONDS
        while progress.look().source is None:
            if time.monotonic() > end:
                raise ProcessFailed(
                    f"capture has not begun after {_COVERED_SECONDS:.0f} s",
                    where=str(airflow.home / "logs"),
                    remedy=_BUSY,
                )
            airflow.check_running()
            airflow.check_runs(f"{self.pipeline.pipeline}__capture")
            time.sleep(_TICK_SECONDS)

    def _open_shop(self, workload: Workload, progress: Progress) -> None:
        """Let the sessions work until the bound, and at least until Spark has been seen keeping up; then close."""
        progress.phase = "the shop is open"
        opened = time.monotonic()
        bound, first_cut = opened + self._options.seconds, None
        most = self._options.transactions
        with _closed_at_the_end(workload):
            while not workload.failed:
                now = time.monotonic()
                if progress.look(sample=True).cut_ts and first_cut is None:
                    first_cut = now
                seen = first_cut is not None and now > first_cut + _SEEN_SECONDS
                if now > bound and (seen or now > bound + _PATIENCE_SECONDS):
                    break
                if most is not None and workload.counters.committed >= most:
                    break
                time.sleep(_TICK_SECONDS)

    def _wait_covered(self, server: mariadb.MariaDB, airflow: Airflow, progress: Progress) -> None:
        """Until a published cut holds all that the source has. Raises ProcessFailed when that takes too long."""
        progress.phase = "the shop is closed"
        wanted = MariadbGtidPosition.parse(server.variables["gtid_binlog_pos"])
        end = time.monotonic() + _COVERED_SECONDS
        while time.monotonic() < end:
            airflow.check_running()
            for part in ("capture", "apply"):  # a table that is dropped during its snapshot may fail one run of it
                airflow.check_runs(f"{self.pipeline.pipeline}__{part}")
            if covers(progress.look(), wanted):
                return
            time.sleep(_TICK_SECONDS)
        raise ProcessFailed(
            f"no cut covers the source's position {wanted} after {_COVERED_SECONDS:.0f} s",
            where=str(airflow.home / "logs"),
            remedy=_BUSY,
        )

    def _clean(self) -> None:
        """A fresh lake and a fresh server each time; Airflow's template and what was downloaded stay."""
        for name in ("lake", "value_log", "mariadb", "pipelines"):
            shutil.rmtree(self.state / name, ignore_errors=True)
        # Only this pipeline: the user's own aren't the demo's to run.
        (self.state / "pipelines").mkdir(parents=True)
        (self.state / "pipelines" / self._file.name).symlink_to(self._file)

    def _airflow(self) -> Airflow:
        home = self._root / ".tidegate" / "airflow"
        return Airflow(home, self._root, self.state / "pipelines", {CONN_ID: self._connection})

    def _verify(self) -> Report:
        """The source's own SELECT against silver read by DuckDB; recorded, so that the page shows it."""
        self._say("comparing every row of silver with the server's own SELECT")
        (source,) = self.pipeline.sources
        connections = {source: ConnectionInfo.from_airflow_text(CONN_ID, self._connection)}
        options = VerifyOptions.of(self.pipeline.verify)
        return verify(self.pipeline, connections, self.lake.root, self.lake.storage_options, options)

    def _workload(self, server: mariadb.MariaDB) -> Workload:
        options = self._options
        return Workload(
            server.connect, seed=options.seed, seconds=options.seconds, sessions=options.sessions, rate=options.rate
        )

    def _stay(self, airflow: Airflow) -> None:
        self.console.print("Ctrl-C ends it.")
        try:
            while True:
                airflow.check_running()
                time.sleep(_TICK_SECONDS)
        except KeyboardInterrupt:
            self.console.print("ending")

    def _say(self, text: str) -> None:
        self.console.print(f"[dim]tidegate:[/dim] {text}", highlight=False)


def _connection(server: mariadb.MariaDB) -> str:
    """The source as an Airflow connection; its certificate is verified."""
    parts = {
        "conn_type": "mysql",
        "host": server.host,
        "port": server.port,
        "login": server.user,
        "password": server.password,
        "extra": {"ssl_ca": str(server.certificate)},
    }
    return json.dumps(parts)


@contextmanager
def _closed_at_the_end(workload: Workload) -> Iterator[None]:
    """Sessions are threads: whatever happens, they are joined before their server goes."""
    workload.start()
    try:
        yield
    finally:
        workload.stop()


def covers(snapshot: DemoMoment, wanted: MariadbGtidPosition) -> bool:
    """Whether a published cut has all that the source had at this position, rows from before capture included."""
    source = snapshot.source
    if not snapshot.cut_ts:  # any cut covers a log without a transaction; before the first cut no table is known
        return False
    if source is None or not MariadbGtidPosition.parse(source.gtid_executed).covers(wanted):
        return False
    return snapshot.cut_ts >= source.max_commit_ts and not snapshot.lacking
