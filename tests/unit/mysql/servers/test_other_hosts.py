"""What `tidegate check` says of a host that isn't read: of a pair of facts, whether the one could take over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.mysql.facts.test_server_facts import facts
from tidegate.config import DumpMode, Flavour, Tables
from tidegate.mysql.demands.preflight import Level, SourceDemands
from tidegate.mysql.facts.server_facts import Replication, SourceFacts
from tidegate.mysql.servers.other_hosts import about, takes_over

U, V, W = (f"{letter * 8}-0000-0000-0000-000000000000" for letter in "abc")
REPLICATES = (Replication("db:3306", "", applies=True),)


def mysql(executed: str, number: int = 1, **changes: Any) -> SourceFacts:
    also = {"gtid_mode": "ON", "log_replica_updates": "ON"} | changes.pop("also", {})
    return facts(flavour=Flavour.MYSQL, version="9.1.0", server_id=number, gtid_executed=executed, also=also, **changes)


def mariadb(executed: str, state: str, number: int = 1, **changes: Any) -> SourceFacts:
    return facts(
        server_id=number,
        gtid_executed=executed,
        also={"gtid_binlog_state": state, "log_slave_updates": "ON"},
        **changes,
    )


def said(main: SourceFacts, other: SourceFacts) -> list[tuple[bool, str]]:
    """(whether it wants care, what)."""
    wanted = SourceDemands(main.flavour, DumpMode.GTID, Tables(include=("shop.*",)))
    return [(level is Level.CAUTION, text) for level, text in about(main, other, wanted)]


def test_a_replica_that_has_it_all_needs_no_care() -> None:
    for main, other in (
        (mysql(f"{U}:1-9:blue:1-2"), mysql(f"{U}:1-9:blue:1-2", 2, replications=REPLICATES)),
        (mariadb("0-1-9,7-1-2", "0-1-9,7-1-2"), mariadb("0-1-9,7-1-2", "0-1-9,7-1-2", 2, replications=REPLICATES)),
    ):
        assert said(main, other) == [(False, "has what the host that is read has, and replicates")]


@pytest.mark.parametrize("applies", [True, False])
def test_one_that_is_behind_is_waited_for_only_if_it_replicates(applies: bool) -> None:
    replications = REPLICATES if applies else ()
    for main, other, lacks in (
        (mysql(f"{U}:1-9"), mysql(f"{U}:1-7", 2, replications=replications), f"{U}:8-9"),
        (mysql(f"{U}:1-9:blue:1"), mysql(f"{U}:1-9", 2, replications=replications), f"{U}:blue:1"),
        (mariadb("0-1-9,7-1-2", "0-1-9,7-1-2"), mariadb("0-1-9", "0-1-9", 2, replications=replications), "7-1-2"),
    ):
        ((careful, text),) = said(main, other)
        assert careful is not applies
        assert lacks in text


def test_an_errant_transaction_is_named() -> None:
    for main, other, own in (
        (mysql(f"{U}:1-9"), mysql(f"{U}:1-9,{V}:3", 2), f"{V}:3"),
        (mariadb("0-1-9", "0-1-9"), mariadb("0-1-9,8-2-1", "0-1-9,8-2-1", 2), "8-2-1"),
    ):
        assert any(careful and "lacks: GTIDs " + own in text for careful, text in said(main, other))
        assert any(careful and "may be the primary now" in text for careful, text in said(main, other))
        assert not any("may be the primary" in text for _, text in said(main, replace(other, replications=REPLICATES)))


def test_another_cluster_is_told_from_a_replica() -> None:
    for main, other in (
        (mysql(f"{U}:1-9"), mysql(f"{W}:1-90", 2)),
        (mariadb("0-1-9", "0-1-9"), mariadb("0-3-900", "0-3-900", 3)),
    ):
        ((careful, text),) = said(main, other)
        assert careful
        assert "another cluster" in text


def test_a_promoted_replica_of_a_dead_primary_is_no_other_cluster() -> None:
    main, other = mariadb("0-2-12", "0-1-9,0-2-12", 2), mariadb("0-1-9", "0-1-9")
    ((careful, text),) = said(main, other)
    assert careful
    assert "0-2-12" in text


def test_the_same_server_under_two_names_is_none() -> None:
    assert "is the same server" in said(mysql(f"{U}:1"), mysql(f"{U}:1"))[0][1]


def test_what_would_be_refused_after_a_failover_is_said_before() -> None:
    other = mysql(f"{U}:1-9", 2, replications=REPLICATES, also={"log_replica_updates": "OFF", "binlog_row_image": "X"})
    found = said(mysql(f"{U}:1-9", also={"binlog_row_image": "FULL"}), other)
    assert any(careful and "would be refused after a failover: log_replica_updates" in text for careful, text in found)
    assert any(careful and "binlog_row_image is X, and FULL on the host" in text for careful, text in found)


@pytest.mark.parametrize("said", ["ON", "1", "NO_LOCK", "NO_LOCK_NO_ADMIN"])
def test_a_promoted_host_takes_over_from_one_that_is_read_only_and_lacks_what_it_has(said: str) -> None:
    fenced = {"read_only": said}
    for main, other in (
        (mysql(f"{U}:1-9", also=fenced), mysql(f"{U}:1-9,{V}:1", 2)),
        (
            facts(gtid_executed="0-1-9", also=fenced | {"gtid_binlog_state": "0-1-9"}),
            mariadb("0-2-10", "0-1-9,0-2-10", 2),
        ),
    ):
        assert takes_over(main, other)
        assert not takes_over(replace(main, replications=REPLICATES), other), "it still gets what is new"
        assert not takes_over(main, replace(other, replications=REPLICATES)), "nobody promoted it"
        assert not takes_over(main, replace(other, variables=other.variables | {"read_only": "ON"}))
        assert not takes_over(main, replace(other, gtid_executed=main.gtid_executed, variables=main.variables))
        for off in ("OFF", "0"):
            assert not takes_over(replace(main, variables=main.variables | {"read_only": off}), other)


def test_where_captures_reply_alone_is_enough_for_a_commit_the_other_host_may_lack_it() -> None:
    """Clients were told that it is committed, and the replica that takes over never got it."""
    wanted = SourceDemands(Flavour.MYSQL, DumpMode.GTID, Tables(include=("shop.*",)), semi_sync=True)
    replica = mysql(f"{U}:1-9", 2, replications=REPLICATES)
    for replies, careful in (("1", True), ("2", False)):
        also = {"rpl_semi_sync_source_enabled": "ON", "rpl_semi_sync_source_wait_for_replica_count": replies}
        told = [text for level, text in about(mysql(f"{U}:1-9", also=also), replica, wanted) if level is Level.CAUTION]
        assert any("wait_for_replica_count = 2" in text for text in told) is careful
    main = mariadb("0-1-9", "0-1-9")
    told = [text for _, text in about(main, mariadb("0-1-9", "0-1-9", 2, replications=REPLICATES), wanted)]
    assert any("take semi_sync out" in text for text in told)
