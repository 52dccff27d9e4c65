"""What a source's settings must be, and what is only a caution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidegate.config import DumpMode, Flavour, Tables
from tidegate.errors import SourceRefused
from tidegate.mysql.demands.paste import statements
from tidegate.mysql.demands.preflight import SourceDemands, preflight
from tidegate.mysql.facts.server_facts import SERVER_IDS, Replication, SourceFacts, server_of
from tidegate.mysql.facts.unlogged_columns import needed_to_compute
from tidegate.schema.model.server import ServerVersion

WANTED = SourceDemands(Flavour.MARIADB, DumpMode.GTID, Tables(include=("shop.*", r"crm_\d+.*"), exclude=("crm_9.*",)))
DATABASES = ("crm_1", "crm_9", "information_schema", "mysql", "other", "shop")


def facts(*, also: dict[str, str] | None = None, **changes: Any) -> SourceFacts:
    """also: variables beside those of a good server."""
    good = {"log_bin": "ON", "binlog_format": "ROW", "log_slave_updates": "OFF", "gtid_slave_pos": ""}
    found = SourceFacts(
        where="db:3306",
        flavour=Flavour.MARIADB,
        version="11.4.5-MariaDB",
        server_id=1,
        server_uuid="",
        variables=good | (also or {}),
        grants=("GRANT ALL PRIVILEGES ON *.* TO `a`@`%`",),
        position=None,
        gtid_executed="",
        gtid_purged="",
        binary_logs=(),
        databases=DATABASES,
    )
    return replace(found, **changes)


@pytest.mark.parametrize(("image", "cautioned"), [("FULL", 0), ("FULL_NODUP", 0), ("NOBLOB", 1), ("MINIMAL", 1)])
def test_a_row_image_that_may_stop_tables_is_a_caution_of_one_line(image: str, cautioned: int) -> None:
    found = preflight(facts(also={"binlog_row_image": image}), WANTED)
    assert len(found) == cautioned
    assert all(image in line and "db:3306" in line and "\n" not in line for line in found)


def test_semi_sync_needs_the_servers_plugin_and_warns_while_it_waits_for_nobody() -> None:
    wanted = replace(WANTED, semi_sync=True)
    with pytest.raises(SourceRefused, match="INSTALL PLUGIN"):
        preflight(facts(), wanted)
    for name in ("rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"):
        assert "waits for nobody" in preflight(facts(also={name: "OFF"}), wanted)[0]
        timeout = {name: "ON", name.replace("enabled", "timeout"): "10000"}
        (caution,) = preflight(facts(also=timeout), wanted)
        assert "commits wait up to 10 s" in caution
        assert preflight(facts(also=timeout, semi_sync_replicas=1), wanted) == []
        assert preflight(facts(also=timeout | {name.replace("enabled", "timeout"): "2000"}), wanted) == []


@pytest.mark.parametrize(
    "replica",
    [
        {"replications": (Replication("primary:3306", "", applies=True),)},
        {"also": {"wsrep_on": "ON", "wsrep_provider": "/usr/lib/galera/libgalera_smm.so"}},
        {"also": {"group_replication_group_name": "aaaaaaaa-0000-0000-0000-000000000000"}},
    ],
)
@pytest.mark.parametrize("name", ["log_slave_updates", "log_replica_updates"])
def test_a_replica_that_logs_nothing_of_its_primary_is_refused(replica: dict[str, Any], name: str) -> None:
    assert preflight(facts(), WANTED) == [], "a primary may leave it off"
    found = facts(**replica)
    found.variables.pop("log_slave_updates")
    found.variables[name] = "OFF"
    with pytest.raises(SourceRefused, match=rf"db:3306: {name} is OFF .*--log-"):
        preflight(found, WANTED)
    found.variables[name] = "ON"
    assert preflight(found, WANTED) == []


def test_what_a_promoted_server_replicated_once_is_no_reason_where_the_account_sees_that_it_is_over() -> None:
    once = facts(also={"gtid_slave_pos": "0-1-5000"})
    assert preflight(once, WANTED) == []
    with pytest.raises(SourceRefused, match="GRANT REPLICA MONITOR"):
        preflight(replace(once, hides_replications=True), WANTED)
    assert preflight(facts(hides_replications=True), WANTED) == []


@pytest.mark.parametrize(
    ("do", "ignore", "refused"),
    [
        (("shop",), (), "crm_1"),
        (("shop", "crm_1"), (), ""),
        ((), ("crm_1", "other"), "crm_1"),
        ((), ("crm_9", "other", "mysql"), ""),
    ],
)
def test_a_kept_database_that_is_left_out_of_the_binlog_is_refused(
    do: tuple[str, ...], ignore: tuple[str, ...], refused: str
) -> None:
    found = facts(binlog_do_dbs=do, binlog_ignore_dbs=ignore)
    if refused:
        with pytest.raises(SourceRefused, match=rf"binlog_{'do' if do else 'ignore'}_db leaves {refused} out"):
            preflight(found, WANTED)
    else:
        (caution,) = preflight(found, WANTED)
        assert "DDL of kept tables" in caution


def test_names_in_capitals_are_refused_where_the_server_has_none() -> None:
    folding = facts(also={"lower_case_table_names": "1"})
    assert preflight(folding, replace(WANTED, tables=Tables(include=(r"shop.\D+",)))) == [], r"\D is no capital"
    with pytest.raises(SourceRefused, match=r"'shop\.Orders' has capitals"):
        preflight(folding, replace(WANTED, tables=Tables(include=("*.*",), exclude=("shop.Orders",))))
    with pytest.raises(SourceRefused, match="lower_case_table_names is 2"):
        preflight(facts(also={"lower_case_table_names": "2"}), WANTED)


def test_a_node_of_a_cluster_without_a_server_uid_is_told_by_its_name_to_whoever_asks() -> None:
    """Else a snapshot's reader, and a verification, take the server that is captured for another one."""
    node = {"server_id": "1", "wsrep_on": "ON", "wsrep_node_name": "db-2"}
    assert server_of(node) == (1, "db-2")
    assert server_of(node | {"server_uid": "u"}) == (1, "u")
    assert server_of(node | {"wsrep_on": "OFF"}) == (1, "")
    assert all(f"'{name}'" in SERVER_IDS for name in (*node, "server_uid", "server_uuid"))


@pytest.mark.parametrize(
    ("setting", "items", "refused"),
    [
        ("replicate_do_db", ("shop",), True),
        ("replicate_do_db", ("shop", "crm_1", "more"), False),
        ("replicate_ignore_db", ("mysql", "other"), False),
        ("replicate_ignore_db", ("shop",), True),
        ("replicate_ignore_table", ("mysql.rds_monitor", "other.t"), False),
        ("replicate_ignore_table", ("shop.orders",), True),
        ("replicate_wild_ignore_table", ("mysql.%", r"oth_r.%"), False),
        ("replicate_wild_ignore_table", (r"crm\_%.%",), True),
        ("replicate_wild_do_table", ("shop.%", r"crm\_%.%"), False),
        ("replicate_wild_do_table", ("shop.o%", r"crm\_%.%"), True),
        ("replicate_do_table", ("shop.orders",), True),
        ("replicate_rewrite_db", ("(a,shop)",), True),
    ],
)
def test_a_replica_that_leaves_out_what_is_kept_is_refused(
    setting: str, items: tuple[str, ...], *, refused: bool
) -> None:
    replication = Replication("primary:3306", "", applies=True, filters=((setting, items),))
    found = facts(replications=(replication,), also={"log_slave_updates": "ON"})
    if refused:
        with pytest.raises(SourceRefused, match=f"from primary:3306 without all .*{setting.replace('_', '-')}"):
            preflight(found, WANTED)
    else:
        (caution,) = preflight(found, WANTED)
        assert "with filters" in caution


@pytest.mark.parametrize(
    ("filters", "variables", "said"),
    [
        ((("replicate_ignore_domain_ids", ("3", "4")),), {}, "replicate_ignore_domain_ids: 3, 4"),
        ((("replicate_ignore_server_ids", ("9",)),), {}, "replicate_ignore_server_ids: 9"),
        ((), {"slave_skip_errors": "1062,1032"}, "slave_skip_errors: 1062,1032"),
        ((), {"replicate_events_marked_for_skip": "FILTER_ON_MASTER"}, "marked_for_skip: FILTER_ON_MASTER"),
        ((), {"replica_skip_errors": "OFF", "replicate_events_marked_for_skip": "REPLICATE"}, ""),
    ],
)
def test_a_replica_that_skips_events_is_named(
    filters: tuple[tuple[str, tuple[str, ...]], ...], variables: dict[str, str], said: str
) -> None:
    """It has the primary's GTIDs, and not all of its rows: nothing else shows it."""
    replication = Replication("primary:3306", "", applies=True, filters=filters)
    cautions = preflight(facts(replications=(replication,), also={"log_slave_updates": "ON"} | variables), WANTED)
    assert [said in caution for caution in cautions] == [True] * bool(said)
    assert preflight(facts(also=variables), WANTED) == [], "a primary skips nothing"


def test_a_replica_of_rds_is_read_though_all_databases_are_kept() -> None:
    """RDS leaves out tables of its own in the server's own database."""
    own = ("mysql.plugin", "mysql.rds_monitor", "mysql.rds_sysinfo", "innodb_memcache.config_options")
    replication = Replication("primary:3306", "", applies=True, filters=(("replicate_ignore_table", own),))
    found = facts(replications=(replication,), also={"log_slave_updates": "ON"})
    wanted = replace(WANTED, tables=Tables(include=("*.*",)))
    assert any("with filters" in caution for caution in preflight(found, wanted))


def test_a_log_in_innodb_is_refused_by_name_and_fragments_are_a_caution() -> None:
    with pytest.raises(SourceRefused, match=r"binlog_storage_engine is innodb.*replica that logs into files"):
        preflight(facts(also={"binlog_storage_engine": "innodb"}), WANTED)
    assert preflight(facts(also={"binlog_storage_engine": ""}), WANTED) == []
    (caution,) = preflight(facts(also={"binlog_row_event_fragment_threshold": "65536"}), WANTED)
    assert "binlog_row_event_fragment_threshold is 65536" in caution
    assert preflight(facts(also={"binlog_row_event_fragment_threshold": "1073741824"}), WANTED) == []


def test_a_mode_of_the_server_that_changes_virtual_columns_is_a_caution() -> None:
    usual = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"
    assert preflight(facts(also={"sql_mode": usual}), WANTED) == []
    (caution,) = preflight(facts(also={"sql_mode": f"{usual},PAD_CHAR_TO_FULL_LENGTH"}), WANTED)
    assert "sql_mode has PAD_CHAR_TO_FULL_LENGTH" in caution


@pytest.mark.parametrize("version", ["9.7.4", "26.7.0", "26.10.0-commercial", "10.0.1"])
def test_versions_are_numbers_however_many_digits_they_have(version: str) -> None:
    found = facts(version=version, flavour=Flavour.MYSQL, variables={"version": version})
    assert found.version_number >= (9, 7, 0)
    assert found.version_number < (27,)
    assert ServerVersion.of(version).number >= 90700


@pytest.mark.parametrize(
    ("version", "grant", "is_asked_for"),
    [
        ("11.8.9-MariaDB", "GRANT SELECT ON *.* TO `a`@`%`", True),
        ("11.8.9-MariaDB", "GRANT CREATE TEMPORARY TABLES ON `other`.* TO `a`@`%`", True),
        ("11.8.9-MariaDB", "GRANT CREATE, CREATE TEMPORARY TABLES ON `tidegate`.* TO `a`@`%`", False),
        ("11.8.9-MariaDB", "GRANT ALL PRIVILEGES ON *.* TO `a`@`%`", False),
        ("11.4.5-MariaDB", "GRANT SELECT ON *.* TO `a`@`%`", False),
        ("9.7.4", "GRANT SELECT ON *.* TO `a`@`%`", False),
    ],
)
def test_rows_are_asked_for_in_a_temporary_table_where_the_log_lacks_values(
    version: str, grant: str, is_asked_for: bool
) -> None:
    found = facts(version=version, grants=(grant,))
    pasted = "GRANT CREATE TEMPORARY TABLES ON tidegate.* TO 'a'@'%';  -- for generated columns"
    assert (pasted in statements(found, "'a'@'%'", writes_marks=True)) is is_asked_for
    assert bool(needed_to_compute(found)) is is_asked_for


@pytest.mark.parametrize(
    ("grants", "is_held"),
    [
        (["SELECT, CREATE TEMPORARY TABLES ON `tide%`.* TO `a`@`%` WITH GRANT OPTION"], True),
        (["ALL PRIVILEGES ON `%`.* TO `a`@`%`"], True),
        (["CREATE TEMPORARY TABLES ON `tidegat_`.* TO `a`@`%`"], True),
        (["CREATE TEMPORARY TABLES ON `tidegat\\_`.* TO `a`@`%`"], False),
        (["CREATE TEMPORARY TABLES ON `Tidegate`.* TO `a`@`%`"], False),
        (["SELECT ON `tidegate`.* TO `a`@`%`", "CREATE TEMPORARY TABLES ON `tide%`.* TO `a`@`%`"], False),
        (["SELECT ON `tidegate`.* TO `a`@`%`", "CREATE TEMPORARY TABLES ON `tide%`.* TO `role`"], True),
    ],
)
def test_the_closest_grant_of_a_database_counts(grants: list[str], is_held: bool) -> None:
    """MariaDB denies and allows it so; SHOW GRANTS has this order."""
    held = facts(grants=("GRANT USAGE ON *.* TO `a`@`%`", *(f"GRANT {grant}" for grant in grants)))
    assert held.holds("CREATE TEMPORARY TABLES", "tidegate") is is_held
    assert not held.holds("CREATE TEMPORARY TABLES")


def test_a_longer_privilege_is_another_one() -> None:
    admin = "GRANT SELECT, BINLOG MONITOR, REPLICATION SLAVE ADMIN ON *.* TO `a`@`%`"
    with pytest.raises(SourceRefused, match="privilege REPLICATION SLAVE is missing"):
        preflight(facts(grants=(admin,)), WANTED)


def test_a_missing_privilege_is_said_as_a_statement_to_paste() -> None:
    identified = "GRANT SELECT ON *.* TO `o'neil`@`10.%` IDENTIFIED BY PASSWORD '*0'"
    with pytest.raises(SourceRefused, match=r"GRANT REPLICATION SLAVE ON \*\.\* TO `o'neil`@`10\.%`"):
        preflight(facts(grants=(identified,)), WANTED)
