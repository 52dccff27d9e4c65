"""The examples of docs/query.md and docs/how-to/readers.md, word for word, against a lake of a real server.

In:  a lake at lakes/shop below the current folder, made by capture and apply; the pages' blocks of code.
Out: DuckDB, Polars, delta-rs and Spark read the rows that the server has.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.servers import ROOT
from tidegate.commit_ts import physical_ms
from tidegate.home import PIPELINES_ENV
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

QUERY, READERS = "docs/query.md", "docs/how-to/readers.md"
TRIED = "not tried"
SUMS = {("open", Decimal("19.50")), ("paid", Decimal("30.00"))}
MADE = (
    "CREATE TABLE orders (id INT PRIMARY KEY, status VARCHAR(10), total DECIMAL(9,2))",
    "INSERT INTO orders VALUES (1, 'open', 12.5), (2, 'open', 99), (3, 'paid', 30)",
    "UPDATE orders SET total = 7 WHERE id = 2",
)


@pytest.fixture(scope="module")
def folder(mariadb: Server, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("reading")
    mariadb.query("DROP DATABASE IF EXISTS shop")
    mariadb.query("CREATE DATABASE shop")
    road = Road(mariadb, path, include="shop.*")
    road.capture()
    with mariadb.connect("shop") as connection, connection.cursor() as cursor:
        for statement in MADE:
            cursor.execute(statement)
    road.capture()
    road.apply(spark)
    time.sleep(1.1)  # MariaDB's log has whole seconds
    mariadb.query("CREATE TABLE shop.later (id INT PRIMARY KEY)")
    road.capture()
    road.apply(spark)  # a second cut: `at` is behind the first one, and not in the future
    (path / "lakes").mkdir()
    (path / "lakes" / "shop").symlink_to(path / "lake")
    road.file.rename(path / "shop.yaml")
    yield path
    mariadb.query("DROP DATABASE shop")


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    monkeypatch.setenv(PIPELINES_ENV, str(folder))
    return folder


def blocks(page: str, language: str) -> list[str]:
    """Those of sections that don't say that nobody tried them."""
    sections = re.split(r"^## ", (ROOT / page).read_text(), flags=re.MULTILINE)
    tried = [section for section in sections if TRIED not in section.split("\n", 1)[0]]
    return [block for section in tried for block in re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)]


def extension() -> str:
    """As docs/query.md finds it offline."""
    folder = Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}"
    return f"LOAD '{folder / 'delta.duckdb_extension'}'"


def test_the_sql_of_the_page_runs_in_duckdb_and_spark(here: Path, spark: SparkSession) -> None:
    scan, by_hand, of_spark = blocks(QUERY, "sql")
    with duckdb.connect() as connection:
        rows = connection.sql(scan.replace("INSTALL delta; LOAD delta", extension())).fetchall()
        assert {(status, total) for status, _, total in rows} == SUMS
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
        cuts, count = by_hand.replace("2026-11-22 08:00:00", now).split(";\n")[:2]
        versions = {name: (version, state) for name, version, state in connection.sql(cuts).fetchall()}
        version, state = versions["shop.orders"]
        assert state == "active"
        at_version = count.split(";")[0].replace("42", str(version))
        assert connection.sql(at_version).fetchall() == [(3,)]
    rows = spark.sql(of_spark.strip().rstrip(";").replace("/path/to", str(here))).collect()
    assert {(row[0], row[2]) for row in rows} == SUMS


def test_the_python_of_the_pages_runs(here: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.is_dir()
    names: dict[str, Any] = {"spark": spark}
    with duckdb.connect() as connection:
        connection.execute(extension())
        ((first,),) = connection.sql("SELECT min(cut_ts) FROM delta_scan('lakes/shop/control/cuts')").fetchall()
    at = datetime.fromtimestamp(physical_ms(first) / 1000, UTC).isoformat()
    for page in (QUERY, READERS):
        for block in blocks(page, "python"):
            # The result of a last line that is an expression, as a notebook shows it.
            *above, last = block.strip().split("\n")
            shown = not re.match(r"\s|\w+ =|import|from", last)
            code = "\n".join([*above, f"shown = {last}" if shown else last])
            code = code.replace('at="2026-11-22T08:00+01:00"', f'at="{at}"')
            exec(compile(code, page, "exec"), names)
    rows = pa.table(names["shown"]).to_pylist()  # the last block is delta-rs'
    assert {tuple(row.values()) for row in rows} == SUMS
    assert not capsys.readouterr().err
