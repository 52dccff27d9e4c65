"""Statements and rows of two sources at one commit_ts, in a table of shards: no order and no kill loses a row.

In:  events of two sources, replayed by silver's writers, and by plain dicts.
Out: both have the same rows, however the windows are cut, and wherever apply is killed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.session.failures import TablesFailed
from tests.spark_jobs.merge.test_silver_writer import DEL, UP, Rows
from tests.spark_jobs.positional.test_writers_agree import NettingShop
from tests.support.readers import by_duckdb
from tidegate import tables

pytestmark = pytest.mark.spark

Change = tuple[str, int, dict[str, Any]]  # table, op, row
Event = tuple[int, str, str | Change]  # commit_ts, source, a statement or a change
AT = 20  # the tie

TWO: list[Event] = [
    (10, "s", "CREATE TABLE o_1 (id INT PRIMARY KEY, a INT)"),
    (11, "r", "CREATE TABLE o_2 (id INT PRIMARY KEY, a INT)"),
    (12, "s", ("o_1", UP, {"id": 1, "a": 1})),
    (13, "r", ("o_2", UP, {"id": 1, "a": 2})),
]
ROW: Event = (AT, "r", ("o_2", UP, {"id": 7, "a": 7}))
RENAMED: Event = (AT, "s", "RENAME TABLE o_1 TO o_3")
LATER: Event = (24, "s", ("o_3", UP, {"id": 4, "a": 4}))


SCENARIOS: dict[str, list[Event]] = {
    "a row": [*TWO, RENAMED, ROW, LATER],
    "rows before, too": [*TWO, (18, "s", ("o_1", UP, {"id": 2, "a": 2})), RENAMED, ROW, LATER],
    "two renames": [
        *TWO, RENAMED, (AT, "r", "RENAME TABLE o_2 TO o_4"), LATER, (25, "r", ("o_4", DEL, {"id": 1, "a": 2})),
    ],
    "a swap, and a row": [
        *TWO, (14, "s", "CREATE TABLE o_5 (id INT PRIMARY KEY, a INT)"), (15, "s", ("o_5", UP, {"id": 1, "a": 5})),
        (AT, "s", "RENAME TABLE o_1 TO x, o_5 TO o_1, x TO o_5"), ROW, (24, "s", ("o_5", UP, {"id": 4, "a": 4})),
    ],
    "a column": [*TWO, RENAMED, (AT, "r", "ALTER TABLE o_2 ADD COLUMN n INT DEFAULT 7"), LATER],
    "TRUNCATE": [*TWO, RENAMED, (AT, "r", "TRUNCATE TABLE o_2"), LATER, (25, "r", ("o_2", UP, {"id": 9, "a": 9}))],
    "DROP": [*TWO, RENAMED, (AT, "r", "DROP TABLE o_2"), LATER],
    "CREATE": [*TWO, RENAMED, (AT, "r", "CREATE TABLE o_6 (id INT PRIMARY KEY, a INT)"), LATER],
    "out of the shards, and into them": [
        *TWO, (14, "r", "CREATE TABLE t (id INT PRIMARY KEY, a INT)"), (15, "r", ("t", UP, {"id": 1, "a": 5})),
        (AT, "s", "RENAME TABLE o_1 TO u"), (AT, "r", "RENAME TABLE t TO o_7"),
        (24, "s", ("u", UP, {"id": 4, "a": 4})), (25, "r", ("o_7", UP, {"id": 4, "a": 4})),
    ],
    "into the shards, and a row": [
        *TWO, (14, "s", "CREATE TABLE t (id INT PRIMARY KEY, a INT)"), (15, "s", ("t", UP, {"id": 1, "a": 5})),
        (AT, "s", "RENAME TABLE t TO o_7"), ROW, (24, "s", ("o_7", UP, {"id": 4, "a": 4})),
    ],
    "out of the shards, and a row": [
        *TWO, (AT, "s", "RENAME TABLE o_1 TO u"), ROW, (24, "s", ("u", UP, {"id": 4, "a": 4})),
    ],
    "a swap with a table beside, and a rename": [
        *TWO, (14, "s", "CREATE TABLE t (id INT PRIMARY KEY, a INT)"), (15, "s", ("t", UP, {"id": 1, "a": 5})),
        (AT, "s", "RENAME TABLE t TO x, o_1 TO t, x TO o_1"), (AT, "r", "RENAME TABLE o_2 TO o_4"),
        (24, "s", ("o_1", UP, {"id": 4, "a": 4})), (25, "r", ("o_4", UP, {"id": 5, "a": 5})),
    ],
}  # fmt: skip


NO_KEY: list[Event] = [
    (10, "s", "CREATE TABLE o_1 (id INT, a INT)"),
    (11, "r", "CREATE TABLE o_2 (id INT, a INT)"),
    *TWO[2:],
    (AT, "s", "ALTER TABLE o_1 ADD COLUMN n INT DEFAULT 7"),
    ROW,
    (24, "s", ("o_1", UP, {"id": 4, "a": 4, "n": 4})),
]


class Shards(NettingShop):
    """Two sources, whose tables o_1, o_2 ... are shards of o."""

    SOURCES = ("s", "r")


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.fixture(params=["merge", "positional"])
def shards(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Callable[[], Shards]:
    return lambda: Shards(spark, tmp_path, request.param, routes="[{match: 'd.o_\\d+', to: d.o}]")


def window(it: Shards, events: Sequence[Event], low: int, cut: int) -> None:
    """The application has met all statements up to the cut."""
    changes: dict[str, Rows] = {}
    for commit_ts, source, event in events:
        if isinstance(event, str):
            if commit_ts <= cut and (source, commit_ts) not in it.times:
                it.ddl(commit_ts, event, source)
        elif low < commit_ts <= cut:
            table, op, row = event
            name = table if source == "s" else f"{source}.{table}"
            changes.setdefault(name, []).append((commit_ts, op, row))
    done = it.apply(low, cut, changes)
    assert not done.held, done.held


def replayed(events: Sequence[Event], upto: int) -> dict[str, list[tuple[Any, ...]]]:
    """What a plain replay gives each silver table: (source, table, row) of the shards, (row,) of others."""
    rows: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for commit_ts, source, event in sorted(events, key=lambda event: event[0]):
        if commit_ts > upto:
            continue
        if not isinstance(event, str):
            table, op, row = event
            if op == UP:
                rows[source, table][row["id"]] = row
            else:
                rows[source, table].pop(row["id"], None)
        elif event.startswith("RENAME TABLE "):
            for old, new in re.findall(r"(\w+) TO (\w+)", event):
                rows[source, new] = rows.pop((source, old))
        elif match := re.fullmatch(r"ALTER TABLE (\w+) ADD COLUMN (\w+) INT DEFAULT (\d+)", event):
            table, column, value = match.groups()
            rows[source, table] = {id_: {**row, column: int(value)} for id_, row in rows[source, table].items()}
        elif match := re.match(r"DROP TABLE (\w+)", event):
            del rows[source, match[1]]
        else:
            match = re.match(r"(?:CREATE|TRUNCATE) TABLE (\w+)", event)
            assert match is not None, event
            rows[source, match[1]] = {}
    silver: dict[str, list[tuple[Any, ...]]] = {}
    for (source, table), of in rows.items():
        is_shard = table.startswith("o_")
        silver.setdefault("o" if is_shard else table, []).extend(
            ((source, table, shown(row)) if is_shard else (shown(row),)) for row in of.values()
        )
    return {name: sorted(of) for name, of in silver.items()}


def shown(row: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((n, v) for n, v in row.items() if not n.startswith(tables.SYSTEM_PREFIX) and v is not None))


def in_silver(it: Shards, name: str) -> list[tuple[Any, ...]]:
    rows = by_duckdb(it.app.lake.uri(tables.silver_path("d", name))).to_pylist()
    if name != "o":
        return sorted((shown(row),) for row in rows)
    return sorted((row[tables.SHARD_SOURCE], row[tables.SHARD_TABLE], shown(row)) for row in rows)


def check(it: Shards, events: Sequence[Event], upto: int) -> None:
    wanted = replayed(events, upto)
    assert {name: in_silver(it, name) for name in wanted} == wanted


class Kill:
    """Ends the application after the n-th step of linked tables."""

    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self, point: str) -> None:
        self.left -= 1
        if not self.left:
            raise KilledError(point)


@pytest.mark.parametrize(
    ("events", "cuts"),
    [(SCENARIOS["a row"], (15, AT, 30)), (SCENARIOS["a row"], (AT - 1, 30)), (NO_KEY, (15, AT, 30))],
    ids=["a cut at the rename", "a cut before it", "a column, no key"],
)
def test_a_row_of_one_source_at_the_moment_of_another_ones_statement_is_not_lost(
    shards: Callable[[], Shards], events: list[Event], cuts: tuple[int, ...]
) -> None:
    it, low = shards(), 0
    for cut in cuts:
        window(it, events, low, cut)
        check(it, events, cut)
        low = cut


@pytest.mark.parametrize("what", SCENARIOS)
def test_killed_after_every_step_of_a_tie_no_row_is_lost(
    shards: Callable[[], Shards], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    events, low, kills = SCENARIOS[what], 0, 0
    for cut in (16, AT, 30):
        for count in range(1, 20):
            kill = Kill(count)
            monkeypatch.setattr("spark_jobs.merge.linked.failpoint", kill)
            it = shards()
            try:
                window(it, events, low, cut)
            except TablesFailed:
                if kill.left > 0:
                    raise
                kills += 1
            else:
                break
        check(it, events, cut)
        low = cut
    assert kills > 1


def test_a_take_that_an_older_release_recorded_with_the_rows_goes_on(
    shards: Callable[[], Shards], monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Event] = [
        *TWO,
        RENAMED,
        (24, "s", "RENAME TABLE o_3 TO o_4"),
        (24, "r", ("o_2", UP, {"id": 7, "a": 7})),
    ]
    window(shards(), events, 0, 16)
    with monkeypatch.context() as older:
        older.setattr(SilverWriter, "take_id", SilverWriter.app_id)
        older.setattr("spark_jobs.merge.linked.failpoint", Kill(2))  # after the take
        with pytest.raises(TablesFailed):
            window(shards(), events, 16, AT)
    for low, cut in ((16, AT), (AT, 24)):
        it = shards()
        window(it, events, low, cut)
        check(it, events, cut)
