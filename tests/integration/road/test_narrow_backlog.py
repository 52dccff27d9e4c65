"""A backlog of rows that are narrower than expected is written by position, in windows that fit the driver's memory.

In:  real MariaDB; transactions of two small integers a row; a driver that may hold few keys.
Out: silver is equal, and no window needed MERGE: the road has no Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from spark_jobs.apply_steps import merge_into_silver
from spark_jobs.positional.writer import Outcome, Upsert, write_upserts
from spark_jobs.window import density
from spark_jobs.window.application import Application
from tests.integration.road.test_renames import run
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate import config, limits
from tidegate.local.server import Server
from tidegate.upsert.cost import KEY_RECORD_BYTES
from tidegate.upsert.keys.at_hand import KeyFilesAtHand

pytestmark = [pytest.mark.server, pytest.mark.spark]

KEYS = 4000
SEGMENT_BYTES = 4096


@pytest.fixture
def road(mariadb: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_database: FreshDatabase) -> Road:
    """Of a database that is named in `include`, with small segments."""
    monkeypatch.setattr(limits, "UPSERT_KEYS_BYTES_MAX", KEYS * KEY_RECORD_BYTES)
    monkeypatch.setattr(density, "_TELLING_BYTES", SEGMENT_BYTES)
    road = Road(mariadb, tmp_path, include=f"{fresh_database(mariadb)}.*", apply=", writer: auto")
    road.file.write_text(road.text.replace("land_seconds: 0.1", f"land_seconds: 0.1, segment_bytes: {SEGMENT_BYTES}"))
    road.pipeline = config.load(road.file)
    road.capture()
    return road


NARROW, WIDE = 100, 10  # rows of a transaction
NARROW_SQL = f"INSERT INTO t (id) SELECT seq FROM seq_{{}}_to_{{}} LIMIT {NARROW}"
WIDE_SQL = f"INSERT INTO t SELECT seq, REPEAT('x', 400) FROM seq_{{}}_to_{{}} LIMIT {WIDE}"


@pytest.mark.parametrize(
    "parts",
    [[(NARROW_SQL, 300)], [(NARROW_SQL, 100), (WIDE_SQL, 100)], [(WIDE_SQL, 100), (NARROW_SQL, 200)]],
    ids=["narrow", "narrow, then wide", "wide, then narrow"],
)
def test_a_table_catches_up_in_windows_that_fit(
    road: Road, mariadb: Server, monkeypatch: pytest.MonkeyPatch, parts: list[tuple[str, int]]
) -> None:
    database = road.pipeline.tables.include[0].removesuffix(".*")
    run(mariadb, database, "CREATE TABLE t (id INT PRIMARY KEY, t TEXT)")
    road.capture()
    road.apply()
    statements = [sql for sql, count in parts for _ in range(count)]
    run(
        mariadb,
        database,
        "\n".join(sql.format(NARROW * at, NARROW * (at + 1) - 1) for at, sql in enumerate(statements)),
    )
    road.capture()
    held = list[int]()

    def noted(app: Application, keys: KeyFilesAtHand, upserts: Sequence[Upsert]) -> dict[str, Outcome]:
        held.append(keys.bytes)
        return write_upserts(app, keys, upserts)

    monkeypatch.setattr(merge_into_silver, "write_upserts", noted)
    road.apply()
    assert 0 < max(held) <= KEYS * KEY_RECORD_BYTES, "keys that don't fit wait in the lake"
    assert any("it catches up in smaller windows" in line for line in road.lines), "the first window was too large"
    road.assert_equal()
    assert len(road.lines) < 60
