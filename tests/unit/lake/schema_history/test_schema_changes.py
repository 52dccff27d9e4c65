"""What the last DDL changed, from control/schema_history alone; read again only when a version came."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.opened import opened
from tidegate import config, tables
from tidegate.commit_ts import compose
from tidegate.connections import from_environment
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history import schema_changes
from tidegate.pipelines import PipelineReaders
from tidegate.pipelines.plain import plain
from tidegate.schema.model.columns import Column, TableVersion

__all__ = ["opened"]  # a fixture

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
    assert effects == [("a int -> bigint",), ("1 column, key: a",)]
    assert reader.schema_changes("d.none") == []
    reads = list[object]()
    monkeypatch.setattr(schema_changes, "table_rows", lambda *given: reads.append(given) or [])
    assert len(reader.schema_changes("d.all")) == 2
    assert reads == [], "nothing new, nothing read"


def test_a_pipelines_newest_changes_are_read_again_only_when_a_version_came(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of tables that the pipeline keeps, without first versions; a statement about many shards is one change."""
    lake, columns = LakeFiles(str(tmp_path)), (*FIRST.columns, Column(2, "b", "int"))
    text = (
        f"pipeline: p\nlake: {{path: {tmp_path}}}\nsources: {{s: {{conn_id: s, flavour: mariadb}}}}\n"
        "tables: {include: ['d.*'], exclude: ['d.left'], routes: [{match: 'd.t_.*', to: d.all}]}\n"
    )
    versions = list[TableVersion]()
    for number, name in enumerate(("t_1", "t_2", "u", "left")):
        first = replace(FIRST, table=name)
        ddl, at = f"ALTER TABLE {name[0]} ADD b int", compose(2000 + number)
        versions += [first, replace(first, version=2, commit_ts=at, kind="alter", ddl=ddl, columns=columns)]
    control.append(lake, tables.SCHEMA_HISTORY, [each.to_row() for each in versions])
    monkeypatch.setenv("AIRFLOW_CONN_S", "mysql://u:p@127.0.0.1:1/")
    reader = PipelineReaders(from_environment, from_environment).of(config.parse(text, where="p.yaml"))
    told = [(name, change.version.table, change.effect) for name, change in reader.view().changes]
    assert told == [("d.u", "u", ("+ b int",)), ("d.all", "t_2", ("+ b int",))]
    assert [row["in_silver"] for row in plain(reader.view())["schema_changes"]] == ["not in silver"] * 2
    opened.clear()
    reader.look_again()
    assert len(reader.view().changes) == 2
    assert [path for path in opened if path.startswith(tables.SCHEMA_HISTORY.path)] == []
    later = replace(versions[-3], version=3, commit_ts=compose(3000), kind="truncate", ddl="TRUNCATE u")
    control.append(lake, tables.SCHEMA_HISTORY, [later.to_row()])
    reader.look_again()
    assert [change.version.kind for _, change in reader.view().changes] == ["truncate", "alter", "alter"]
