"""A busy source, a lake on a disk or on S3, and all who write to the lake at once.

In:  a folder, a seed, where the lake is.
Out: World, a context manager; compare(): silver against the source's own rows while everybody but the source goes on.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.kit import s3, spark
from tests.soak.source import DATABASE, Sessions
from tests.soak.witness import Wrong
from tests.support.own_server import own_server
from tests.support.servers import ROOT
from tests.support.whole import Whole
from tests.together.mirror import mirror
from tests.together.people import SOFT, People
from tests.together.people import TABLES as PEOPLES
from tests.together.works import Work, Works
from tidegate import config, tables
from tidegate.errors import CommitOverwritten, HoldChangedError, VerifyError
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import held
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.verify.report import Outcome, Report
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

_FOREVER: Final = "86400"
_APPLY_SECONDS: Final = "120"  # then Airflow starts the next one
_COMPARED_SECONDS: Final = 300.0
_PER_SECOND: Final = 15.0  # transactions
# As much upkeep as a day has.
_MAINTAIN: Final = (
    "{keep_bronze_days: 1, keep_cuts_hours: 1, cluster_share: 0.01, purge_share: 0.01, file_bytes: 1048576}"
)
_FIRST_SECONDS: Final = 900.0  # of a busy machine, on which several JVMs start
_LOOK_SECONDS: Final = 2.0
_VERIFY_SECONDS: Final = 5.0  # then it is looked whether anything is held
_PEOPLE_SECONDS: Final = 3.0  # between two things that one of them does
REBUILT: Final = "pairs"


class World(Whole):
    """released: how often a table was held because a person's tool overwrote a commit, and let go by a person."""

    def __init__(self, folder: Path, seed: int, flavour: str, store: str) -> None:
        super().__init__()
        self.folder, self.seed, self.store = folder, seed, store
        self.released = 0
        self._server = own_server(flavour, folder / "server")

    def _begin(self) -> None:
        server = self.stack.enter_context(self._server)
        options, environment = {}, os.environ | {"TIDEGATE_HOME": str(ROOT)}
        root = str(self.folder / "lake")
        if self.store == "s3":
            options = self.stack.enter_context(s3.moto()).options
            root = f"s3://{s3.BUCKET}/{uuid.uuid4().hex}"
            environment["AIRFLOW_CONN_THE_LAKE"] = json.dumps({"conn_type": "generic", "extra": options})
        environment["AIRFLOW_CONN_ONE"] = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}"
        self.file = self.folder / "together.yaml"
        self.file.write_text(
            f"pipeline: together_{os.getpid()}\n"
            f"lake: {{path: '{root}'{', conn_id: the_lake' if options else ''}}}\n"
            f"sources: {{one: {{conn_id: one, flavour: {server.flavour}, start: now}}}}\n"
            f"tables: {{include: ['{DATABASE}.*'], soft_delete: ['{DATABASE}.{SOFT}']}}\n"
            "capture: {land_seconds: 2, heartbeat_seconds: 0.5}\n"
            f"apply: {{mode: micro_batch}}\nmaintain: {_MAINTAIN}\n"
        )
        self.lake = LakeFiles(root, {name.lower(): value for name, value in options.items()})
        session = self._session = self.stack.enter_context(spark.session(self.lake.spark_options))
        session.sparkContext.setLogLevel("OFF")
        self.sessions = Sessions(server, self.seed, per_second=_PER_SECOND)
        self.people = People(root, self.lake.storage_options, session, server, self.seed, pause=_PEOPLE_SECONDS)
        file, state = str(self.file), str(self.folder / "state")
        self.works = Works(environment, self.folder)
        self.stack.callback(self.works.stop)
        self.works.start(Work("capture", ("capture", file, "--state-dir", state, "--run-for", _FOREVER)))
        self._until(lambda: self.lake.log(tables.SEGMENTS.path).state().created, "capture doesn't begin")
        self.sessions.create()
        self.stack.enter_context(self.sessions)
        self.works.start(Work("apply", ("apply", file, "--run-for", _APPLY_SECONDS)))
        self._until(self._applied, "apply doesn't begin")
        self.works.start(Work("maintain", ("maintain", file), pause_seconds=5.0))
        self.works.start(Work("rebuild", ("rebuild", file, f"{DATABASE}.{REBUILT}"), pause_seconds=10.0))
        self.people.start()
        self.stack.callback(self.people.stop)

    def _applied(self) -> bool:
        """Whether each table has rows in silver."""
        logs = (self.lake.log(tables.silver_path(DATABASE, name)) for name in PEOPLES)
        return all(log.state().files for log in logs)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _FIRST_SECONDS
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise Wrong(what)
            time.sleep(0.5)

    # --- while it runs ------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises Wrong when something ended, or was held, that mustn't. What a person lets go of goes on."""
        if trouble := [*self.works.trouble, *self.people.trouble]:
            raise Wrong("; ".join(trouble))
        for name, event in held.held_tables(self.lake).items():
            if event.fault != CommitOverwritten.__name__:
                raise Wrong(f"{name} is held: {event.reason}")
            with suppress(HoldChangedError):  # apply runs beside it
                held.release(self.lake, event)
                self.released += 1

    def run(self, seconds: float) -> None:
        """Let all of them work. Raises Wrong."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check()
            time.sleep(min(_LOOK_SECONDS, max(0.0, end - time.monotonic())))

    def compare(self) -> str:
        """Silver against the source's rows, in words. The source stands still, and nobody deletes; the rest goes on.

        Raises Wrong.
        """
        with self.people.no_deletes():
            self.sessions.pause()
            try:
                return self._compared()
            finally:
                self.sessions.resume()

    def _compared(self) -> str:
        end = time.monotonic() + _COMPARED_SECONDS
        while True:
            self.check()
            try:
                report = self._verified()
            except VerifyError as error:  # apply is on its way, or starts just now
                if time.monotonic() > end:
                    raise Wrong(str(error)) from error
                continue
            if report.equal and report.complete and report.tables:
                return f"{sum(one.source_rows for one in report.tables)} rows in {len(report.tables)} tables equal"
            if not report.equal or time.monotonic() > end:
                bad = [one for one in report.tables if one.outcome is not Outcome.EQUAL]
                told = "; ".join(f"{one.table} {one.outcome}: {one.reason} {one.differences[:2]}" for one in bad)
                raise Wrong(f"{len(bad)} tables of silver: {told}")

    def on_disk(self) -> Path:
        """The lake's folder; of one in a store a copy, which is brought up to date."""
        folder = self.folder / "lake"
        if not self.lake.is_local:
            mirror(self.lake, folder)
        return folder

    def _verified(self) -> Report:
        """Raises VerifyError when the cut doesn't hold everything yet."""
        server = self._server
        info = ConnectionInfo(host=server.host, port=server.port, user=server.user, password=server.password)
        pipeline = config.load(self.file)
        return verify(pipeline, {"one": info}, str(self.on_disk()), {}, VerifyOptions(timeout_seconds=_VERIFY_SECONDS))

    def told(self) -> str:
        """What everybody did."""
        done = [f"{what}: {count}" for what, count in sorted((self.works.ended + self.people.told).items())]
        return "\n".join([*done, f"released after a commit was overwritten: {self.released}"])

    def read(self) -> int:
        """How many tables some reader reads otherwise than the others, once nobody writes any more."""
        from tests.readers.lake import check, report

        self.works.stop()
        self.people.stop()
        return report(check(self.on_disk(), self._session, copy=self.folder / "copy"))
