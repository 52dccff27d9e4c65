"""What a source's settings must be, and what is only a caution."""

from __future__ import annotations

import pytest

from tidegate.config import DumpMode, Flavour
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
