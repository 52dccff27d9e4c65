"""What the last DDL changed, from control/schema_history alone; read again only when a version came."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tidegate import config, tables
from tidegate.commit_ts import compose
from tidegate.connections import from_environment
from tidegate.lake import control, schema_changes
from tidegate.lake.files import LakeFiles
from tidegate.pipelines import PipelineReaders
from tidegate.schema.model.columns import Column, TableVersion

FIRST = TableVersion(
    "s", "d", "t_1", 1, compose(1000), "b.1", 4, "baseline", "", (Column(1, "a", "int"),), (1,), "utf8"
)


def test_a_tables_versions_are_diffs_the_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = LakeFiles(str(tmp_path))
    wider = replace(FIRST, version=2, commit_ts=compose(2000), kind="alter", columns=(Column(1, "a", "bigint"),))
    other = replace(FIRST, source="else")
    control.append(lake, tables.SCHEMA_HISTORY, [each.to_row() for each in (FIRST, wider, other)])
    text = (
        f"pipeline: p\nlake: {{path: {tmp_path}}}\nsources: {{s: {{conn_id: s, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*'], routes: [{match: 'd.t_.*', to: d.all}]}\n"
    )
    reader = PipelineReaders(from_environment, from_environment).of(config.parse(text, where="p.yaml"))
    effects = [change.effect for change in reader.schema_changes("d.all")]
    assert effects == [("a int -> bigint",), ("1 columns, key: a",)]
    assert reader.schema_changes("d.none") == []
    reads = list[object]()
    monkeypatch.setattr(schema_changes, "table_rows", lambda *given: reads.append(given) or [])
    assert len(reader.schema_changes("d.all")) == 2
    assert reads == [], "nothing new, nothing read"
