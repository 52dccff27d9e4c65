"""What an application keeps of table versions for rows that are committed long after they were written."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.spark import no_spark
from tidegate import config
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.segments.prewrites import Prewrite, Prewrites
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State
from tidegate.tables.prewrites_table import PrewriteState

TEXT = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"


def test_a_decided_prewrite_keeps_versions_only_while_a_table_may_stand_below_it(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    app = Application(BackgroundSession(no_spark), config.parse(TEXT, where="p.yaml"), lake, BronzeIndex(lake))
    app.positions.cut_ts = 100
    decided = Prewrite("s", "x", 10, 1, 1, ("d.t",), PrewriteState.COMMITTED, 50, "log", 4, "somebody")
    app.histories.prewrites = {"s": Prewrites("s", [decided])}
    app.forget_versions()
    assert app.histories.floor(app.positions, "s", "d", "t") == 100
    app.states["d.t"] = Standing(State.HELD, cause=Cause.FAULT, applied_ts=40)
    app.forget_versions()
    assert app.histories.floor(app.positions, "s", "d", "u") == 10
    app.states["d.t"] = Standing(State.ACTIVE, applied_ts=40)
    app.histories.prewrites = {"s": Prewrites("s", [Prewrite("s", "x", 10, 1, 1, ("d.t",), PrewriteState.PARKED, 50)])}
    app.forget_versions()
    assert app.histories.floor(app.positions, "s", "d", "t") == 10
