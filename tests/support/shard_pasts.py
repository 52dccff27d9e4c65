"""The history of a table of shards: each shard's versions against the states that its own server showed.

In:  Shards whose pipeline keeps their history, and a `tick` in each of their databases; work as SQL.
Out: ShardPast: a Past of one database's shards; its moments also lie between the times that this process saw before and
     after each transaction. move(): rows that go from a shard to another, on two servers, in either order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.integration.shards.test_shards import Shards
from tests.kit.road import Road
from tests.support.past import Past, Row
from tests.support.readers import READERS
from tidegate import config, tables
from tidegate.commit_ts import physical_ms

_CLOCK_SECONDS = 0.1  # a server's clock isn't read when ours is


@dataclass(slots=True)
class ShardPast(Past):
    """logical: the table of the shards. seen_between: of each state, our time before and after its transaction."""

    source: str = ""
    logical: str = ""
    seen_between: list[tuple[float, float]] = field(default_factory=list)

    def done(self, *statements: str) -> None:
        before = time.time()
        Past.done(self, *statements)
        self.seen_between.append((before, time.time()))

    def versions_of(self, road: Road, name: str) -> list[Row] | None:
        rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(*self.logical.split(".")))).to_pylist()
        return self.own(rows, name)

    def silver_of(self, name: str) -> str:
        del name
        return self.logical

    def own(self, rows: list[Row], name: str) -> list[Row]:
        return [row for row in rows if tuple(row[cell] for cell in tables.SHARDS) == (self.source, self.database, name)]

    def check_times(self, road: Road) -> None:
        """MariaDB's log has whole seconds."""
        moments = self.moments(road)
        for number, (before, after) in enumerate(self.seen_between):
            at = physical_ms(moments[number]) / 1000
            assert int(before - _CLOCK_SECONDS) <= at <= after + _CLOCK_SECONDS, (number, before, at, after)


def keep_history(road: Shards, writer: str, more: str = "") -> None:
    """more: keys of `tables`, each behind a comma."""
    text = road.file.read_text().replace("routes:", f"history: ['shop_\\d+.*']{more}, routes:")
    road.file.write_text(text.replace("apply: {mode: batch", f"apply: {{mode: batch, writer: {writer}"))
    road.pipeline = config.load(road.file)


def pasts_of(road: Shards, *more: str) -> list[ShardPast]:
    """One for each database of shards. more: shards that come later."""
    made = []
    for source, database in sorted({shard[:2] for shard in road.shards}):
        names = [table for of, at, table in road.shards if (of, at) == (source, database)]
        past = ShardPast(road.servers[source], database, [*names, *more], source=source, logical=road.logical)
        past.begin()
        made.append(past)
    return made


def work(rng: random.Random, names: Sequence[str]) -> list[str]:
    """The statements of a transaction over some shards of a database."""
    made = []
    for _ in range(rng.choice([1, 1, 2, 4])):
        key, other, name = rng.randrange(12), rng.randrange(12), rng.choice(names)
        made.append(
            rng.choice(
                [
                    f"REPLACE INTO {name} (id, place, note) VALUES ({key}, {other}, 'r{other}')",
                    f"UPDATE {name} SET place = {rng.randrange(100)} WHERE id < {key}",
                    f"UPDATE IGNORE {name} SET id = {other} WHERE id = {key}",
                    f"DELETE FROM {name} WHERE id = {key}",
                ]
            )
        )
    return made


def move(rng: random.Random, giver: tuple[ShardPast, str], taker: tuple[ShardPast, str], key: int) -> None:
    """A row goes to another shard: it is on both for a while, or on none."""
    steps = [
        (giver[0], f"DELETE FROM {giver[1]} WHERE id = {key}"),
        (taker[0], f"REPLACE INTO {taker[1]} (id, place, note) VALUES ({key}, -1, 'moved')"),
    ]
    rng.shuffle(steps)
    for past, statement in steps:
        past.done(statement)
