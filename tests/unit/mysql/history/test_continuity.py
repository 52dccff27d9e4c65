"""Which servers lack what was captured: by GTID, and by whether they are the very server."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.segments import segment
from tidegate.config import Flavour
from tidegate.errors import PositionLost
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.history.continuity import check_gtids
from tidegate.segments.segment import Segment

TAIL = replace(segment(1, b"x"), server_id=7, server_uuid="seven", gtid_executed="0-7-90,3-7-5")


def facts(executed: str, server: tuple[int, str] = (7, "seven")) -> SourceFacts:
    return SourceFacts("db", Flavour.MARIADB, "11.4.5-MariaDB", *server, {}, (), None, executed, "", ())


def captured(tail: Segment) -> Any:
    return SimpleNamespace(tail=tail, newest_first=lambda: iter([tail]))


def test_a_domain_that_was_taken_out_at_the_very_server_lacks_nothing() -> None:
    """FLUSH BINARY LOGS DELETE_DOMAIN_ID; that its files are still the same is looked at by their bytes."""
    check_gtids(facts("0-7-90"), TAIL.gtid_executed, captured(TAIL))
    with pytest.raises(PositionLost, match="3-7-5"):
        check_gtids(facts("0-7-90", (8, "eight")), TAIL.gtid_executed, captured(TAIL))
    with pytest.raises(PositionLost, match="3-7-5"):
        check_gtids(facts("0-7-90,3-7-4"), TAIL.gtid_executed, captured(TAIL))
