"""A pipeline whose sources' events stand in bronze as servers write them; apply's steps up to decode, without Spark.

In:  statements and events.
Out: Log.apply(): an Application, as its steps and publish_cut leave it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer.testing

from spark_jobs.apply_steps.plan_window import next_catch_up, next_window
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.life.following import take_up_selection
from spark_jobs.window.window import Window
from tests.kit.decoding import segment
from tests.kit.spark import no_spark
from tests.support.steps import publish, to_decode
from tests.unit.binlog.encoding import events as e
from tidegate import config, tables
from tidegate.cli.main import app as command_line
from tidegate.commit_ts import compose
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.schema.model.columns import TableVersion
from tidegate.tables import EVERY_TABLE, SegmentFlag, State

CREATES = [f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in ("shop.a", "shop.b", "crm.c")]


class Log:
    """A pipeline of two sources, `one` and `two`, and what they send: every statement or event a transaction."""

    def __init__(self, folder: Path, server: str = "11.4.5-MariaDB-log", effects: str = "named") -> None:
        self.server = server
        self.server_uuid = ""  # of the source `one`
        self.lake = LakeFiles(str(folder / "lake"))
        self.file = folder / "road.yaml"
        self.file.write_text(
            f"pipeline: road\nlake: {{path: {self.lake.root}}}\n"
            "sources: {one: {conn_id: c, flavour: mariadb}, two: {conn_id: d, flavour: mariadb}}\n"
            "tables: {include: ['shop.*', 'crm.*', 'two.*']}\napply: {writer: merge, driver_decode_bytes: 1000000}\n"
            f"ddl: {{statement_effects: {effects}}}\n"
        )
        self._ends = {"one": (0, 4, 0), "two": (0, 4, 0)}
        defaults = (1, 0, "b.000001", 4, "defaults", "", (), (), "utf8mb4")
        rows = [TableVersion(source, "", "", *defaults).to_row() for source in self._ends]
        control.append(self.lake, tables.SCHEMA_HISTORY, rows)
        for sql in CREATES:
            self.send("one", sql)
        self.send("two", "CREATE TABLE two.d (id INT PRIMARY KEY)")

    def send(
        self,
        source: str,
        sql: str | bytes,
        names: tuple[str, ...] = (EVERY_TABLE,),
        *,
        event: bytes = b"",
        damage: int = 0,
    ) -> None:
        """A QUERY event with this text, or another event in a transaction, in a segment of its own."""
        seq, position, before = self._ends[source]
        number = sum(end[0] for end in self._ends.values()) + 1
        seconds = 1000 + number
        payload = e.mariadb_gtid(number, standalone=not event, seconds=seconds)
        payload += event + e.xid() if event else e.query(sql, "shop", seconds=seconds)
        made = segment(e.format_description(version=self.server), payload, start_pos=position, prev_commit_ts=before)
        ts = compose(seconds * 1000)
        made = replace(
            made, source=source, seq=seq + 1, file="b.000001", tables=names, flags=SegmentFlag.HAS_DDL,
            min_commit_ts=ts, max_commit_ts=ts, resolved_ts=ts, payload_crc32c=made.payload_crc32c ^ damage,
            server_uuid=self.server_uuid if source == "one" else "",
        )  # fmt: skip
        Bronze(self.lake, source).append([made])
        self._ends[source] = (seq + 1, position + len(payload), ts)

    def application(self) -> Application:
        return Application(BackgroundSession(no_spark), config.load(self.file), self.lake, BronzeIndex(self.lake))

    def started(self) -> Application:
        """A fresh application that knows what earlier ones left and what the pipeline file keeps."""
        app = self.application()
        app.load()
        take_up_selection(app)
        return app

    def first_window(self) -> tuple[Application, Window]:
        """A fresh application and its first window above the cut, before any step."""
        app = self.started()
        app.index.refresh(0)
        window = next_window(app)
        assert window is not None
        return app, window

    def apply(self) -> Application:
        """A fresh application, until nothing is left to do."""
        app = self.started()
        while True:
            app.index.refresh(app.cut_ts)
            window = next_catch_up(app, 0) or next_window(app)
            if window is None:
                return app
            publish(app, to_decode(app, window))

    def keeps(self, include: str, exclude: str = "") -> None:
        """Rewrite the pipeline file's patterns."""
        head, _, tail = self.file.read_text().partition("tables: ")
        self.file.write_text(
            f"{head}tables: {{include: [{include}], exclude: [{exclude}]}}\n{tail.partition(chr(10))[2]}"
        )

    def level(self) -> None:
        """Both sources have come as far: the cut covers all that was sent."""
        for source in sorted(self._ends, key=lambda name: self._ends[name][2]):
            self.send(source, "FLUSH STATUS", ())
        self.send("one", "FLUSH STATUS", ())

    def run(self, *arguments: str) -> str:
        done = typer.testing.CliRunner().invoke(command_line, [*arguments])
        assert done.exit_code == 0, done.output
        return done.output


def held(app: Application) -> set[str]:
    return {name for name, state in app.states.items() if state.state is State.HELD}


ONE = {"shop.a", "shop.b", "crm.c"}  # of the source `one`
