"""What a server is known to log wrongly stops its tables: no reader of the log can be right."""

from __future__ import annotations

import dataclasses

import pytest

from tests.kit.decoding import ALL_TIME, segment_of_file
from tests.unit.binlog.golden import GOLDEN, versions_of
from tidegate.binlog.rows.decode import decode_segment
from tidegate.schema.model.columns import Generated, TableVersion


@pytest.mark.parametrize("case", ["mariadb102_numbers", "mariadb114_numbers", "mysql97_numbers"])
def test_a_server_that_logs_null_for_virtual_columns_stops_their_table(case: str) -> None:
    folder = GOLDEN / case
    assert folder.is_dir(), "a golden case was renamed"
    name, versions = "", dict[tuple[str, str], list[TableVersion]]()
    for version in versions_of(folder):
        columns = (*version.columns[:-1], dataclasses.replace(version.columns[-1], generated=Generated.VIRTUAL))
        name = version.columns[-1].name
        versions.setdefault((version.database, version.table), []).append(dataclasses.replace(version, columns=columns))
    made = segment_of_file((folder / "events.binlog").read_bytes())
    found = decode_segment(made, versions, dict.fromkeys(versions, ALL_TIME))
    if not case.startswith("mariadb102"):
        assert not found.problems
        return
    assert {problem.table for problem in found.problems} == {table for _, table in versions}
    assert f"virtual columns when rows are updated: {name}" in found.problems[-1].message
