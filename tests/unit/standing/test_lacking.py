"""The statement that a table's lack is told by: the one that it began with."""

from __future__ import annotations

from dataclasses import replace

from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.standing.lacking import lacking, lacks_since

_VERSION = TableVersion("one", "d", "t", 1, 10, "b.1", 4, "create", "CREATE TABLE t (a INT)", (), (), "utf8mb4")


def test_a_later_statement_is_not_said_to_have_changed_rows() -> None:
    waits = VersionStatus.NEEDS_SNAPSHOT
    renamed = replace(_VERSION, version=2, commit_ts=20, kind="rename", ddl="RENAME TABLE x TO t", status=waits)
    altered = replace(_VERSION, version=3, commit_ts=30, kind="alter", ddl="ALTER TABLE t DROP COLUMN b", status=waits)
    again = replace(altered, version=4, commit_ts=40, ddl="ALTER TABLE t DROP COLUMN c")
    known = [_VERSION, renamed, altered, again]
    for version in known[1:]:
        assert lacks_since(known, version) is renamed
    assert "renamed from another table (RENAME TABLE x TO t)" in lacking(lacks_since(known, again))[0]
    assert lacks_since([_VERSION, replace(renamed, status=VersionStatus.ACTIVE), again], again) is again
