"""A table whose silver can't be read isn't compared, by name, and the others are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.road.test_one_tables_trouble import WAYS, begun, gone
from tests.support.servers import FreshDatabase
from tidegate.errors import SilverReadError
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.tables import silver_path
from tidegate.verify.copies import Copies
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = pytest.mark.server


def test_a_table_whose_silver_cant_be_read_is_named_and_the_others_are_compared(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    names = (*(way.__name__ for way in WAYS), "whole")
    road = begun(mariadb, database, tmp_path, names)
    for way in WAYS:
        way(Path(road.lake.uri(silver_path(database, way.__name__))))
    report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=5))
    results = {result.table.partition(".")[2]: result for result in report.tables}
    equal = {name for name, result in results.items() if result.outcome is Outcome.EQUAL}
    assert equal == {"feature", "whole"}
    unread = {name: result for name, result in results.items() if result.outcome is Outcome.UNVERIFIED}
    assert unread.keys() == set(names) - equal
    for name, result in unread.items():
        assert silver_path(database, name) in result.reason
    assert not report.passed


def test_a_copy_of_a_table_that_lacks_a_file_says_so(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, database, tmp_path, ("gone",))
    path = silver_path(database, "gone")
    version = road.lake.log(path).state().version
    gone(Path(road.lake.uri(path)))
    copies = Copies(LakeFiles(road.lake.root))
    with pytest.raises(SilverReadError, match=r"a file of its version \d+ isn't there: .*parquet"):
        copies.at(path, version)
    copies.close()
