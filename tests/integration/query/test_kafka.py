"""What docs/changelog.md says of Kafka, done word for word: a changelog in a real broker, each key's changes in order.

In a process of its own, since Spark takes its sink from the class path; it is killed in mid-batch, and goes on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit import kafka
from tests.kit.changelogs import changes_of
from tests.support.seeds import LONG
from tests.support.servers import ROOT
from tidegate.changelog.changelog_table import PLACE, ROW_OPS, Appending, app_id, as_rows, changelog, told
from tidegate.changelog.packing import pack_in_order
from tidegate.commit_ts import compose
from tidegate.lake import control
from tidegate.lake.files import LakeFiles

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1800)]

TABLE = changelog("shop", "orders")
KILLED = 9
SENDS = """
import os, sys
from pyspark.sql import DataFrameWriter
from tests.kit.spark import session

jars, killed_at = sys.argv[1], int(sys.argv[2])
with session({"spark.jars": jars}) as spark:
    save, saved = DataFrameWriter.save, []
    def counted(writer, *given, **named):
        save(writer, *given, **named)
        saved.append(1)
        if len(saved) == killed_at:
            os._exit(9)
    DataFrameWriter.save = counted
    exec(compile(sys.stdin.read(), "docs/changelog.md", "exec"))
    sending.processAllAvailable()
    sending.stop()
"""
READS = """
import json, sys
from tests.kit.spark import session

with session({"spark.jars": sys.argv[1]}) as spark:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", sys.argv[2])
    rows = reader.option("subscribe", "shop.orders").load()
    for row in rows.selectExpr("string(key)", "string(value)", "partition", "offset").collect():
        print("ROW " + json.dumps(row.asDict()))
"""


def window(lake: LakeFiles, first: int, *changes: tuple[str, dict[str, Any] | None, dict[str, Any] | None]) -> None:
    """A commit of the changelog, in files of three changes."""
    appending = Appending(lake, TABLE, app_id("shop", "shop.orders"))
    rows = []
    for number, (op, before, after) in enumerate(changes):
        sides = {"before": before and json.dumps(before), "after": after and json.dumps(after)}
        rows.append(told(op, ("main", "shop", "orders"), compose(1_763_000_000_000 + first + number)) | sides)
    for at in reversed(range(0, len(rows), 3)):  # the last changes in the oldest file
        appending.add(as_rows(rows[at : at + 3]))
        appending.write()
    appending.commit(compose(1_763_000_000_000 + first + len(rows)))


def run(code: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, ",".join(map(str, kafka.jars())), *arguments]
    return subprocess.run(
        command,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": "."},
    )


@pytest.mark.skipif(not LONG, reason="fetches a broker: make test-long")
def test_each_keys_changes_are_in_kafka_in_order_whoever_is_killed(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    steps = [{"id": 1, "v": number} for number in range(12)]
    updates = [("update", steps[number], steps[number + 1]) for number in range(11)]
    window(
        lake, 0, ("begin", None, None), ("insert", None, steps[0]), ("insert", None, {"id": 2, "v": 0}), *updates[:6]
    )
    for number in range(8):
        window(lake, 100 + number, ("insert", None, {"id": 10 + number, "v": 0}))
    found = control.load(lake, TABLE)
    assert found is not None
    pack_in_order(lake, TABLE, found)  # old changes in the youngest file
    (text,) = re.findall(r"```python\n(PLACE = .*?)```", (ROOT / "docs/changelog.md").read_text(), re.DOTALL)
    with kafka.broker(tmp_path) as address:
        code = text.replace("broker:9092", address).replace("lakes/shop", lake.root)
        done = run(SENDS, "0", given=code)
        assert done.returncode == 0, done.stderr
        window(lake, 200, *updates[6:], ("update", {"id": 2, "v": 0}, {"id": 20, "v": 0}), ("delete", steps[11], None))
        assert run(SENDS, "1", given=code).returncode == KILLED  # the batch is in Kafka, and Spark doesn't know
        window(lake, 300, ("insert", None, {"id": 30, "v": 1}), ("update", {"id": 20, "v": 0}, {"id": 20, "v": 1}))
        done = run(SENDS, "0", given=code)
        assert done.returncode == 0, done.stderr
        done = run(READS, address)
        assert done.returncode == 0, done.stderr
    rows = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("ROW ")]
    got: dict[str | None, list[dict[str, Any]]] = {}
    repeats = 0
    for row in sorted(rows, key=lambda row: (row["partition"], row["offset"])):
        change = json.loads(row["value"])
        mine = got.setdefault(row["key"], [])
        if mine and place(change) <= place(mine[-1]):  # as a consumer tells what comes again
            repeats += 1
            continue
        mine.append(change)
    assert repeats, "the batch that was in Kafka when Spark was killed wasn't written again"
    wanted: dict[str | None, list[tuple[Any, ...]]] = {}
    for change in changes_of(lake, "shop", "orders"):
        keys = {str(change[side]["id"]) for side in ("before", "after") if change[side]}
        for key in keys if change["op"] in ROW_OPS else (None,):
            wanted.setdefault(key, []).append(place(change))
    assert {key: [place(change) for change in mine] for key, mine in got.items()} == wanted
    assert len(wanted["20"]) == 2, "an update that changes the key stands under both"
    assert [json.loads(change["after"])["v"] for change in got["1"][:-1]] == list(range(12))


def place(change: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(change[name] for name in PLACE)
