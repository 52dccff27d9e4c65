"""Readers of a changelog, each at its own place: nothing twice, nothing left out, and what is missing is said."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.demo.test_cli import PIPELINE
from tests.support.command import tidegate
from tidegate import tables
from tidegate.changelog.changelog_table import Appending, app_id, as_rows, changelog, told
from tidegate.changelog.reading import ChangePlace
from tidegate.commit_ts import compose
from tidegate.errors import ChangesMissing, Overtaken, QueryRefused, UsageError
from tidegate.home import EXIT_ERROR
from tidegate.lake import control
from tidegate.lake.control import last_of
from tidegate.lake.control.upkeep import drop_files, pack, rewrite
from tidegate.lake.cuts.published import instant
from tidegate.lake.files import LakeFiles
from tidegate.query.formats import FORMS, lines
from tidegate.query.subscription import Batch, Options, Subscription
from tidegate.tables.subscriptions_table import SUBSCRIPTIONS

NAME = "shop.orders"
TABLE = changelog("shop", "orders")
BEGIN = datetime(2026, 11, 22, tzinfo=UTC)


class Changes:
    """A changelog written by hand, a window per call."""

    def __init__(self, folder: Path) -> None:
        self.lake = LakeFiles(str(folder / "lake"))
        self._at = BEGIN

    def stamp(self, number: int) -> int:
        return compose(int(BEGIN.timestamp() * 1000) + number)

    def window(self, upto: int, *rows: tuple[int, str, dict[str, Any] | None, dict[str, Any] | None]) -> None:
        """rows: (commit number, op, before, after)."""
        appending = Appending(self.lake, TABLE, app_id("shop", NAME))
        made = []
        for number, op, before, after in rows:
            sides = {"before": before and json.dumps(before), "after": after and json.dumps(after)}
            note = None if before or after else f"{op} it"
            row = told(op, ("main", "shop", "orders"), self.stamp(number), file="binlog.1", pos=number, note=note)
            made.append(row | sides)
        if made:
            appending.add(as_rows(made))
        appending.commit(self.stamp(upto))

    def publish(self, upto: int) -> None:
        self._at += timedelta(seconds=1)
        row = {"cut_ts": self.stamp(upto), "table": "", "delta_version": -1, "applied_ts": self.stamp(upto)}
        control.append(self.lake, tables.CUTS, [row | {"state": "active", "published_at": self._at}])

    def read(self, **options: Any) -> list[int]:
        """Numbers of the commits that a reader gets."""
        reader = Subscription(self.lake, NAME, Options(**options))
        found: list[Batch] = []
        reader.run(found.append, follow=False)
        stamps = [stamp for batch in found for stamp in batch.rows["commit_ts"].to_pylist()]
        return [(stamp >> 18) - int(BEGIN.timestamp() * 1000) for stamp in stamps]


@pytest.fixture
def changes(tmp_path: Path) -> Changes:
    made = Changes(tmp_path)
    made.window(10, (0, "begin", None, None), (1, "insert", None, {"id": 1, "v": "a"}))
    made.window(20, (12, "update", {"id": 1, "v": "a"}, {"id": 1, "v": "b"}), (11, "insert", None, {"id": 2, "v": "x"}))
    made.window(30, (25, "delete", {"id": 1, "v": "b"}, None), (26, "truncate", None, None))
    made.publish(20)
    return made


def test_changes_come_in_order_up_to_the_published_cut(changes: Changes) -> None:
    assert changes.read() == [0, 1, 11, 12]
    changes.publish(30)
    assert changes.read() == [0, 1, 11, 12, 25, 26]
    assert changes.read(after=ChangePlace.behind(changes.stamp(11))) == [12, 25, 26]


def test_each_group_goes_on_where_it_was_whatever_is_packed_meanwhile(changes: Changes) -> None:
    assert changes.read(group="a") == [0, 1, 11, 12]
    changes.publish(30)
    state = changes.lake.log(TABLE.path).state()
    pack(changes.lake, TABLE, state, smaller_bytes=1 << 30)
    assert changes.read(group="a") == [25, 26]
    assert changes.read(group="a") == []
    assert changes.read(group="b", after=ChangePlace.behind(changes.stamp(12))) == [25, 26]
    assert changes.read(group="a", after=ChangePlace.behind(changes.stamp(11))) == [12, 25, 26]


def test_a_groups_place_is_its_last_one_also_where_a_clock_is_behind(changes: Changes) -> None:
    """Saved by a machine whose clock is a day ahead; then by this one, and maintain forgets all but the last."""
    ahead = {"table": NAME, "reader_group": "a", "saved_at": datetime.now(UTC) + timedelta(days=1)}
    place = {"commit_ts": changes.stamp(1), "source": "main", "seq": -1, "ordinal": 1}
    control.append(changes.lake, SUBSCRIPTIONS, [ahead | place])
    assert changes.read(group="a") == [11, 12]
    assert changes.read(group="a") == []
    rewrite(changes.lake, SUBSCRIPTIONS, lambda rows: last_of(rows, SUBSCRIPTIONS.key[:2], SUBSCRIPTIONS.key[2:]))
    changes.publish(30)
    assert changes.read(group="a") == [25, 26]
    assert changes.read(group="a", after=ChangePlace.behind(changes.stamp(12))) == [25, 26]


def test_what_a_function_failed_on_comes_again(changes: Changes) -> None:
    seen: list[int] = []

    def fails(batch: Batch) -> None:
        seen.append(batch.rows.num_rows)
        if len(seen) == 2:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        Subscription(changes.lake, NAME, Options(group="a")).run(fails, follow=False)
    assert seen == [2, 2]
    assert changes.read(group="a") == [11, 12]


def test_of_two_readers_of_a_group_the_earlier_one_is_told(changes: Changes) -> None:
    first = Subscription(changes.lake, NAME, Options(group="a"))
    (batch, *_) = first.batches()
    Subscription(changes.lake, NAME, Options(group="a"))
    with pytest.raises(Overtaken):
        first.save(batch.place)


def test_a_condition_chooses_and_a_wrong_one_is_told(changes: Changes) -> None:
    assert changes.read(where="op = 'update' OR (after->>'v') = 'x'") == [11, 12]
    assert changes.read(where="op = 'update'", group="w") == [12]
    assert changes.read(group="w") == [], "what wasn't wanted is read all the same"
    with pytest.raises(QueryRefused, match="--where"):
        changes.read(where="nothing = 1")


def test_a_gap_ends_a_reader_that_does_not_say_otherwise(changes: Changes) -> None:
    changes.window(40, (35, "gap", None, None), (36, "insert", None, {"id": 5}))
    changes.publish(40)
    reader = Subscription(changes.lake, NAME, Options(group="a"))
    found: list[Batch] = []
    with pytest.raises(ChangesMissing, match=r"gap it.*--over-gaps"):
        reader.run(found.append, follow=False)
    assert sum(batch.rows.num_rows for batch in found) == 6
    assert changes.read(group="a", over_gaps=True) == [35, 36]


def test_a_reader_from_before_the_changelog_or_from_what_it_lost_is_told(changes: Changes, tmp_path: Path) -> None:
    with pytest.raises(ChangesMissing, match="begin it"):
        changes.read(after=ChangePlace.behind(changes.stamp(-5)))
    drop_files(changes.lake, TABLE, "commit_ts", changes.stamp(5))
    with pytest.raises(ChangesMissing, match="have left the changelog"):
        changes.read()
    assert changes.read(over_gaps=True) == [11, 12]
    assert changes.read(after=ChangePlace.behind(changes.stamp(11))) == [12]
    with pytest.raises(UsageError, match="has no changelog"):
        Subscription(changes.lake, "shop.other")


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_what_its_tool_writes(changes: Changes, form: str) -> None:
    changes.publish(30)
    rows = next(Subscription(changes.lake, NAME, Options(after=ChangePlace.behind(changes.stamp(11)))).batches()).rows
    update, *_ = (json.loads(line) for line in lines(rows, form))
    whole = {"before": {"id": 1, "v": "a"}, "after": {"id": 1, "v": "b"}}
    at_ms = int(BEGIN.timestamp() * 1000) + 12
    if form == "plain":
        assert update == update | whole | {"op": "update", "database": "shop", "table": "orders", "pos": 12}
    elif form == "debezium":
        assert update == update | whole | {"op": "u", "ts_ms": at_ms}
        assert update["source"]["file"] == "binlog.1"
    elif form == "canal":
        told = {"data": [{"id": "1", "v": "b"}], "old": [{"v": "a"}], "type": "UPDATE", "isDdl": False, "es": at_ms}
        assert update == update | told
    else:
        assert update == update | {"data": whole["after"], "old": {"v": "a"}, "type": "update", "ts": at_ms // 1000}
    only = json.loads(next(lines(rows, form, {"v"})))
    assert '"id":1' not in json.dumps(only, separators=(",", ":"))


def test_the_command_prints_lines_saves_its_place_and_says_what_is_missing(changes: Changes, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE.format(lake=tmp_path / "lake"))
    common = ("tail", str(file), NAME, "--no-follow", "--group", "mail", "--format", "maxwell")
    done = tidegate(*common)
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == ["insert", "insert", "update"]
    changes.publish(30)
    assert [json.loads(line)["type"] for line in tidegate(*common).stdout.splitlines()] == ["delete", "truncate"]
    done = tidegate(*common, "--from", "2020-01-01")
    assert done.returncode == EXIT_ERROR
    assert "--over-gaps" in done.stderr
    (note,) = tidegate("tail", str(file), NAME, "--no-follow", "--columns", "id,vv").stderr.splitlines()
    assert note == "tidegate: note: --columns: no row so far has 'vv'; names are as in the rows"


@pytest.mark.parametrize("since", ["20261122", "2026", "1764500000", "1764500000000", "99999999999999999999"])
def test_a_time_in_another_form_never_means_every_change(since: str) -> None:
    """As a commit_ts they would be of 1970, or of no time at all."""
    with pytest.raises(UsageError, match="is no cut's commit_ts, and not the form of a time; write 2026"):
        instant(since)
    assert instant("0") == 0


@pytest.mark.spark
def test_structured_streaming_gets_each_change_once_beside_maintain(
    changes: Changes, spark: SparkSession, tmp_path: Path
) -> None:
    def stream() -> list[int]:
        source = spark.readStream.format("delta").option("skipChangeCommits", "true")
        rows = source.load(changes.lake.uri(TABLE.path)).writeStream.format("parquet")
        writer = rows.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        writer.start(str(tmp_path / "out")).awaitTermination()
        found = spark.read.parquet(str(tmp_path / "out")).collect()
        return sorted((row.commit_ts >> 18) - int(BEGIN.timestamp() * 1000) for row in found)

    assert stream() == [0, 1, 11, 12, 25, 26]
    state = changes.lake.log(TABLE.path).state()
    pack(changes.lake, TABLE, state, smaller_bytes=1 << 30)
    changes.window(40, (31, "insert", None, {"id": 3}))
    assert stream() == [0, 1, 11, 12, 25, 26, 31]
