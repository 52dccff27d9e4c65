"""Whether silver is what several servers have: all rows at the newest cut, each server's money at any.

In:  the lake, the shops; `tidegate query`'s room reads silver, apart from Spark.
Out: equal(), money(), unanswered(), unasked(); the first two raise SilverDiffers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

import polars as pl

from tests.soak.shards.shop import DATABASE_OF_ALL, MONEY, Shop
from tests.soak.world import SilverDiffers
from tidegate import tables
from tidegate.config import Pipeline
from tidegate.errors import CutForgotten
from tidegate.lake import control
from tidegate.lake.cuts.published import known_cuts
from tidegate.lake.files import LakeFiles
from tidegate.query.pinned import PinnedCut
from tidegate.snapshot.progress.automatic import outlooks, waiting
from tidegate.snapshot.progress.requests import told
from tidegate.tables.prewrites_table import PrewriteState

ORDERS: Final = f"{DATABASE_OF_ALL}.orders"
_CUTS: Final = 16
Row = tuple[object, ...]


def equal(lake: LakeFiles, pipeline: str, shops: Sequence[Shop]) -> int:
    """Every row of silver is at the servers, and every row of theirs in silver; how many."""
    rows = 0
    with PinnedCut.at(lake, pipeline) as cut:
        for name, theirs in [(ORDERS, _orders(shops)), *((shop.accounts, _accounts(shop)) for shop in shops)]:
            if not theirs:
                continue
            if name not in cut.cut.tables:
                raise SilverDiffers(
                    f"{name} isn't in the newest cut: {cut.cut.missing.get(name, 'nobody says why')}", 1
                )
            frame = cut.polars(name).collect()
            names = sorted({column for row in theirs for column, _ in row})
            if lacking := set(names) - set(frame.columns):
                raise SilverDiffers(f"{name} has no columns {sorted(lacking)}", 1)
            ours = Counter(tuple(zip(names, row, strict=True)) for row in frame.select(names).rows())
            wanted = Counter(tuple(zip(names, map(dict(row).get, names), strict=True)) for row in theirs)
            if ours != wanted:
                lost, more = list((wanted - ours).elements()), list((ours - wanted).elements())
                raise SilverDiffers(
                    f"{name} at cut {cut.cut.cut_ts}: {len(lost)} rows lack, {len(more)} are too many or others:"
                    f" {sorted(lost, key=str)[:3]} / {sorted(more, key=str)[:3]}",
                    1,
                )
            rows += len(theirs)
    return rows


def _orders(shops: Sequence[Shop]) -> list[Row]:
    return [
        row
        for shop in shops
        for database, table in shop.shards
        for row in _rows(shop, f"{database}.{table}", zip(tables.SHARDS, (shop.source, database, table), strict=True))
    ]


def _accounts(shop: Shop) -> list[Row]:
    return _rows(shop, shop.accounts, ())


def _rows(shop: Shop, name: str, more: object) -> list[Row]:
    shard = tuple(more)  # type: ignore[call-overload]
    columns = [str(row[0]) for row in shop.server.query(f"SHOW COLUMNS FROM {name}")]
    return [(*shard, *zip(columns, row, strict=True)) for row in shop.server.query(f"SELECT * FROM {name}")]


def money(lake: LakeFiles, pipeline: str, shops: Sequence[Shop], since: int, rng: random.Random) -> tuple[int, int]:
    """At some cuts after `since` each server has the money that it always had; how many could be read, and of how many.

    A cut at which `orders` isn't complete says so, and gives no sum.
    """
    stamps = [stamp for stamp in known_cuts(lake) if stamp > since]
    chosen = sorted(rng.sample(stamps, min(_CUTS, len(stamps))))
    read = 0
    for stamp in chosen:
        try:
            with PinnedCut.at(lake, pipeline, stamp) as cut:
                if {ORDERS, *(shop.accounts for shop in shops)} - cut.cut.tables.keys():
                    continue
                sums = cut.polars(ORDERS).group_by(tables.SHARD_SOURCE).agg(pl.col("amount").sum()).collect()
                orders: dict[str, Decimal] = dict(sums.rows())
                for shop in shops:
                    kept = cut.polars(shop.accounts).select(pl.col("amount").sum()).collect().item()
                    if orders[shop.source] + kept != MONEY:
                        raise SilverDiffers(
                            f"{shop.source} at cut {stamp}: {orders[shop.source]} + {kept} isn't {MONEY}", 1
                        )
        except CutForgotten:
            continue
        read += 1
    return read, len(chosen)


def unanswered(lake: LakeFiles) -> list[str]:
    """Branches that silver waits for."""
    rows = control.newest(lake, tables.PREWRITES, by=tables.PREWRITES.key, order=["answer_ts", "recorded_at"])
    over = (PrewriteState.COMMITTED, PrewriteState.ROLLED_BACK)
    return [f"{row['source']} {row['id']}: {row['state']}" for row in rows.to_pylist() if row["state"] not in over]


def unasked(lake: LakeFiles, pipeline: Pipeline, waits: Collection[str]) -> list[str]:
    """Those of the tables that lack rows and that no snapshot reads now, or will by itself."""
    known = told(lake, pipeline.pipeline)
    going = {".".join(pipeline.tables.logical(*one.name)[:2]) for one in known if not one.state.is_over}
    found = outlooks(pipeline, waiting(pipeline, lake), known, datetime.now(UTC))
    later = {name for name, one in found.items() if one.under_way or one.due_at is not None}
    return sorted(set(waits) - going - later)
