"""What the old server had and the new one lacks is accepted: capture goes on at the new server, wherever its files are.

In:  a server by GTID, and bronze of another one whose file of the same name is longer, with a transaction more.
Out: a gap that names that transaction's table, and behind it what the new server writes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.captures import capture_until_quiet, info_of, source_of
from tests.support.segments import segment
from tests.support.servers import FreshDatabase
from tidegate.capture.captured import Captured
from tidegate.capture.recovery import recover
from tidegate.capture.value_log.log import ValueLog
from tidegate.config import Flavour
from tidegate.errors import PositionLost
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.capturing.acceptance import find_gap, record_gap
from tidegate.mysql.connecting.connection import connect
from tidegate.mysql.facts.server_facts import SourceFacts, read_facts
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind

pytestmark = pytest.mark.server
FAR = 1 << 30


def facts_of(server: Server) -> SourceFacts:
    with connect(info_of(server)) as connection:
        return read_facts(connection, info_of(server))


def _placed(number: int, file: str, gtids: str) -> Segment:
    return replace(
        segment(number + 1),
        server_id=99,
        server_uuid="gone",
        file=file,
        start_pos=FAR + number,
        end_pos=FAR + number + 1,
        gtid_executed=gtids,
        prev_commit_ts=10 * number,
        min_commit_ts=10 * number + 1,
        max_commit_ts=10 * number + 10,
        resolved_ts=10 * number + 10,
        tables=(f"shop.t{number}",),
        flags=SegmentFlag(0),
    )


def of_the_old_server(lake: Path, facts: SourceFacts) -> None:
    """Two segments: the new server has the first one's transactions, and not the second one's."""
    assert facts.position is not None
    more = "7-99-5" if facts.flavour is Flavour.MARIADB else "00000000-0000-0000-0000-000000000099:1-5"
    had = [facts.gtid_executed, f"{facts.gtid_executed},{more}"]
    segments = [_placed(number, facts.position.file, gtids) for number, gtids in enumerate(had)]
    Bronze(LakeFiles(str(lake)), "one").append(segments)


def test_capture_goes_on_at_a_server_that_lacks_what_was_accepted_as_lost(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    facts = facts_of(any_server)
    of_the_old_server(lake, facts)
    with pytest.raises(PositionLost, match="doesn't have transactions that were captured"):
        capture_until_quiet(any_server, lake)

    source, bronze = source_of(any_server, lake), Bronze(LakeFiles(str(lake)), "one")
    value_log = ValueLog(tmp_path / "aside")
    recovered = recover(bronze, value_log, source.nothing)
    gap = find_gap(source, Captured(bronze, value_log, recovered.tail), recovered.checkpoint)
    assert gap is not None
    assert gap.segment.tables == ("shop.t1",)
    record_gap(bronze, value_log, recovered, gap)
    value_log.close()

    any_server.query(f"INSERT INTO {database}.t VALUES (1)")
    capture_until_quiet(any_server, lake)
    found = list(Bronze(LakeFiles(str(lake)), "one").newest_first())
    assert f"{database}.t" in found[0].tables
    assert (found[0].server_id, found[0].seq) == (facts.server_id, gap.segment.seq + 1)
    assert found[1].kind is SegmentKind.GAP
    assert not found[0].flags & SegmentFlag.OPEN_AT_START
