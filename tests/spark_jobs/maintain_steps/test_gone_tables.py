"""The log of a table that is gone: it has the smallest and largest values of files, and goes by age as they do."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from pyspark.sql import SparkSession

from spark_jobs import maintain
from spark_jobs.maintenance import Maintenance
from tests.support.stored import places_of
from tidegate import config, tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import add
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import own_ts
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape

PATH, APP, PERSON = "silver/d/t", "tidegate/p/d.t", "ada-4711@example"
TEXT = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"


def test_values_leave_the_log_of_a_table_whose_files_are_gone(tmp_path: Path) -> None:
    """Dropped at the source, or renamed: a cut-over leaves such tables each time."""
    lake = LakeFiles(str(tmp_path))
    log = lake.log(PATH)
    create_silver(log, SilverShape((SilverColumn("mail", "string"),), ("mail",)))
    stats = json.dumps({"numRecords": 1, "minValues": {"mail": PERSON}, "maxValues": {"mail": PERSON}})
    file = {"path": "a.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "stats": stats}
    log.commit(log.state(), Change([add(file, data_change=True)], "UPSERT", {APP: 100}))
    gone = {"path": "a.parquet", "deletionTimestamp": 1, "dataChange": True, "stats": stats}
    state = log.commit(log.state(), Change([{"remove": gone}], "DELETE", {f"{APP}/ddl/s.d.t/rows": 200}))
    row = {"cut_ts": 300, "applied_ts": 300, "state": "active", "published_at": datetime.now(UTC)}
    own = {"table": "d.t", "state": "dropped", "delta_version": state.version, "silver_id": state.table_id}
    rows = [row | {"table": "", "delta_version": -1}, row | own | {"silver_ts": own_ts(state, APP)}]
    control.append(lake, tables.CUTS, rows)
    pipeline, lines = config.parse(TEXT, where="p.yaml"), list[str]()
    assert places_of(tmp_path, PERSON) == {"silver"}
    versions = list[int]()
    for _ in range(8):
        for path in (tmp_path / PATH / "_delta_log").iterdir():
            at = path.stat().st_mtime - 20 * 86_400
            os.utime(path, (at, at))
        lake.log(PATH).forget()
        job = Maintenance(cast("SparkSession", None), pipeline, lake, lines.append)
        for table in maintain.silver_tables(job, None):
            maintain._maintain(job, table)
        assert not job.troubles
        versions.append(lake.log(PATH).state().version)
    assert places_of(tmp_path, PERSON) == set()
    assert set(versions) == {state.version, state.version + 1}, "it stays as it is then"
    assert lake.log(PATH).state().schema == state.schema
