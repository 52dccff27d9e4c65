"""The whole road in one process: a real server, capture, apply on Spark, silver; and an oracle apart from it.

In:  a server and a folder.
Out: Road.capture(), Road.apply(), and Road.assert_equal(): tidegate.verify, the server's own SELECT against silver
     read by DuckDB.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.apply import run as run_apply
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.reached import position_of, run_to, wait_for_checkpoint
from tests.kit.spark import no_spark
from tidegate import config
from tidegate.capture.run import CaptureRun
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import current_position
from tidegate.position import Position
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

_IDLE_SECONDS = 0.3
_PROVEN_SECONDS = 1.4  # it ends, too, where no heartbeat proves anything new: MySQL's second one does
_HEARTBEAT_SECONDS = 0.5  # well more than capture waits for the stream, or none proves anything
_RUNS_MAX = 10


class Road:
    """One pipeline of one source named `one`."""

    def __init__(
        self, server: Server, folder: Path, *, include: str, start: str = "now", extra: str = "", apply: str = ""
    ) -> None:
        """extra, apply: more keys of `tables` and of `apply`, each behind a comma."""
        self.server = server
        self.folder = folder
        self.text = (
            f"pipeline: road\nlake: {{path: {folder / 'lake'}}}\n"
            f"sources: {{one: {{conn_id: road_one, flavour: {server.flavour}, start: {start}}}}}\n"
            f"tables: {{include: ['{include}']{extra}}}\n"
            "capture: {land_seconds: 0.1, heartbeat_seconds: 0.5}\n"
            f"apply: {{mode: batch{apply}}}\n"
        )
        self.file = folder / "road.yaml"
        self.file.write_text(self.text)
        self.pipeline = config.load(self.file)
        self.lake = LakeFiles(str(folder / "lake"))
        self.lines: list[str] = []
        self.compared = 0  # tables, as often as they were equal
        self._begun = False
        self._captured: Position | None = None

    @classmethod
    def begun(cls, server: Server, folder: Path, database: str, *statements: str) -> Road:
        """The road of a database from before these statements. They run in it one by one, and aren't captured yet."""
        road = cls(server, folder, include=f"{database}.*")
        road.capture()
        with server.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                connection.commit()
        return road

    @property
    def info(self) -> ConnectionInfo:
        server = self.server
        return ConnectionInfo(host=server.host, port=server.port, user=server.user, password=server.password)

    def capture(self, *, seconds: float = 60, heartbeat: bool = False) -> None:
        """Capture until all is there that the server has now; in a lake without anything, or if asked, a heartbeat."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            goal = current_position(cursor)
            if goal is not None:
                wait_for_checkpoint(self.server, goal.file)
                goal = current_position(cursor)
        is_new = goal is None or self._captured is None or goal > self._captured
        for _ in range(_RUNS_MAX):  # a busy machine may need several to get there
            if heartbeat or not self._begun:
                found = run_to(self._run(often=True), goal, seconds, idle_seconds=_PROVEN_SECONDS, heartbeat=True)
            elif is_new:
                found = run_to(self._run(), goal, seconds, idle_seconds=_IDLE_SECONDS)
            else:  # who asks again waits for what others do meanwhile
                found = self._run().run(seconds, idle_seconds=_IDLE_SECONDS)
            self._begun = found.last_seq > 0
            self._captured = position_of(found.position) if self._begun else None
            if self._captured is not None and (goal is None or self._captured >= goal):
                break

    def capture_silence(self, idle_seconds: float) -> None:
        """Capture until nothing new came for so long."""
        self._run().run(60, idle_seconds=idle_seconds)

    def _run(self, *, often: bool = False) -> CaptureRun:
        """often: heartbeats come sooner than a pipeline file may have them."""
        pipeline, capture = self.pipeline, self.pipeline.capture
        if often:
            capture = capture.model_copy(update={"heartbeat_seconds": _HEARTBEAT_SECONDS})
            pipeline = pipeline.model_copy(update={"capture": capture})
        return binlog_run(pipeline, "one", self.info, self.folder / "state")

    def apply(self, spark: SparkSession | None = None) -> Application:
        """A fresh application, as after a restart; until nothing is left to do. Without a session it must need none."""
        background = BackgroundSession(no_spark if spark is None else lambda: spark)
        app = Application(background, self.pipeline, self.lake, BronzeIndex(self.lake))
        run_apply(app, report=self.lines.append)
        return app

    def assert_equal(self) -> dict[str, int]:
        """Every table that isn't held or dropped has the source's rows; returns their counts."""
        report = verify(self.pipeline, {"one": self.info}, self.lake.root, {}, VerifyOptions(timeout_seconds=5))
        bad = [result for result in report.tables if result.outcome in (Outcome.DIFFERENT, Outcome.UNSETTLED)]
        assert not bad, "\n".join(
            f"{r.table}: {r.source_rows} / {r.silver_rows}: {r.differences[:2]} {r.outcome} {r.reason}" for r in bad
        )
        self.compared += sum(result.outcome is Outcome.EQUAL for result in report.tables)
        return {r.table.split(".", 1)[1]: r.source_rows for r in report.tables if r.outcome is Outcome.EQUAL}
