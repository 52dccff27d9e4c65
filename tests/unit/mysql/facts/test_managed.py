"""Servers that a cloud runs: how they are known, and what their owners are told to type."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from tests.unit.mysql.facts.test_server_facts import WANTED, facts
from tidegate.config import Flavour
from tidegate.errors import SourceRefused
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.demands.paste import to_run
from tidegate.mysql.demands.preflight import preflight
from tidegate.mysql.facts.managed import Managed, Service, service_of
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.history.retention import purge_rules
from tidegate.pump.cluster import Clock, History
from tidegate.pump.examination import sql_lines

MYSQL = replace(WANTED, flavour=Flavour.MYSQL)
GOOD = {"binlog_row_metadata": "FULL", "binlog_row_image": "FULL", "gtid_mode": "ON", "enforce_gtid_consistency": "ON"}


def at(service: Service, hours: int | None = None, **variables: str) -> SourceFacts:
    """A MySQL with good settings but these."""
    managed = Managed(service, hours)
    return facts(also=GOOD | variables, flavour=Flavour.MYSQL, version="8.0.40", managed=managed)


@pytest.mark.parametrize(
    ("variables", "has_table", "service"),
    [
        ({"version": "11.4.5-MariaDB-log", "basedir": "/usr"}, False, Service.OWN),
        ({"version": "8.0.40", "hostname": "rds.amazonaws.com"}, False, Service.OWN),
        ({"version": "8.0.40", "basedir": "/rdsdbbin/mysql-8.0.40.R3/"}, False, Service.RDS),
        ({"version": "10.11.9-MariaDB-log", "basedir": "/usr"}, True, Service.RDS),
        ({"version": "8.0.39", "aurora_version": "3.08.0", "basedir": "/rdsdbbin/oscar-8.0/"}, True, Service.AURORA),
        ({"version": "8.0.41-google"}, False, Service.CLOUD_SQL),
        ({"version": "8.4.4", "cloudsql_iam_authentication": "OFF"}, False, Service.CLOUD_SQL),
        ({"version": "8.0.42-azure"}, False, Service.AZURE),
        ({"version": "8.0.40", "aad_auth_only": "OFF"}, False, Service.AZURE),
        ({"version": "8.0.11-TiDB-v8.5.1"}, False, Service.TIDB),
    ],
)
def test_a_service_is_known_by_what_its_server_says(
    variables: dict[str, str], has_table: bool, service: Service
) -> None:
    assert service_of(variables, has_rds_table=has_table) is service


def test_at_amazon_the_parameter_group_is_named_and_the_hours_that_binlog_is_kept() -> None:
    found = at(Service.RDS, 0, binlog_format="MIXED", gtid_mode="OFF")
    with pytest.raises(SourceRefused, match=r"binlog_format is MIXED.*aws rds modify-db-parameter-group .*=ROW") as why:
        preflight(found, MYSQL)
    assert "SET GLOBAL" not in str(why.value)
    what = to_run(found, "'a'@'%'", writes_marks=True)
    group, reboot = what.shell
    assert "--db-parameter-group-name GROUP" in group
    assert "ParameterName=gtid-mode,ParameterValue=ON," in group
    assert reboot == "aws rds reboot-db-instance --db-instance-identifier INSTANCE"
    assert what.sql == ("CALL mysql.rds_set_configuration('binlog retention hours', 168);",)
    assert what.page == "docs/how-to/rds.md"
    (caution,) = preflight(at(Service.RDS, 0), MYSQL)
    assert "`CALL mysql.rds_set_configuration('binlog retention hours', 168)`" in caution
    (caution,) = preflight(at(Service.AURORA), MYSQL)
    assert "GRANT SELECT ON mysql.rds_configuration" in caution
    assert preflight(at(Service.RDS, 24), MYSQL) == []
    assert not to_run(at(Service.RDS, 24), "'a'@'%'", writes_marks=True)


def test_an_aurora_without_a_binlog_gets_a_format_in_its_clusters_group() -> None:
    found = at(Service.AURORA, 24, log_bin="OFF", binlog_format="ROW")
    with pytest.raises(SourceRefused, match=r"log_bin is OFF.*modify-db-cluster-parameter-group .*binlog_format"):
        preflight(found, MYSQL)
    group, reboot = to_run(found, "'a'@'%'", writes_marks=True).shell
    assert group.count("ParameterName=binlog_format,ParameterValue=ROW") == 1
    assert reboot.endswith(" WRITER")


def test_an_rds_without_backups_writes_no_binlog() -> None:
    what = to_run(at(Service.RDS, 24, log_bin="OFF"), "'a'@'%'", writes_marks=True)
    assert what.shell[0].startswith("aws rds modify-db-instance ")
    assert "--backup-retention-period 1" in what.shell[0]


def test_googles_flags_are_one_command_as_each_replaces_the_last() -> None:
    (flags,) = to_run(
        at(Service.CLOUD_SQL, binlog_row_image="MINIMAL", binlog_row_metadata="MINIMAL"), "", writes_marks=True
    ).shell
    assert "--database-flags=binlog_row_metadata=FULL,binlog_row_image=FULL" in flags
    with pytest.raises(SourceRefused, match=r"gcloud sql instances patch INSTANCE .*--enable-bin-log"):
        preflight(at(Service.CLOUD_SQL, log_bin="OFF"), MYSQL)


def test_azure_takes_gtid_mode_in_steps_and_is_told_to_keep_its_log() -> None:
    found = at(Service.AZURE, binlog_expire_logs_seconds="0", gtid_mode="OFF", enforce_gtid_consistency="OFF")
    lines = to_run(found, "'a'@'%'", writes_marks=True).shell
    values = [line.split(" --name ")[1] for line in lines]
    assert values == [
        "enforce_gtid_consistency --value ON",
        "gtid_mode --value OFF_PERMISSIVE",
        "gtid_mode --value ON_PERMISSIVE",
        "gtid_mode --value ON",
        "binlog_expire_logs_seconds --value 604800",
    ]
    (caution,) = preflight(at(Service.AZURE, binlog_expire_logs_seconds="0"), MYSQL)
    assert "changes get lost; `az mysql flexible-server parameter set" in caution
    assert preflight(at(Service.AZURE, binlog_expire_logs_seconds="86400"), MYSQL) == []


@pytest.mark.parametrize("service", [Service.RDS, Service.AURORA, Service.CLOUD_SQL, Service.AZURE])
def test_a_shell_takes_each_line_and_a_pipeline_by_position_needs_no_gtids(service: Service) -> None:
    found = at(service, 0, log_bin="OFF", binlog_format="MIXED", binlog_row_image="MINIMAL", gtid_mode="OFF")
    lines = to_run(found, "'a'@'%'", writes_marks=True).shell
    assert all(shlex.split(line, comments=True)[0] in ("aws", "gcloud", "az") for line in lines)
    assert any("gtid" in line for line in lines)
    assert not any("gtid" in line for line in to_run(found, "", writes_marks=True, gtids=False).shell)


def test_a_tidb_is_refused_with_one_word_of_what_to_do() -> None:
    found = facts(version="8.0.11-TiDB-v8.5.1", flavour=Flavour.MYSQL, managed=Managed(Service.TIDB))
    with pytest.raises(SourceRefused, match=r"TiDB .*flavour: ticdc.*flavour: tidb"):
        preflight(found, MYSQL)


def test_a_tidb_account_without_its_history_is_told_what_to_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise SourceRefused("SELECT command denied to user 'tg'", where="tidb:4000", remedy="grant it")

    monkeypatch.setattr(Clock, "tso", lambda _: 1 << 40)
    monkeypatch.setattr(History, "jobs_at", refuse)
    lines = sql_lines("main", ConnectionInfo("tidb", 4000, "tg", "p"))
    next(lines)
    with pytest.raises(SourceRefused, match=r"GRANT SELECT ON mysql\.tidb_ddl_history TO 'tg'@'%'; GRANT"):
        next(lines)


def test_amazons_hours_alone_say_when_a_file_goes() -> None:
    own = {"binlog_expire_logs_seconds": "2592000"}
    assert purge_rules(own, Managed(Service.RDS, 24)).expire_seconds == 86400
    assert purge_rules(own, Managed(Service.RDS, 0)).expire_seconds == 0
    assert purge_rules(own, Managed(Service.CLOUD_SQL)).expire_seconds == 2592000
