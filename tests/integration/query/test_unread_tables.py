"""A table that can't be read is named when it is asked for; the others answer, at the newest cut and at older ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.road.test_one_tables_trouble import WAYS, begun, checkpoint
from tests.support.servers import FreshDatabase
from tidegate.errors import Terminal
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.query.pinned import PinnedCut
from tidegate.tables import silver_path

pytestmark = pytest.mark.server


def test_whatever_breaks_one_table_queries_of_others_are_answered(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    broken = {way.__name__: way for way in WAYS} | {"e": checkpoint}  # a name that stands in every query
    road = begun(mariadb, database, tmp_path, (*broken, "whole"))
    at = PinnedCut.at(road.lake, "road").cut.cut_ts
    for name, way in broken.items():
        way(Path(road.lake.uri(silver_path(database, name))))
    for stamp in (None, at):
        with PinnedCut.at(LakeFiles(road.lake.root), "road", stamp) as cut:
            assert cut.sql(f"SELECT sum(v) FROM {database}.whole").fetchall() == [(3,)]
            assert cut.polars(f"{database}.whole").collect().height == 2
            shown = {row[2] for row in cut.sql("SHOW ALL TABLES").fetchall()}
            assert "whole" in shown
            for name in ("checkpoint", "folder", "e"):
                assert name not in shown
                with pytest.raises(Terminal, match=silver_path(database, name)):
                    cut.sql(f"SELECT * FROM {database}.{name}")
    with (
        PinnedCut.at(LakeFiles(road.lake.root), "road", at) as cut,
        pytest.raises(Terminal, match="are gone, too; see"),
    ):
        cut.sql("SELECT * FROM gone")
