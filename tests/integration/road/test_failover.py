"""The primary dies while capture is in the middle of a large transaction; its replica, promoted, is captured instead.

In:  a primary and a replica of it, both real, by GTID; the pipeline's connection is pointed at the other one.
Out: silver equal to the new primary: no row lost, none doubled, nothing of the half transaction seen before its end;
     or, when the new primary lacks what was captured, a stop that names it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.replica_pair import Pair, executed, replica_pair, until, words
from tidegate.capture.value_log import log as value_log
from tidegate.errors import PositionLost, SourceUnavailable, VerifyError
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.segments.segment import Segment
from tidegate.segments.window import SegmentRef
from tidegate.tables import SegmentFlag

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

ROWS = 12
ROW_BYTES = 4 << 20


@pytest.fixture(params=["mariadb", "mysql9"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """A replica that follows its primary by GTID."""
    with replica_pair(request.param, tmp_path) as found:
        yield found


def _captured_until_the_primary_dies(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    """The primary is killed when bronze has the first part of a transaction, and the value log some more of it."""
    real, primary = value_log.ValueLog.append, road.server
    opened: list[object] = []

    def append(log: value_log.ValueLog, segment: Segment) -> object:
        if segment.flags & SegmentFlag.OPEN_AT_END:
            opened.append(segment)
            if len(opened) == 3:
                until(lambda: bool(_segments(road)[-1].flags & SegmentFlag.OPEN_AT_END))
                primary.kill()
        return real(log, segment)

    small = road.pipeline.capture.model_copy(update={"land_bytes": 1 << 20})
    run = binlog_run(road.pipeline.model_copy(update={"capture": small}), "one", road.info, road.folder / "state")
    with monkeypatch.context() as patched:
        patched.setattr(value_log.ValueLog, "append", append)
        with pytest.raises(SourceUnavailable):
            run.run(8)


def test_the_promoted_replica_goes_on_in_mid_transaction(
    pair: Pair, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.primary.query("CREATE DATABASE shop")
    road = Road(pair.primary, tmp_path, include="shop.*")
    road.capture()
    pair.primary.query("CREATE TABLE shop.large (id INT PRIMARY KEY, b LONGBLOB)")
    pair.primary.query("CREATE TABLE shop.small (id INT PRIMARY KEY, n INT)")
    pair.primary.query("INSERT INTO shop.small VALUES (1, 1), (2, 2)")
    road.capture()
    with pair.primary.connect("shop", max_allowed_packet=256 << 20) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE small SET n = 20 WHERE id = 2")
        for number in range(ROWS):
            cursor.execute("INSERT INTO large VALUES (%s, %s)", (number, os.urandom(ROW_BYTES)))
        cursor.execute("INSERT INTO small VALUES (3, 3)")
        cursor.execute("COMMIT")
    pair.replicated()
    _captured_until_the_primary_dies(road, monkeypatch)

    half = _segments(road)
    assert half[-1].flags & SegmentFlag.OPEN_AT_END
    road.apply(spark)  # while nothing is known of the other half
    pair.replica.query(words(pair.replica, "STOP"))
    pair.replica.query("UPDATE shop.small SET n = 10 WHERE id = 1")
    road.server = pair.replica
    with pytest.raises(VerifyError, match="not captured up to"):
        road.assert_equal()  # positions of the old primary don't count
    for _ in range(2):
        road.capture()
        road.apply(spark)
    given_up = [ref.seq for ref in _segments(road) if ref.given_up_ts]
    assert given_up
    assert set(given_up) >= {ref.seq for ref in half if ref.flags & SegmentFlag.OPEN_AT_END}
    assert road.assert_equal() == {"large": ROWS, "small": 3}


def _captured_from_a_replica_that_is_behind(pair: Pair, road: Road) -> None:
    """The replica can't apply what it has received while a session holds a lock; capture waits for it."""
    with pair.replica.connect("shop") as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES orders READ")
        pair.primary.query("INSERT INTO shop.orders VALUES (100)")
        road.capture()
        road.server = pair.replica
        short = road.pipeline.capture.model_copy(update={"failover_wait_seconds": 1.5})
        impatient = binlog_run(road.pipeline.model_copy(update={"capture": short}), "one", road.info, road.folder / "s")
        with pytest.raises(PositionLost, match="doesn't have transactions that were captured"):
            impatient.run(300, idle_seconds=1)
        unlock = threading.Timer(2, cursor.execute, ["UNLOCK TABLES"])
        unlock.start()
        assert (
            binlog_run(road.pipeline, "one", road.info, road.folder / "state").run(60, idle_seconds=1).reason == "idle"
        )
        unlock.join()
    road.server = pair.primary
    pair.replicated()


def test_a_replica_that_lacks_what_was_captured_is_waited_for_or_refused_by_name(pair: Pair, tmp_path: Path) -> None:
    pair.primary.query("CREATE DATABASE shop")
    pair.primary.query("CREATE TABLE shop.orders (id INT PRIMARY KEY)")
    pair.primary.query("CREATE TABLE shop.other (id INT PRIMARY KEY)")
    road = Road(pair.primary, tmp_path, include="shop.*")
    road.capture()
    pair.replicated()
    _captured_from_a_replica_that_is_behind(pair, road)
    pair.replica.query(words(pair.replica, "STOP"))
    for number in range(3):
        pair.primary.query(f"INSERT INTO shop.orders VALUES ({number})")
    road.capture()
    before, lacking = _segments(road), executed(pair.primary)
    pair.primary.kill()
    road.server = pair.replica
    with pytest.raises(PositionLost) as caught:
        binlog_run(road.pipeline, "one", road.info, road.folder / "state").run(300)
    assert "doesn't have transactions that were captured: GTIDs" in str(caught.value)
    assert lacking.rpartition("-")[2] in str(caught.value)
    assert "shop.orders" in str(caught.value)
    # Its own transactions get larger numbers than those that it lacks: that makes it no better.
    for number in range(10, 20):
        pair.replica.query(f"INSERT INTO shop.orders VALUES ({number})")
    with pytest.raises(PositionLost):
        binlog_run(road.pipeline, "one", road.info, road.folder / "state").run(300)
    assert _segments(road) == before


def _segments(road: Road) -> list[SegmentRef]:
    index = BronzeIndex(road.lake)
    index.refresh(0)
    return index.refs["one"]
