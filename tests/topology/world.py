"""The whole topology of docker/compose.yaml on one machine, without containers, with a pipeline in it.

In:  an image's folder (docker/install.sh), a folder for everything else.
Out: Topology, a context manager; kill(name): that part dies and comes back, work goes on, and silver becomes equal.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.kit import services as kit
from tests.kit.part import Part
from tests.kit.shop import DATABASE, Shop
from tests.support.own_server import own_server
from tests.support.whole import Whole
from tests.topology import services
from tests.topology.airflow import Parts
from tidegate import config
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

PIPELINE: Final = "topology"
_EQUAL_SECONDS: Final = 600.0
_DOWN_SECONDS: Final = 5.0
_WORK_SECONDS: Final = 4.0
# Some 40 MB of binlog: above what the driver of a cluster decodes itself (apply.driver_decode_bytes).
_BULK_ROWS: Final = 250_000
_DAGS: Final = ("capture", "apply", "snapshot", "maintain")
SOURCE: Final = "source"

_FILE: Final = """
pipeline: {pipeline}
lake: {{path: 's3://{bucket}/{pipeline}', conn_id: the_lake}}
sources:
  main: {{conn_id: source_db, flavour: mariadb}}
tables: {{include: ["{database}.*"]}}
capture: {{run_for_seconds: 120, land_seconds: 0.5, heartbeat_seconds: 1, value_log_path: {value_log}}}
apply:
  mode: micro_batch
  run_for_seconds: 120
  idle_seconds: 30
  poll_seconds: 0.5
  driver_memory: 768m
  spark_conn_id: spark_cluster
  spark_conf:
    spark.executor.cores: "1"
    spark.executor.memory: 512m
    spark.driver.host: 127.0.0.1
    spark.driver.bindAddress: 127.0.0.1
"""


class UnequalError(Exception):
    """Silver didn't become equal; the text says which tables, and which are held."""


class Topology(Whole):
    """parts: by name, in the order of their start."""

    def __init__(self, image: Path, folder: Path) -> None:
        super().__init__()
        self._image, self._folder = image, folder
        self.parts: dict[str, Part] = {}

    def _begin(self) -> None:
        self._source = self.stack.enter_context(own_server("mariadb", self._folder / "source"))
        database, login = services.postgres(self._folder, secrets.token_hex(12))
        broker, address = services.redis(self._folder, secrets.token_hex(12))
        store, options = kit.store(self._folder, secrets.token_hex(12))
        source = f"mysql://{self._source.user}:{self._source.password}@127.0.0.1:{self._source.port}/"
        cluster = kit.spark(self._image / "venv" / "bin", self._image, self._folder)
        connections = {
            "source_db": source,
            "the_lake": json.dumps({"conn_type": "generic", "extra": dict(options)}),
            "spark_cluster": json.dumps(
                {"conn_type": "spark", "host": f"spark://{cluster.host}", "port": cluster.port}
            ),
        }
        pipelines = self._folder / "pipelines"
        pipelines.mkdir()
        file = pipelines / f"{PIPELINE}.yaml"
        file.write_text(
            _FILE.format(pipeline=PIPELINE, bucket=kit.BUCKET, database=DATABASE, value_log=self._folder / "value_log")
        )
        self.airflow = Parts(self._folder, self._image, pipelines, connections, database=login, broker=address)
        self.shop = Shop(PIPELINE, self._source, f"s3://{kit.BUCKET}/{PIPELINE}", file, options)
        self._options, self._known = options, {"main": ConnectionInfo.from_airflow_text("source_db", source)}
        self.shop.create()
        for part in (database, broker, store, *cluster.parts):
            self._start(part)
        self.airflow.migrate()
        for part in self.airflow.parts:
            self._start(part)
        for dag in _DAGS:
            self.airflow.unpause(f"{PIPELINE}__{dag}")

    def _start(self, part: Part) -> None:
        self.parts[part.name] = part
        self.stack.callback(part.stop)
        part.start()

    @contextmanager
    def down(self, name: str) -> Iterator[None]:
        """The part is dead meanwhile, and starts again at the end. The source's server recovers from its crash."""
        if name == SOURCE:
            self._source.kill()
            yield
            self._source.start()
        else:
            self.parts[name].kill()
            yield
            self.parts[name].start()

    def first(self) -> float:
        """Work, with DDL; then the seconds until silver is equal for the first time. Raises UnequalError, PartError."""
        self.shop.work(_WORK_SECONDS)
        return self.wait_equal()

    def on_executors(self) -> int:
        """A transaction that is too large for the driver alone; then the tasks that Spark's workers finished."""
        rows = f"SELECT seq AS id, REPEAT(MD5(seq), 4) AS v FROM seq_1_to_{_BULK_ROWS}"
        self._source.query(f"CREATE TABLE bulk (id INT PRIMARY KEY, v VARCHAR(200)) AS {rows}", database=DATABASE)
        end = time.monotonic() + _EQUAL_SECONDS
        while self.shop.silver_count("bulk") != _BULK_ROWS:
            if time.monotonic() > end:
                raise UnequalError(f"bulk has {self.shop.silver_count('bulk')} rows in silver")
            time.sleep(1.0)
        logs = (path.read_text(errors="replace") for path in self._folder.glob("work-*/*/*/stderr"))
        return sum(text.count("Finished task") for text in logs)

    def kill(self, name: str) -> float:
        """Work before, meanwhile and after; then the seconds until silver is equal. Raises UnequalError, PartError."""
        self.shop.work(_WORK_SECONDS)
        with self.down(name):
            if name != SOURCE:
                self.shop.work(_DOWN_SECONDS)
        self.shop.work(_WORK_SECONDS)
        return self.wait_equal()

    def wait_equal(self) -> float:
        """Seconds until silver equals the source's own SELECT. Raises UnequalError, PartError."""
        began = time.monotonic()
        while differences := self.shop.differences():
            for part in self.airflow.parts:
                part.revive()  # Airflow's scheduler ends when its database does
            if time.monotonic() - began > _EQUAL_SECONDS:
                raise UnequalError(f"{differences}; states: {self.shop.table_states()}")
            time.sleep(1.0)
        return time.monotonic() - began

    def verify(self) -> bool:
        """The result of tidegate's own comparison of every row."""
        report = verify(
            config.load(self.shop.file),
            self._known,
            self.shop.lake,
            options=VerifyOptions(timeout_seconds=90),
            storage_options=dict(self._options),
        )
        return report.equal
