"""The shards of a rebuilt table are those that the pipeline file keeps."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.rebuild import Rebuild
from tests.support.event_log import Log
from tidegate import config
from tidegate.table_names import Physical


def test_a_shard_that_the_file_leaves_out_is_not_in_a_rebuilt_table(tmp_path: Path) -> None:
    log = Log(tmp_path)
    routes = "tables: {routes: [{match: 'shop.t_.*', to: shop.all}], exclude: ['shop.t_9'], "
    log.file.write_text(log.file.read_text().replace("tables: {", routes))
    for name in ("t_1", "t_9"):
        log.send("one", f"CREATE TABLE shop.{name} (id INT NOT NULL PRIMARY KEY)")
    log.level()
    app = log.apply()
    assert app.names.flows()["shop.all"] == {Physical("one", "shop", "t_1")}
    plan = Rebuild.plan(config.load(log.file), log.lake, "shop.all", "", "")
    assert plan.physical == {Physical("one", "shop", "t_1")}
