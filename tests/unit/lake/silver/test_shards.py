"""Which rows of a routed table are no shard's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate import config
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.shards import of_no_shard
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.tables import SCHEMA_HISTORY


@dataclass(slots=True)
class CountedLake(LakeFiles):
    """opened: paths of the files that were opened."""

    opened: list[str] = field(default_factory=list)

    def open(self, path: str) -> Any:
        self.opened.append(path)
        return LakeFiles.open(self, path)


PIPELINE = config.parse(
    "pipeline: p\nlake: {path: unused}\nsources: {a: {conn_id: c, flavour: mysql}}\n"
    "tables: {include: ['shop.t.*'], routes: [{match: 'shop.t1', to: shop.one}, {match: 'shop.*', to: shop.all}]}\n",
    where="p.yaml",
)


def version(source: str, table: str, number: int, status: VersionStatus) -> dict[str, Any]:
    made = TableVersion(source, "shop", table, number, number, "f", 4, "create", "", (), (), "utf8mb4", status=status)
    return made.to_row()


def test_a_table_that_the_lake_has_ever_known_is_a_shard(tmp_path: Path) -> None:
    lake = CountedLake(str(tmp_path))
    asked = [("a", "shop", f"t{number}") for number in range(20)]
    assert of_no_shard(lake, PIPELINE, "shop.all", asked) == asked, "the lake is empty"
    for number in range(20):
        control.append(lake, SCHEMA_HISTORY, [version("a", f"t{number}", 1, VersionStatus.ACTIVE)])
    control.append(lake, SCHEMA_HISTORY, [version("a", "t3", 2, VersionStatus.DROPPED)])
    assert of_no_shard(lake, PIPELINE, "shop.all", asked) == [("a", "shop", "t1")], "which flows into shop.one"
    assert of_no_shard(lake, PIPELINE, "shop.one", asked[1:2]) == []
    strange = [("b", "shop", "t1"), ("a", "SHOP", "t1"), ("a", "shop", None), (None, None, None)]
    assert of_no_shard(lake, PIPELINE, "shop.all", [*strange, *asked[2:]]) == strange

    lake.opened.clear()
    of_no_shard(lake, PIPELINE, "shop.all", asked[:1])
    few = len(lake.opened)
    lake.opened.clear()
    of_no_shard(lake, PIPELINE, "shop.all", asked)
    assert len(lake.opened) == few > 0, "one look for any number of shards"
