"""What a published cut says of a table that catches up: no Spark, only the control tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_jobs.application import ACTIVE, HELD, RELEASED, Application, Place, TableState, TableWindow, Window
from spark_jobs.steps.publish_cut import publish_cut
from tidegate import config
from tidegate.lake.bronze_index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.schema.history import SchemaHistory
from tidegate.tables import DDL_APPROVED


def test_a_released_table_stays_released_with_its_approval_until_a_window_reaches_the_cut(tmp_path: Path) -> None:
    text = f"pipeline: shop\nlake: {{path: {tmp_path}}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\n"
    spark: Any = None
    lake = LakeFiles(str(tmp_path))
    app = Application(
        spark, config.parse(text + "tables: {include: ['d.*']}\n", where="shop.yaml"), lake, BronzeIndex(lake)
    )
    app.histories = {"s": SchemaHistory("s")}
    place = Place("s", "d", "t", "b.000001", 300, 30, "ALTER TABLE t DROP a")
    released = TableState(RELEASED, error=DDL_APPROVED, applied_ts=10, place=place)
    app.cut_ts = 90
    app.record_states({"d.t": released, "d.waits": TableState(HELD, "why", "SchemaMismatch", 5, place)})
    for cut_ts, expected in ((50, RELEASED), (90, ACTIVE)):
        low_ts = app.mark("d.t")
        window = Window(low_ts, cut_ts, [], catches_up={"d.t": {("s", "d", "t")}})
        window.tables["d.t"] = TableWindow("d.t", "d", "t", routed=False, after_ts=low_ts)
        publish_cut(app, window)
        again = Application(spark, app.pipeline, lake, BronzeIndex(lake))
        again.refresh()
        state = again.states["d.t"]
        assert (state.state, state.applied_ts) == (expected, cut_ts)
        assert (state.error, state.place) == ((DDL_APPROVED, place) if expected == RELEASED else ("", None))
        assert again.states["d.waits"] == TableState(HELD, "why", "SchemaMismatch", 5, place)
        assert app.cut_ts == 90, "what is below the published cut publishes nothing new"
