"""A real server's own retention, as capture and status tell it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.support.captures import capture_run, info_of
from tests.support.servers import FreshDatabase
from tidegate.capture import status_file
from tidegate.capture.value_log.folder import value_log_folder
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import connect
from tidegate.mysql.facts.server_facts import read_binary_logs
from tidegate.mysql.history.retention import RetentionWatch, read_rules

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

HOURS = 10


def test_what_the_server_would_purge_within_the_alert_is_said_and_kept_for_status(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = fresh_database(any_server)
    ((before,),) = any_server.query("SELECT @@GLOBAL.binlog_expire_logs_seconds")
    any_server.query(f"SET GLOBAL binlog_expire_logs_seconds = {HOURS * 3600}")
    try:
        run = capture_run(any_server, tmp_path / "lake", start="now")
        any_server.query(f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY)")
        with caplog.at_level(logging.WARNING):
            run.run(60, idle_seconds=2)
    finally:
        any_server.query(f"SET GLOBAL binlog_expire_logs_seconds = {before}")
    found = status_file.read(value_log_folder(run.pipeline, "one", run.state_dir))
    assert found is not None
    assert found.retention is not None
    assert found.retention.rule == "age"
    assert found.retention.seconds_left == pytest.approx(HOURS * 3600, abs=600)
    assert found.retention.oldest_file == any_server.query("SHOW BINARY LOGS")[0][0]
    warnings = [record.getMessage() for record in caplog.records if "may purge" in record.getMessage()]
    assert len(warnings) == 1
    assert "binlog_expire_logs_seconds" in warnings[0]


def test_hours_of_amazons_are_a_real_servers_forecast_and_a_change_counts(any_server: Server) -> None:
    """The table as RDS has it, on a server of our own."""
    watch = RetentionWatch("db", 0)
    any_server.query("CREATE TABLE mysql.rds_configuration (name VARCHAR(100), value VARCHAR(100))")
    try:
        any_server.query("INSERT INTO mysql.rds_configuration VALUES ('binlog retention hours', NULL)")
        with connect(info_of(any_server)) as connection, connection.cursor() as cursor:
            for hours, rule, seconds in (("NULL", "unkept", 0.0), ("24", "hours", 23 * 3600.0)):
                any_server.query(f"UPDATE mysql.rds_configuration SET value = {hours}")
                logs = read_binary_logs(cursor)
                known = watch.look(read_rules(cursor), logs, logs[-1][0], 3600)
                assert (known.rule, known.seconds_left) == (rule, seconds)
    finally:
        any_server.query("DROP TABLE mysql.rds_configuration")
