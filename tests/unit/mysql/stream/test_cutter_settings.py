"""Of which binlog files a server's own time zone is known."""

from __future__ import annotations

import pytest

from tidegate.config import DumpMode, Flavour
from tidegate.mysql.stream.cutter_settings import CutterSettings
from tidegate.tables import SegmentFlag

STARTED = 1_700_000_000


@pytest.mark.parametrize(
    ("begun", "known"),
    [(STARTED - 1, False), (STARTED, False), (STARTED + 1, True), (STARTED + 86400, True)],
)
def test_a_file_from_before_the_servers_start_may_be_of_another_zone(begun: int, known: bool) -> None:
    settings = CutterSettings("s", Flavour.MYSQL, DumpMode.GTID, 1 << 20, lambda *_: [], utc_since=STARTED)
    description = begun.to_bytes(4, "little") + bytes(100)
    assert settings.of_file(description) == (SegmentFlag.SYSTEM_IS_UTC if known else SegmentFlag(0))
    assert settings.of_file(b"") == SegmentFlag(0)


def test_nothing_is_known_of_a_server_in_another_zone() -> None:
    settings = CutterSettings("s", Flavour.MYSQL, DumpMode.GTID, 1 << 20, lambda *_: [])
    assert settings.of_file((STARTED).to_bytes(4, "little") + bytes(100)) == SegmentFlag(0)
