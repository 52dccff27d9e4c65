"""What a source's settings must be, and what is only a caution."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.config import DumpMode, Flavour
from tidegate.errors import SourceRefused
from tidegate.wire.source import SourceFacts, cautions, preflight


def facts(image: str) -> SourceFacts:
    return SourceFacts(
        where="db:3306",
        flavour=Flavour.MARIADB,
        version="11.4.5-MariaDB",
        server_id=1,
        server_uuid="",
        variables={"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": image},
        grants=("GRANT ALL PRIVILEGES ON *.* TO `a`@`%`",),
        position=None,
        gtid_executed="",
        gtid_purged="",
        binary_logs=(),
    )


@pytest.mark.parametrize(("image", "cautioned"), [("FULL", 0), ("FULL_NODUP", 0), ("NOBLOB", 1), ("MINIMAL", 1)])
def test_a_row_image_that_may_stop_tables_is_a_caution_of_one_line(image: str, cautioned: int) -> None:
    preflight(facts(image), Flavour.MARIADB, DumpMode.GTID)
    found = cautions(facts(image))
    assert len(found) == cautioned
    assert all(image in line and "db:3306" in line and "\n" not in line for line in found)


def test_semi_sync_needs_the_servers_plugin_and_warns_while_it_waits_for_nobody() -> None:
    with pytest.raises(SourceRefused, match="INSTALL PLUGIN"):
        preflight(facts("FULL"), Flavour.MARIADB, DumpMode.GTID, semi_sync=True)
    for name in ("rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"):
        asleep = replace(facts("FULL"), variables=facts("FULL").variables | {name: "OFF"})
        preflight(asleep, Flavour.MARIADB, DumpMode.GTID, semi_sync=True)
        assert "waits for nobody" in cautions(asleep, semi_sync=True)[0]
        awake = replace(asleep, variables=asleep.variables | {name: "ON"})
        assert cautions(awake, semi_sync=True) == []
