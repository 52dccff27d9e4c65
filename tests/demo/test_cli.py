"""The command line: quick help, one line per error, exit codes 0, 1, 2; status as JSON and for people.

In:  `tidegate` as a user runs it, once in a process of its own.
Out: what is printed, and the exit code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.command import tidegate
from tests.support.servers import ROOT
from tidegate import config, errors, tables
from tidegate.cli import main
from tidegate.commit_ts import compose
from tidegate.home import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_TRANSIENT, EXIT_USAGE
from tidegate.lake import control
from tidegate.lake.files import LakeFiles

PIPELINE = """pipeline: shop
lake: {{path: {lake}}}
sources: {{main: {{conn_id: shop_db, flavour: mysql}}}}
tables: {{include: ["shop.*"]}}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE.format(lake=tmp_path / "lake"))
    return file


def test_help_lists_every_command_and_imports_nothing_heavy() -> None:
    heavy = ("pyarrow", "numba", "deltalake", "duckdb", "pydantic", "pymysql", "pyspark", "airflow")
    script = (
        "import sys\nfrom tidegate.cli import main\n"
        "try:\n    main.run(['--help'])\nexcept SystemExit as end:\n    code = end.code\n"
        f"print(code, [name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *lines, last = done.stdout.strip().splitlines()
    assert last == "0 []"
    for name in main.COMMANDS:
        assert any(line.split()[1:2] == [name] for line in lines), f"{name} is not in the help"


@pytest.mark.parametrize("name", main.COMMANDS)
def test_each_command_that_is_listed_exists_and_explains_itself(name: str) -> None:
    command = main.load(name)
    assert command.help
    assert main.COMMANDS[name][2].endswith(".")


def test_unknown_pipeline_is_one_line_that_names_the_known_ones() -> None:
    script = str(Path(sys.executable).parent / "tidegate")
    done = subprocess.run([script, "status", "nosuch"], capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_USAGE
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("tidegate: ")
    assert "nosuch" in line
    assert "demo" in line


def test_unknown_key_is_one_line_with_file_line_and_key(pipeline: Path) -> None:
    pipeline.write_text(pipeline.read_text() + "captur: {}\n")
    for command in ("status", "apply", "up"):
        done = tidegate(command, str(pipeline))
        assert done.returncode == EXIT_USAGE
        (line,) = done.stderr.splitlines()
        assert f"{pipeline}:5: captur: unknown key" in line
        assert "known keys here" in line


def test_up_without_the_connection_names_the_variable_to_set(pipeline: Path) -> None:
    done = tidegate("up", str(pipeline))
    assert done.returncode == EXIT_USAGE
    (line,) = done.stderr.splitlines()
    assert "AIRFLOW_CONN_SHOP_DB" in line


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UsageError("w"), EXIT_USAGE),
        (errors.ConfigError("w"), EXIT_USAGE),
        (errors.SourceRefused("w"), EXIT_ERROR),
        (errors.LakeUnavailable("w"), EXIT_TRANSIENT),
        (KeyboardInterrupt(), EXIT_INTERRUPTED),
    ],
)
def test_an_error_has_an_exit_code_and_no_traceback(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as ended:
        main.run([])
    assert ended.value.code == code
    assert "Traceback" not in capsys.readouterr().err


def test_status_of_a_lake_without_anything_is_empty(pipeline: Path) -> None:
    done = tidegate("status", str(pipeline), "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["cut_ts"], found["lag_seconds"], found["tables"], found["nothing_missing"]) == (0, None, [], False)
    (source,) = found["sources"]
    assert "AIRFLOW_CONN_SHOP_DB" in source["server"]["error"]
    shown = tidegate("status", str(pipeline), "--state-dir", str(pipeline.parent)).stdout
    assert "nothing is applied yet" in shown
    assert "nothing was ever captured into it: is capture running?" in " ".join(shown.split())


def _lake_with_a_held_table(lake: LakeFiles) -> None:
    now = pa.scalar(0, pa.timestamp("us", tz="UTC")).as_py()
    segment = {
        "source": "main", "day": date(1970, 1, 1), "kind": "binlog", "server_id": 1, "server_uuid": "u",
        "file": "binlog.000007", "start_pos": 4, "gtid_executed": "0-1-9", "prev_commit_ts": 0, "min_commit_ts": 5,
        "event_count": 3, "txn_count": 1, "tables": ["shop.a"],
        "flags": 0, "context": b"", "payload": b"12345", "payload_crc32c": 0, "captured_at": now,
        "min_start_ts": None, "max_start_ts": None,
    }  # fmt: skip
    schema = pa.schema([field.with_nullable(True) for field in tables.SEGMENTS.schema])
    for seq in (1, 2):
        row = segment | {"seq": seq, "end_pos": 100 * seq, "max_commit_ts": 10 * seq, "resolved_ts": 10 * seq}
        rows = pa.Table.from_pylist([row], schema=schema)
        write_deltalake(lake.uri(tables.SEGMENTS.path), rows, mode="append", partition_by=["source", "day"])
    cut = {"delta_version": -1, "applied_ts": 20, "state": "active", "published_at": now, "cut_ts": 20}
    cuts = [
        {**cut, "table": ""},
        {**cut, "table": "shop.a", "delta_version": 3},
        {**cut, "table": "shop.b", "applied_ts": 10, "state": "held"},
    ]
    control.append(lake, tables.CUTS, cuts)
    held = {
        "pipeline": "shop",
        "table": "shop.b",
        "state": "held",
        "reason": "shop.b: why; do that",
        "cause": "ddl_not_read",
        "place_source": "main",
        "place_database": "shop",
        "place_table": "b",
        "place_file": "binlog.000007",
        "place_pos": 150,
        "place_at_ts": 12,
        "place_ddl": "ALTER TABLE b\n  [odd]" + " x" * 100,
    }
    control.append(lake, tables.TABLE_STATES, [{**held, "commit_ts": 10, "recorded_at": now}])


def test_status_says_where_sources_and_tables_are_and_why_one_is_held(pipeline: Path, tmp_path: Path) -> None:
    _lake_with_a_held_table(LakeFiles(str(tmp_path / "lake")))
    done = tidegate("status", str(pipeline), "--json")
    assert done.returncode == EXIT_ERROR, "a held table is a difference"
    found = json.loads(done.stdout)
    assert found["cut_ts"] == 20
    (source,) = found["sources"]
    assert (source["seq"], source["segments"], source["file"], source["end_pos"]) == (2, 2, "binlog.000007", 200)
    assert (source["gtid_executed"], source["resolved_ts"], source["max_commit_ts"]) == ("0-1-9", 20, 20)
    assert [(t["table"], t["state"], t["applied_ts"], t["reason"]) for t in found["tables"]] == [
        ("shop.a", "active", 20, ""),
        ("shop.b", "held", 10, "shop.b: why; do that"),
    ]
    told = found["tables"][1]
    assert (told["file"], told["pos"], told["since"]) == ("binlog.000007", 150, "1970-01-01T00:00:00+00:00")
    assert told["ddl"].startswith("ALTER TABLE b [odd] x")
    assert told["ddl"].endswith(" ...")
    assert told["way_out"].startswith("tidegate schema refresh shop shop.b; or tidegate schema judge shop main binlog")
    shown = tidegate("status", str(pipeline)).stdout
    assert all(len(line) <= 80 for line in shown.splitlines()), "as wide as a pipe's default"
    words = " ".join(shown.split())
    assert "binlog.000007:200" in words
    assert "shop.b is held since 1970-01-01T00:00:00+00:00: binlog.000007:150: shop.b: why; do that; at:" in words
    assert "-> tidegate schema refresh shop shop.b" in words
    for once in ("ALTER TABLE b [odd]", "shop.b: why"):
        assert words.count(once) == 1, f"{once} is said once"
    assert compose(1) > 20  # the lags shown are large, not negative


def test_the_demo_pipeline_and_the_examples_of_the_papers_are_good_files() -> None:
    assert config.load(ROOT / "include" / "pipelines" / "demo.yaml").pipeline == "demo"
    assert config.load(ROOT / "docker" / "pipelines" / "shop.yaml").tables.keeps("mysql", "user") is False
    for paper in ("README.md", "docs/pipeline.md"):
        example = (ROOT / paper).read_text().split("```yaml\n", 1)[1].split("```", 1)[0]
        assert config.parse(example, where=paper).pipeline == "shop"
