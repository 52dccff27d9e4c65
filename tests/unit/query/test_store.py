"""A cut of a lake on S3: DuckDB reads what a query names, with the lake's keys, which nobody gets to see."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.demo.test_cli import PIPELINE
from tests.kit.s3 import S3
from tests.support.command import tidegate
from tidegate import tables
from tidegate.errors import HostLacks, QueryRefused
from tidegate.home import EXIT_ERROR
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.query import duck
from tidegate.query.pinned import PinnedCut

SECRET = "known-to-the-test-only"
SUM = "SELECT sum(money) AS sum FROM (SELECT money FROM a UNION ALL SELECT money FROM b)"


@pytest.fixture
def lake(s3: S3) -> LakeFiles:
    """Money moves from a to b, a version each; the newest cut is of a's window alone."""
    made = LakeFiles(s3.folder(), s3.options)
    for version in range(3):
        for name, sign in (("a", 1), ("b", -1)):
            rows = pa.table({"money": [sign * version]})
            write_deltalake(made.uri(f"silver/shop/{name}"), rows, mode="overwrite", storage_options=s3.options)
        row = {"cut_ts": version + 1, "applied_ts": version + 1, "state": "active", "published_at": datetime.now(UTC)}
        named = [("", -1), ("shop.a", version), *([("shop.b", version)] if version < 2 else [])]
        control.append(made, tables.CUTS, [row | {"table": name, "delta_version": at} for name, at in named])
    return made


@pytest.fixture
def file(lake: LakeFiles, tmp_path: Path) -> Path:
    made = tmp_path / "shop.yaml"
    made.write_text(PIPELINE.format(lake=f"'{lake.root}', conn_id: the_lake"))
    return made


def test_the_command_reads_a_store_and_tells_no_key(lake: LakeFiles, file: Path, tmp_path: Path) -> None:
    def asked(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        connection = json.dumps({"conn_type": "generic", "extra": lake.storage_options | extra})
        done = tidegate("query", str(file), *arguments, AIRFLOW_CONN_THE_LAKE=connection)
        assert SECRET not in done.stdout + done.stderr
        return done

    assert json.loads(asked(SUM, "--json", "--at", "2").stdout) == {"sum": 0}
    assert json.loads(asked(SUM, "--json").stdout) == {"sum": 1}
    assert "redacted" in asked("FROM duckdb_secrets()").stdout
    assert asked(f"COPY (FROM a) TO '{tmp_path}/a.parquet'").returncode == 0
    assert pq.read_table(tmp_path / "a.parquet")["money"].to_pylist() == [2]
    done = asked("FROM a", AWS_ACCESS_KEY_ID="")
    assert (done.returncode, "needs the store's keys" in done.stderr) == (EXIT_ERROR, True)
    assert asked("--views", str(tmp_path / "views.sql")).returncode == 0
    script = (tmp_path / "views.sql").read_text()
    place = lake.storage_options["AWS_ENDPOINT_URL"].removeprefix("http://")
    assert f"ENDPOINT '{place}', URL_STYLE 'path', USE_SSL false, SCOPE '{lake.root}'" in script
    assert script.splitlines()[-1].startswith('CREATE OR REPLACE VIEW "shop"."b" AS SELECT * FROM delta_scan(\'s3://')
    assert SECRET not in script


def test_only_what_a_query_names_is_looked_at(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = duck.scan
    monkeypatch.setattr(duck, "scan", lambda address, version: looked.append(address[-1]) or real(address, version))
    with PinnedCut.at(lake, "shop") as cut:
        assert cut.sql('SELECT money FROM "A"').fetchall() == [(2,)]
        assert cut.sql("FROM shop.a").fetchall() == [(2,)]
        assert looked == ["a"]
        assert ("b",) in cut.sql("SELECT table_name FROM information_schema.tables").fetchall()
        assert cut.connection().sql("SHOW TABLES").fetchall() == [("a",), ("b",)]
        assert looked == ["a", "b"]
        for asked in ("FROM shop.aa", 'FROM "shop"."aa"', "SELECT * FROM shop.A2"):
            with pytest.raises(QueryRefused, match=r"there is no table shop\.\w+ in this cut; did you mean shop\.a\?"):
                cut.sql(asked)
        with pytest.raises(QueryRefused, match="SHOW ALL TABLES says which there are"):
            cut.sql("FROM shop.quitealongname")


def test_tables_are_there_for_a_query_that_lists_them_takes_back_or_is_elsewhere(
    lake: LakeFiles, tmp_path: Path
) -> None:
    with PinnedCut.at(lake, "shop") as cut:
        assert [row[2] for row in cut.sql("DESCRIBE;").fetchall()] == ["a", "b"]
    with PinnedCut.at(lake, "shop") as cut:
        cut.sql("BEGIN")
        assert cut.sql("FROM a").fetchall() == [(2,)]
        cut.sql("ROLLBACK")
        assert cut.sql("FROM a").fetchall() == [(2,)]
    with PinnedCut.at(lake, "shop") as cut:
        cut.sql(f"ATTACH '{tmp_path}/mine' AS mine; USE mine")
        assert cut.sql("FROM memory.shop.a ORDER BY money DESC").fetchall() == [(2,)]


def test_a_store_that_duckdb_does_not_reach_is_told() -> None:
    with duck.connect(1 << 26) as database, pytest.raises(HostLacks, match="no store but S3"):
        duck.reach(database, "abfss://lake@account/x", {})
