"""The Pumps of one TiDB with writes of two clusters stop apply: a clone has the same ids of tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.apply_steps.plan_window import next_window
from spark_jobs.window.life.clusters import check_one_cluster
from tidegate import config
from tidegate.errors import StreamCorrupt

SOURCES = ", ".join(
    f"{name}: {{conn_id: {of}, flavour: tidb, listen: ['unix:/{name}']}}" for name, of in zip("abc", "xxy", strict=True)
)
TEXT = f"{{pipeline: p, lake: {{path: l}}, sources: {{{SOURCES}}}, tables: {{include: ['*.*']}}}}"


def app(**clusters: tuple[str, ...]) -> Any:
    refs = {name: [SimpleNamespace(server_uuid=each) for each in of] for name, of in clusters.items()}
    lake, index = SimpleNamespace(root="l"), SimpleNamespace(refs=refs, resolved=lambda _: 0)
    return SimpleNamespace(pipeline=config.parse(TEXT, where="p"), lake=lake, index=index, cut_ts=0)


def test_two_clusters_behind_the_pumps_of_one_are_named() -> None:
    with pytest.raises(StreamCorrupt, match="cluster 7 has written to Pump a, and cluster 9 has written to Pump b"):
        next_window(app(a=("", "7"), b=("9",), c=("8",)))


def test_pumps_of_one_cluster_and_others_of_another_go_on() -> None:
    check_one_cluster(app(a=("", "7"), b=("7", "7"), c=("8",)))
    check_one_cluster(app(a=("", "7"), b=("",)))
    check_one_cluster(app())
