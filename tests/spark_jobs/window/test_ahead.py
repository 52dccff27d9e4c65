"""A cut from the future is refused by name, and only where it isn't a server's own clock."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.window.life.ahead import check_not_ahead
from tidegate import config
from tidegate.commit_ts import compose
from tidegate.errors import StreamCorrupt

PUMP = "{conn_id: c, flavour: tidb, listen: ['unix:p.sock']}"
FEED = "{flavour: ticdc, path: feed, protocol: csv, time_zone: UTC}"
SERVER = "{conn_id: c, flavour: mysql}"
POISON = 1 << 62


def app(source: str, resolved_ts: int, cut_ts: int) -> Any:
    text = f"pipeline: p\nlake: {{path: x}}\nsources: {{one: {source}}}\ntables: {{include: ['*.*']}}\n"
    index = SimpleNamespace(resolved=lambda name: {"one": resolved_ts}[name])
    return SimpleNamespace(pipeline=config.parse(text, where="p"), index=index, cut_ts=cut_ts)


def now_ts(seconds: float = 0.0) -> int:
    return compose(int((time.time() + seconds) * 1000))


@pytest.mark.parametrize("source", [PUMP, FEED], ids=["pump", "changefeed"])
def test_what_is_resolved_into_the_future_is_named(source: str) -> None:
    with pytest.raises(StreamCorrupt, match=r"^one: one is resolved up to 4611686018427387904 \(2527-06-23"):
        check_not_ahead(app(source, POISON, now_ts()))
    with pytest.raises(
        StreamCorrupt, match=r"^one: silver has a cut up to .*close that door, then begin the lake anew"
    ):
        check_not_ahead(app(source, now_ts(), POISON))


def test_a_cluster_that_is_a_little_ahead_and_a_server_with_a_clock_of_its_own_are_believed() -> None:
    check_not_ahead(app(PUMP, now_ts(60), now_ts(60)))
    check_not_ahead(app(SERVER, now_ts(86400), now_ts(86400)))
