"""The benchmarks' own arithmetic: what is counted, and what the report promises.

In:  made-up runs; child processes of known cost.
Out: CPU seconds of a tree, medians, the JSON's keys, the plot.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks import plot, seed
from benchmarks.cpu import tree_cpu
from benchmarks.figures import KEYS, Row, in_turns, warmed
from benchmarks.mergers import changes_between
from benchmarks.readers import content
from benchmarks.report import Report, publish
from benchmarks.sizes import QUICK

from tidegate import tables

BURN = "import time\nwhile time.process_time() < 0.2: pass\n"


@contextmanager
def begun(program: str) -> Iterator[subprocess.Popen[str]]:
    """It runs that, and waits for the block's end. A tree of its own: this process may have a JVM, which works by
    itself.
    """
    argv = [sys.executable, "-c", f"import subprocess, sys\n{program}\nsys.stdin.read()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as root:
        yield root


def line(root: subprocess.Popen[str]) -> str:
    assert root.stdout is not None
    return root.stdout.readline().strip()


def test_a_childs_child_counts_after_both_have_ended() -> None:
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}], check=True)"
    with begun(f"subprocess.run([sys.executable, '-c', {nested!r}], check=True); print('over', flush=True)") as root:
        assert line(root) == "over"
        assert 0.18 <= tree_cpu(root.pid) < 1.5


def test_processes_that_do_not_count_are_left_out_with_all_below_them() -> None:
    child = f"import sys\n{BURN}print('burnt', flush=True)\nsys.stdin.read()"
    with begun(f"print(subprocess.Popen([sys.executable, '-c', {child!r}]).pid, flush=True)") as root:
        pid = int(line(root))
        assert line(root) == "burnt"
        whole = tree_cpu(root.pid)
        assert whole - tree_cpu(root.pid, {pid}) >= 0.18
        assert tree_cpu(pid, {pid}) >= 0.18, "the root itself is what was asked for"


def test_the_ratio_is_the_median_of_each_turns_own() -> None:
    row = Row("k", "t", "u", ours=[10, 100, 30], theirs=[1, 50, 10])
    assert row.ratio == 3.0
    assert row.as_json()["ours"] == 30
    assert row.as_json()["theirs"] == 10
    assert Row("k", "t", "u", ours=[1.0]).ratio is None


def test_roads_take_turns() -> None:
    order: list[str] = []
    in_turns(2, lambda: order.append("a") or 1.0, lambda: order.append("b") or 1.0)
    assert order == ["a", "b", "a", "b"]


def test_the_json_has_exactly_its_keys_and_says_why_one_is_empty(tmp_path: Path) -> None:
    report = Report(QUICK)
    report.rows.append(Row(KEYS[0], "capture", "MB", [2.0, 4.0], [1.0, 2.0], peer="p"))
    report.rows.append(Row("decode_vs_java_B", "an extra row", "rows", [1.0]))
    report.failures["apply"] = "ValueError: boom"
    report.write(tmp_path)
    found = json.loads((tmp_path / "report.json").read_text())
    assert tuple(found) == KEYS
    assert found[KEYS[0]] | {"ours": 3.0, "theirs": 1.5, "ratio": 2.0, "runs": [2.0, 4.0]} == found[KEYS[0]]
    assert found["apply_1m_into_10m_vs_merge"]["ours"] is None
    assert "boom" in found["apply_1m_into_10m_vs_merge"]["why_missing"]
    page = (tmp_path / "report.md").read_text()
    assert "an extra row" in page
    assert "section apply failed: ValueError: boom" in page


def test_the_plot_is_well_formed_whatever_a_peer_is_called() -> None:
    drawn = ET.fromstring(plot.svg([Row("k", "a < b & c", "u", [0.5, 700.0], [1.0, 1.0], peer='"p" <1>')]))
    texts = [node.text for node in drawn.iter() if node.tag.endswith("text")]
    assert "a < b & c" in texts
    assert len([node for node in drawn.iter() if node.tag.endswith("circle")]) == 2


def test_publishing_replaces_what_stood_between_the_marks_and_nothing_else(tmp_path: Path) -> None:
    report = Report(QUICK, rows=[Row(KEYS[0], "capture", "MB", [2.0], [1.0], peer="p")])
    report.write(tmp_path)
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- latest figures -->\nold\n<!-- end of them -->\nafter\n")
    for _ in range(2):
        publish(tmp_path / "report.md", readme)
        text = readme.read_text()
        assert text.startswith("before\n")
        assert text.endswith("<!-- end of them -->\nafter\n")
        assert "old" not in text
        assert text.count("| capture, MB | 2 | 1 | 2.0x |") == 1


@pytest.mark.parametrize(
    ("figures", "turns"),
    [([10, 40, 100, 104, 9], 4), ([100, 95], 2), ([100, 110], 2), ([1, 2, 4, 8, 16, 32, 64, 128, 256, 512], 8)],
)
def test_a_road_is_warm_when_two_turns_agree_and_has_no_more_than_eight(figures: list[float], turns: int) -> None:
    played = iter(figures)
    assert warmed(lambda: next(played)) == turns


def _table(folder: Path, rows: list[tuple[int, str, int]]) -> Path:
    ids, texts, stamps = zip(*rows, strict=True)
    data = {"id": pa.array(ids, pa.int64()), "c": pa.array(texts), tables.COMMIT_TS: pa.array(stamps, pa.int64())}
    deltalake.write_deltalake(str(folder), pa.table(data))
    return folder


def test_a_peer_gets_the_last_row_of_each_changed_key_and_nothing_else(tmp_path: Path) -> None:
    before = _table(tmp_path / "before", [(1, "a", 1), (2, "b", 1), (3, "c", 1)])
    after = _table(tmp_path / "after", [(1, "a", 1), (2, "B", 9), (4, "d", 9)])
    work = changes_between(before, after, tmp_path / "changes.parquet", 3, 2)
    assert pq.read_table(work.file).to_pylist() == [
        {"id": 2, "c": "B", tables.COMMIT_TS: 9, "gone": False},
        {"id": 3, "c": "c", tables.COMMIT_TS: 1, "gone": True},
        {"id": 4, "c": "d", tables.COMMIT_TS: 9, "gone": False},
    ]
    assert work.after == content(after)
    with pytest.raises(AssertionError, match="2 rows came and 1 went"):
        changes_between(before, after, tmp_path / "again.parquet", 4, 2)


@pytest.mark.parametrize("vectors", [True, False])
def test_a_plain_table_has_the_same_rows_without_clustering(tmp_path: Path, vectors: bool) -> None:
    table = _table(tmp_path / "table", [(1, "a", 1), (2, "b", 1)])
    first = table / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    features = ["deletionVectors", "timestampNtz"]
    for action in actions:
        if "protocol" in action:
            writers = [*features, "clustering", "domainMetadata"]
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7}
            action["protocol"] |= {"readerFeatures": features, "writerFeatures": writers}
        if "metaData" in action:
            action["metaData"]["configuration"] = {"delta.enableDeletionVectors": "true"}
    actions.append({"domainMetadata": {"domain": "delta.clustering", "configuration": "{}", "removed": False}})
    first.write_text("".join(json.dumps(action) + "\n" for action in actions))
    seed.plain(table, tmp_path / "plain", vectors=vectors)
    log = [json.loads(line) for line in (tmp_path / "plain" / "_delta_log" / first.name).read_text().splitlines()]
    protocol = next(action["protocol"] for action in log if "protocol" in action)
    assert protocol["writerFeatures"] == features[0 if vectors else 1 :]
    assert not any("domainMetadata" in action for action in log)
    assert content(tmp_path / "plain") == content(table)
