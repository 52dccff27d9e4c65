"""The capture task's own behaviour on a real MariaDB: when it ends, waits, stops, fails.

In:  a database on MariaDB, a pipeline file, the sensor called as Airflow's task runner calls it.
Out: bronze, and the exception by which a sensor tells Airflow what to do next.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.servers import FreshDatabase
from tidegate.errors import ConfigError, SourceRefused, SourceUnavailable, Terminal, Transient
from tidegate.local.server import Server
from tidegate.tables import SEGMENTS

pytestmark = [pytest.mark.airflow, pytest.mark.server]

CONN_ID = "sensor_test"


class Setting:
    """A pipeline file with one source (or two names for it), its lake, and sensors of it."""

    def __init__(self, tmp: Path, server: Server, database: str, *, sources: tuple[str, ...] = ("main",)) -> None:
        self.lake = tmp / "lake"
        self.file = tmp / "p.yaml"
        self.server = server
        self.database = database
        ids = [CONN_ID, *(f"{CONN_ID}_{name}" for name in sources[1:])]
        lines = "\n".join(
            f"  {name}: {{conn_id: {of}, flavour: mariadb}}" for name, of in zip(sources, ids, strict=True)
        )
        self.file.write_text(
            f"pipeline: sensor\nlake: {{path: {self.lake}}}\nsources:\n{lines}\n"
            f"tables: {{include: ['{database}.*']}}\n"
            "capture: {idle_seconds: 60, heartbeat_seconds: 0.5, land_seconds: 0.1,"
            f" value_log_path: {tmp / 'value_log'}}}\n"
        )
        server.query(f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY)")

    def sensor(self) -> Any:
        from tidegate_airflow.capture_sensor import CaptureSensor

        return CaptureSensor(task_id="main", pipeline_file=str(self.file), source="main")

    def context(self, *, idle_seconds: int = 60, **params: Any) -> dict[str, Any]:
        """idle_seconds: the pipeline file's, which no run may change."""
        text = re.sub(r"idle_seconds: \d+", f"idle_seconds: {idle_seconds}", self.file.read_text())
        self.file.write_text(text)
        return {"params": params, "run_id": "test__1"}

    def insert(self, key: int) -> None:
        self.server.query(f"INSERT INTO `{self.database}`.t VALUES ({key})")

    def insert_once_captured(self, key: int, then: Callable[[], Any] | None = None) -> None:
        """From a thread: wait for the first heartbeat in bronze, insert, and do something once it is there, too."""

        def work() -> None:
            while not any((self.lake / SEGMENTS.path / "_delta_log").glob("*.json")):
                time.sleep(0.05)
            self.insert(key)
            if then:
                while not self.transactions():
                    time.sleep(0.05)
                then()

        threading.Thread(target=work, daemon=True).start()

    def transactions(self) -> int:
        """Transactions with rows of our table that are in bronze."""
        table = DeltaTable(str(self.lake / SEGMENTS.path)).to_pyarrow_table(columns=["tables", "txn_count"])
        named = f"{self.database}.t"
        return sum(row["txn_count"] for row in table.to_pylist() if named in row["tables"])


@pytest.fixture
def setting(tmp_path: Path, mariadb: Server, fresh_database: FreshDatabase, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setenv(
        f"AIRFLOW_CONN_{CONN_ID.upper()}", f"mysql://{mariadb.user}:{mariadb.password}@{mariadb.host}:{mariadb.port}/"
    )
    return Setting(tmp_path, mariadb, fresh_database(mariadb))


def test_a_run_captures_until_its_time_is_up_and_params_win_over_the_file(setting: Setting) -> None:
    setting.insert_once_captured(1)
    started = time.monotonic()
    setting.sensor().execute(setting.context(run_for_seconds=8, idle_seconds=60))
    assert time.monotonic() - started > 7.5
    assert setting.transactions() == 1


def test_a_single_quiet_source_defers_to_the_trigger_at_the_position_it_has_read_to(setting: Setting) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    from tidegate.mysql.looking.position_asker import PositionAsker
    from tidegate_airflow.source_trigger import SourceAdvancedTrigger

    setting.insert_once_captured(1)
    before = time.time()
    with pytest.raises(TaskDeferred) as raised:
        setting.sensor().execute(setting.context(run_for_seconds=300, idle_seconds=5))
    assert setting.transactions() == 1
    trigger = raised.value.trigger
    assert isinstance(trigger, SourceAdvancedTrigger)
    asker = PositionAsker(_info())
    assert trigger.position == asker.position(), "else the trigger fires at once, for ever"
    asker.close()
    assert before + 300 <= trigger.until <= time.time() + 300
    assert raised.value.method_name == "resume"

    setting.insert(2)
    with pytest.raises(TaskDeferred):
        setting.sensor().resume(
            setting.context(run_for_seconds=300, idle_seconds=5), {"reason": "advanced"}, **raised.value.kwargs
        )
    assert setting.transactions() == 2


def _info() -> Any:
    from tidegate_airflow.connections import connection_info

    return connection_info(CONN_ID)


def test_a_source_that_stayed_quiet_proves_its_resolved_ts_and_ends_the_run(setting: Setting) -> None:
    for _ in range(5):  # on a busy machine a run of so few heartbeats may be over before it is connected
        setting.sensor().resume(setting.context(), {"reason": "waited"}, deadline=time.time())
        if (setting.lake / SEGMENTS.path).exists():
            break
    table = DeltaTable(str(setting.lake / SEGMENTS.path)).to_pyarrow_table(columns=["kind", "resolved_ts"])
    assert table.num_rows >= 1
    assert set(table.column("kind").to_pylist()) == {"heartbeat"}


def test_one_of_several_quiet_sources_goes_on_proving_its_resolved_ts(
    tmp_path: Path, setting: Setting, mariadb: Server, fresh_database: FreshDatabase
) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    two = Setting(folder, mariadb, fresh_database(mariadb), sources=("main", "other"))
    two.sensor().execute(two.context(run_for_seconds=5, idle_seconds=1))  # ends by time, doesn't defer


def test_a_source_whose_commits_wait_for_capture_is_never_left(setting: Setting) -> None:
    text = setting.file.read_text()
    setting.file.write_text(text.replace("flavour: mariadb", "flavour: mariadb, semi_sync: true"))
    setting.sensor().execute(setting.context(run_for_seconds=5, idle_seconds=1))  # ends by time, doesn't defer


def test_sigterm_lands_what_was_read_and_asks_for_another_try(setting: Setting) -> None:
    from tidegate_airflow.capture_sensor import CaptureStopped

    sensor = setting.sensor()
    setting.insert_once_captured(1, then=sensor.on_kill)
    with pytest.raises(CaptureStopped) as raised:
        sensor.execute(setting.context(run_for_seconds=600))
    assert isinstance(raised.value, Transient)
    assert setting.transactions() == 1


def test_a_wrong_password_is_terminal_and_writes_nothing(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    server = setting.server
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONN_ID.upper()}", f"mysql://{server.user}:wrong@{server.host}:{server.port}/")
    with pytest.raises(SourceRefused, match="access denied") as raised:
        setting.sensor().execute(setting.context())
    assert isinstance(raised.value, Terminal)
    assert "wrong" not in str(raised.value)
    assert not (setting.lake / SEGMENTS.path).exists()


def test_a_server_that_is_down_is_transient(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONN_ID.upper()}", "mysql://a:b@127.0.0.1:1/")
    with pytest.raises(SourceUnavailable, match="refused") as raised:
        setting.sensor().execute(setting.context(run_for_seconds=5))
    assert isinstance(raised.value, Transient)


def test_an_undefined_connection_is_one_line_that_says_how_to_define_it(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(f"AIRFLOW_CONN_{CONN_ID.upper()}")
    with pytest.raises(ConfigError, match=f"'{CONN_ID}' is not defined; add it under Admin > Connections"):
        setting.sensor().execute(setting.context())
