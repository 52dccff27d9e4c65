"""Nodes of clusters that are cut off from the others: what they say of themselves, and what becomes of reading them."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from tests.unit.mysql.facts.test_server_facts import facts
from tidegate.errors import SourceUnavailable
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.cluster import check_in_cluster, read_cut_off
from tidegate.mysql.servers import fence
from tidegate.mysql.servers.fence import FenceWatch

NODE = ConnectionInfo("db-1")
GALERA = {"wsrep_on": "ON", "wsrep_provider": "/usr/lib/galera/libgalera_smm.so"}
GROUP = {"group_replication_group_name": "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"}
ME, OTHER = 1, 0


class _Cursor:
    """Answers every question with these rows."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self._rows = list(rows)

    def execute(self, sql: str) -> None:
        if self._rows and isinstance(self._rows[0], Exception):
            raise self._rows[0]

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


@pytest.mark.parametrize(("status", "cut_off"), [("Primary", False), ("non-Primary", True), ("Disconnected", True)])
def test_a_galera_node_is_cut_off_outside_of_the_part_that_goes_on(status: str, cut_off: bool) -> None:
    assert bool(read_cut_off(_Cursor(("wsrep_cluster_status", status)), GALERA)) is cut_off
    assert read_cut_off(_Cursor(("wsrep_cluster_status", status)), GALERA | {"wsrep_on": "OFF"}) == ""
    assert read_cut_off(_Cursor(("wsrep_cluster_status", status)), GALERA | {"wsrep_provider": "none"}) == ""


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([("ONLINE", ME, 1), ("ONLINE", OTHER, 1), ("ONLINE", OTHER, 1)], ""),
        ([("ONLINE", ME, 1), ("ONLINE", OTHER, 1), ("UNREACHABLE", OTHER, 1)], ""),
        ([("RECOVERING", ME, 1), ("ONLINE", OTHER, 1)], ""),
        ([("ONLINE", ME, 0)], ""),
        ([("ONLINE", ME, 1), ("UNREACHABLE", OTHER, 1)], "1 of the 2"),
        ([("ONLINE", ME, 1), ("UNREACHABLE", OTHER, 1), ("UNREACHABLE", OTHER, 1)], "2 of the 3"),
        ([("ERROR", ME, 1)], "ERROR"),
        ([("ERROR", ME, 0)], "ERROR"),
        ([("OFFLINE", ME, 1)], "OFFLINE"),
        ([("OFFLINE", OTHER, 1)], "OFFLINE"),  # without an id of its own, before it was ever in a group
        ([("OFFLINE", ME, 0)], ""),  # a server like any other
        ([], ""),
    ],
)
def test_a_member_of_a_group_is_cut_off_when_it_was_expelled_or_lost_the_majority(
    members: list[tuple[Any, ...]], why: str
) -> None:
    found = read_cut_off(_Cursor(*members), GROUP)
    assert why in found
    assert bool(found) is bool(why)
    assert read_cut_off(_Cursor(*members), {}) == ""


def test_what_the_account_may_not_see_is_no_reason_and_a_lost_connection_is_an_error() -> None:
    denied, gone = pymysql.err.OperationalError(1142, "denied"), pymysql.err.OperationalError(2013, "gone")
    assert read_cut_off(_Cursor(denied), GROUP) == ""  # type: ignore[arg-type]
    with pytest.raises(pymysql.err.OperationalError, match="gone"):
        read_cut_off(_Cursor(gone), GROUP)  # type: ignore[arg-type]


def test_a_node_that_is_cut_off_while_it_is_read_counts_as_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source with one host is told so, too."""
    monkeypatch.setattr(fence, "FENCE_LOOK_SECONDS", 0.0)
    with pytest.raises(SourceUnavailable, match="is cut off from its cluster"):
        check_in_cluster("wsrep_cluster_status is non-Primary", NODE)
    check_in_cluster("", NODE)
    cut_off = _Cursor(("wsrep_cluster_status", "non-Primary"))
    with pytest.raises(SourceUnavailable, match="what is committed there doesn't come to it"):
        FenceWatch(NODE, NODE, facts(also=GALERA)).look(lambda question: question(cut_off))
    FenceWatch(NODE, NODE, facts(also=GALERA)).look(lambda question: question(_Cursor(("", "Primary"))))
    FenceWatch(NODE, NODE, facts()).look(lambda question: question(_Cursor((0,))))
