"""What Airflow's DAG processor makes of dags/ and a folder of pipeline files.

In:  two good pipeline files, one broken, one whose lake is another's; dags/ parsed in a process of its own.
Out: ids, schedules, params and manuals as a user sees them, and how long a parse takes.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import ROOT
from tidegate import tables
from tidegate.config import Apply, Capture, Maintain, Snapshot, Verify
from tidegate.limits import JOB_HANGS_SECONDS, TASK_ATTEMPTS_MAX

SHOP = """
pipeline: shop
lake: {path: lakes/shop}
sources:
  main: {conn_id: shop_db, flavour: mariadb}
tables: {include: ["shop.*"]}
apply: {mode: micro_batch, parallel_tables: 3}
maintain: {schedule: "", keep_cuts_hours: 48, cluster_share: 0.3}
ddl: {drop_column: ask}
snapshot: {mode: manual, parallel: 2, bytes_per_second: 5000000}
verify: {rows_per_second: 5000, each_table_hours: 168}
completeness: {hourly: true, tables: [shop.orders], verified: true, each_minute: true}
alerts:
  notifiers:
    ops: {notifier: no.such.provider.Notifier, arguments: {text: "{{ alert.text }}"}}
    hook: {notifier: tidegate_airflow.webhook_notifier.WebhookNotifier, arguments: {http_conn_id: hook}}
"""
KINDS = ("capture", "apply", "maintain", "snapshot", "verify", "erase")
BY_FILE = ("approve", "complete", "progress", "alerts_ops", "alerts_hook")
TWO = """
pipeline: two
lake: {path: "s3://bucket/two", conn_id: keys}
sources:
  a: {conn_id: a_db, flavour: mysql}
  b: {conn_id: b_db, flavour: mysql}
tables: {include: ["*.*"]}
"""
BROKEN = SHOP.replace("pipeline: shop", "pipeline: broken").replace("parallel_tables: 3", "parallel_tables: none")
SAME_LAKE = SHOP.replace("pipeline: shop", "pipeline: zz_same_lake")

pytestmark = [
    pytest.mark.airflow,
    # Airflow 3.3 uses a name of pathspec's that is going away.
    pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning"),
]

# CPU seconds, of which a core that is shared needs several times as many; that nothing heavy is imported is seen apart.
PARSE_SECONDS_MAX = 2.0


def parse(folder: Path, tmp: Path, dags: Path = ROOT / "dags") -> dict[str, Any]:
    out = tmp / "parsed.json"
    subprocess.run(
        [sys.executable, str(ROOT / "tests" / "dags" / "parse_dags.py"), str(dags), str(out)],
        env=os.environ | {"AIRFLOW_HOME": str(tmp / "airflow"), "TIDEGATE_PIPELINES": str(folder)},
        check=True,
        capture_output=True,
        timeout=600,
    )
    parsed: dict[str, Any] = json.loads(out.read_text())
    return parsed


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    tmp = tmp_path_factory.mktemp("dags")
    folder = tmp / "pipelines"
    folder.mkdir()
    for name, text in {"shop": SHOP, "two": TWO, "broken": BROKEN, "zz_same_lake": SAME_LAKE}.items():
        (folder / f"{name}.yaml").write_text(text)
    return parse(folder, tmp)


def test_one_line_in_a_dags_folder_of_ones_own_gives_all_dags(parsed: dict[str, Any], tmp_path: Path) -> None:
    own = tmp_path / "dags"
    own.mkdir()
    (own / "cdc.py").write_text("import tidegate_airflow.dag_files  # airflow dag\n")
    (tmp_path / "pipelines").mkdir()
    for name, text in {"shop": SHOP, "two": TWO}.items():
        (tmp_path / "pipelines" / f"{name}.yaml").write_text(text)
    theirs = parse(tmp_path / "pipelines", tmp_path, own)
    assert theirs["errors"] == {}
    assert theirs["dags"].keys() == parsed["dags"].keys()
    assert {dag["file"] for dag in theirs["dags"].values()} == {"cdc.py"}


def test_each_good_pipeline_file_has_a_dag_of_each_kind(parsed: dict[str, Any]) -> None:
    wanted = {f"{name}__{kind}" for name in ("shop", "two") for kind in KINDS}
    wanted |= {f"shop__{kind}" for kind in BY_FILE} | {"two__capture_b"}
    assert set(parsed["dags"]) == wanted, "two asks for nothing, names no hours, and tells nobody"


def test_a_broken_pipeline_file_is_an_import_error_of_one_line_and_stops_no_other(parsed: dict[str, Any]) -> None:
    assert set(parsed["errors"]) == {"pipeline_files.py"}
    lines = parsed["errors"]["pipeline_files.py"].splitlines()
    line = next(line for line in lines if "broken.yaml" in line)
    assert "broken.yaml:7: apply.parallel_tables:" in line
    assert "correct" in line
    clash = next(line for line in lines if "zz_same_lake.yaml" in line)
    assert "already the lake of shop.yaml" in clash
    assert "Traceback" not in "".join(lines[2:]), "the library's own frames bury the line"


def test_a_single_broken_file_is_reported_without_a_group(tmp_path: Path) -> None:
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "shop.yaml").write_text(SHOP)
    (folder / "broken.yaml").write_text(BROKEN)
    found = parse(folder, tmp_path)
    assert set(found["dags"]) == {f"shop__{kind}" for kind in (*KINDS, *BY_FILE)}
    assert found["errors"]["pipeline_files.py"].rstrip().splitlines()[-1].startswith("tidegate.errors.ConfigError: ")
    (folder / "broken.yaml").unlink()
    assert parse(folder, tmp_path)["errors"] == {}


def test_capture_runs_continuously_in_a_dag_per_source(parsed: dict[str, Any]) -> None:
    """A DAG's next run begins when each task of the last one has ended: a source that is down is tried for days."""
    sources = {"shop__capture": "main", "two__capture": "a", "two__capture_b": "b"}
    assert {dag_id for dag_id in parsed["dags"] if "__capture" in dag_id} == sources.keys()
    for dag_id, source in sources.items():
        dag = parsed["dags"][dag_id]["serialised"]["dag"]
        (task,) = (task["__var"] for task in dag["tasks"])
        assert parsed["dags"][dag_id]["summary"] == "@continuous"
        assert dag["max_active_runs"] == 1
        assert (task["task_id"], task["task_type"], task["max_active_tis_per_dag"]) == (source, "CaptureSensor", 1)
    serialised = (parsed["dags"][dag_id]["serialised"]["dag"] for dag_id in sources)
    pauses = [dag["max_consecutive_failed_dag_runs"] for dag in serialised]
    assert pauses == [3, 0, 0], "one source: pause what fails for good; several: the sensor waits after a refusal"


def test_a_dag_that_only_asks_begins_unpaused_and_any_other_as_airflow_is_set(parsed: dict[str, Any]) -> None:
    """It comes when `ask` is added to the file, long after a person has unpaused the others. Nobody looks for it."""
    begins = {dag_id: dag["serialised"]["dag"].get("is_paused_upon_creation") for dag_id, dag in parsed["dags"].items()}
    assert begins.pop("shop__approve") is False
    assert set(begins.values()) == {None}


def test_a_spark_job_that_hangs_is_ended(parsed: dict[str, Any]) -> None:
    for kind, seconds in (("apply", 3600 + JOB_HANGS_SECONDS), ("maintain", JOB_HANGS_SECONDS)):
        (task,) = parsed["dags"][f"shop__{kind}"]["serialised"]["dag"]["tasks"]
        assert task["__var"]["execution_timeout"] == seconds


def test_apply_is_scheduled_by_the_watched_bronze_asset_of_its_own_lake(parsed: dict[str, Any]) -> None:
    for name, lake in (("shop", str(ROOT / "lakes" / "shop")), ("two", "s3://bucket/two")):
        dag = parsed["dags"][f"{name}__apply"]["serialised"]["dag"]
        (asset,) = dag["timetable"]["__var"]["asset_condition"]["objects"]
        assert asset["name"] == f"{name}__bronze"
        (watcher,) = asset["watchers"]
        assert watcher["trigger"]["classpath"] == "tidegate_airflow.bronze_trigger.BronzeVersionTrigger"
        assert watcher["trigger"]["kwargs"]["lake"] == lake
        assert watcher["trigger"]["kwargs"]["sources"] == (["main"] if name == "shop" else ["a", "b"])
        assert dag["max_active_runs"] == 1, "events that arrive during a run wait as one"
        assert dag["catchup"] is False
        (task,) = dag["tasks"]
        assert task["__var"]["outlets"][0]["__var"]["name"] == f"{name}__silver"


def test_maintain_runs_by_the_files_schedule_or_by_hand_and_can_be_a_dry_run_of_one_table(
    parsed: dict[str, Any],
) -> None:
    assert parsed["dags"]["two__maintain"]["summary"] == "0 0 * * *"
    assert parsed["dags"]["shop__maintain"]["summary"] == "None"
    for name in ("shop", "two"):
        dag = parsed["dags"][f"{name}__maintain"]["serialised"]["dag"]
        assert (dag["max_active_runs"], dag["catchup"]) == (1, False)
        assert [task["__var"]["task_type"] for task in dag["tasks"]] == ["MaintainOperator"]
    params = parsed["dags"]["shop__maintain"]["params"]
    assert params["dry_run"]["value"] is False
    assert params["cluster_share"]["value"] == 0.3


def test_snapshot_runs_for_tables_that_wait_or_by_hand_for_those_that_are_named(parsed: dict[str, Any]) -> None:
    """With `mode: manual` (shop's), too: its watcher wakes it for what a person asked for, as on the page."""
    for name in ("shop", "two"):
        dag = parsed["dags"][f"{name}__snapshot"]["serialised"]["dag"]
        assert parsed["dags"][f"{name}__snapshot"]["summary"] == "Asset"
        assert (dag["max_active_runs"], dag["catchup"]) == (1, False)
        assert [task["__var"]["task_type"] for task in dag["tasks"]] == ["SnapshotOperator"]
    params = parsed["dags"]["shop__snapshot"]["params"]
    assert (params["tables"]["value"], params["tables"]["schema"]["type"]) == ([], ["null", "array"])
    assert (params["parallel"]["value"], params["bytes_per_second"]["value"]) == (2, 5_000_000)


def test_verify_runs_by_hand_or_each_hour_for_tables_that_are_due_and_can_repair(parsed: dict[str, Any]) -> None:
    for name in ("shop", "two"):
        dag = parsed["dags"][f"{name}__verify"]["serialised"]["dag"]
        assert parsed["dags"][f"{name}__verify"]["summary"] == {"shop": "0 * * * *", "two": "None"}[name]
        assert (dag["max_active_runs"], dag["catchup"]) == (1, False)
        assert [task["__var"]["task_type"] for task in dag["tasks"]] == ["VerifyOperator"]
    params = parsed["dags"]["shop__verify"]["params"]
    assert (params["tables"]["value"], params["repair"]["value"], params["repair"]["schema"]["type"]) == (
        [],
        False,
        "boolean",
    )
    assert params["rows_per_second"]["value"] == 5000


def test_erase_runs_by_hand_alone_and_is_a_dry_run_unless_somebody_says_otherwise(parsed: dict[str, Any]) -> None:
    for name in ("shop", "two"):
        dag = parsed["dags"][f"{name}__erase"]["serialised"]["dag"]
        assert parsed["dags"][f"{name}__erase"]["summary"] == "None"
        assert (dag["max_active_runs"], dag["catchup"]) == (1, False)
        params = parsed["dags"][f"{name}__erase"]["params"]
        assert (params["dry_run"]["value"], params["table"]["value"], params["where"]["value"]) == (True, "", "")


# All that a person can set on a trigger form: a new setting of the pipeline file doesn't come here by itself.
FORMS = {
    "capture": {"run_for_seconds", "failover_wait_seconds"},
    "apply": {"mode", "parallel_tables", "writer"},
    "maintain": {"cluster_share", "purge_share", "bronze_bytes", "table", "dry_run"},
    "snapshot": {"parallel", "bytes_per_second", "tables"},
    "verify": {"rows_per_second", "tables", "repair"},
    "erase": {"table", "where", "follow_keys", "wait", "dry_run"},
    "approve": set[str](),
    "complete": set[str](),
    "progress": set[str](),
    "alerts_ops": set[str](),
    "alerts_hook": set[str](),
}


def test_the_trigger_form_of_each_dag_has_what_an_operator_needs_and_nothing_else(parsed: dict[str, Any]) -> None:
    found = {dag_id: set(dag["params"]) for dag_id, dag in parsed["dags"].items()}
    assert found == {dag_id: FORMS[dag_id.rpartition("__")[2].removesuffix("_b")] for dag_id in parsed["dags"]}


def test_every_param_is_described_and_bounded_and_has_the_files_value(parsed: dict[str, Any]) -> None:
    models = {"capture": Capture, "apply": Apply, "maintain": Maintain, "snapshot": Snapshot, "verify": Verify}
    for kind, model in models.items():
        params = parsed["dags"][f"shop__{kind}"]["params"]
        for name in set(params) & set(model.model_fields):
            param = params[name]
            assert param["description"] == model.model_fields[name].description
            assert param["schema"]["title"]
            assert param["schema"]["type"]
            if param["schema"]["type"] in ("integer", "number"):
                assert "minimum" in param["schema"], f"{name} has no lower bound"
    apply_params = parsed["dags"]["shop__apply"]["params"]
    assert apply_params["mode"]["value"] == "micro_batch"
    assert apply_params["mode"]["schema"]["enum"] == ["batch", "micro_batch"]
    assert apply_params["parallel_tables"]["value"] == 3
    assert apply_params["parallel_tables"]["schema"]["maximum"] == 256


def test_every_dag_carries_its_manual_and_names_only_tables_that_exist(parsed: dict[str, Any]) -> None:
    for dag_id, dag in parsed["dags"].items():
        manual = dag["doc_md"]
        for part in (
            "**Tables read:**",
            "**Tables written:**",
            "**How it runs:**",
            "**When it is red:**",
            "**Params**",
        ):
            assert part in manual, f"{dag_id} lacks {part}"
        assert len(manual.splitlines()[0]) > 20, "the first line says what it does"
        named = {word for word in manual.split("`") if word.startswith(("bronze/", "control/"))}
        assert named <= {table.path for table in tables.ALL}
        assert all(f"- `{name}` (" in manual for name in dag["params"])


def test_a_parse_takes_milliseconds_and_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    assert parsed["heavy"] == []
    assert all(seconds < PARSE_SECONDS_MAX for seconds in parsed["seconds"].values()), parsed["seconds"]


def test_airflows_plugin_scanner_loads_the_plugin_and_stays_out_of_the_package() -> None:
    from airflow._shared.module_loading.file_discovery import find_path_from_directory

    found = {Path(path).name for path in find_path_from_directory(str(ROOT / "plugins"), ".airflowignore", "glob")}
    assert "tidegate_plugin.py" in found
    assert not found & {path.name for path in (ROOT / "plugins" / "tidegate_airflow").glob("*.py")}


def test_airflow_is_given_the_plugin_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of one name are an import error on the first page of every user."""
    file = ROOT / "plugins" / "tidegate_plugin.py"
    assert "TidegatePlugin" not in runpy.run_path(str(file)), "the environment has the package's entry point"
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    assert runpy.run_path(str(file))["TidegatePlugin"].name == "tidegate"


def test_hours_are_added_to_an_asset_of_all_tables_and_of_each_named_one(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["shop__complete"]["serialised"]["dag"]
    (task,) = dag["tasks"]
    outlets = {outlet["__var"]["name"] for outlet in task["__var"]["outlets"]}
    assert outlets == {
        "shop__complete",
        "shop__complete__shop.orders",
        "shop__verified__shop.orders",
        "shop__added_hours",
    }


def test_progress_is_woken_by_cuts_and_makes_the_event_that_apply_makes(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["shop__progress"]["serialised"]["dag"]
    (asset,) = dag["timetable"]["__var"]["asset_condition"]["objects"]
    (watcher,) = asset["watchers"]
    assert watcher["trigger"]["classpath"] == "tidegate_airflow.cuts_trigger.CutsTrigger"
    assert watcher["trigger"]["kwargs"]["pipeline"] == "shop"
    (task,) = dag["tasks"]
    (apply,) = parsed["dags"]["shop__apply"]["serialised"]["dag"]["tasks"]
    assert [each["__var"]["outlets"][0]["__var"]["name"] for each in (task, apply)] == ["shop__silver"] * 2
    inlets = {
        name: [
            inlet["__var"]["name"] for inlet in parsed["dags"][name]["serialised"]["dag"]["tasks"][0]["__var"]["inlets"]
        ]
        for name in ("shop__progress", "shop__apply", "two__apply")
    }
    assert inlets == {
        "shop__progress": ["shop__silver"],
        "shop__apply": ["shop__bronze", "shop__silver"],
        "two__apply": ["two__bronze"],
    }


def test_each_notifier_has_a_dag_of_its_own_and_all_wake_by_one_look(parsed: dict[str, Any]) -> None:
    """A notifier that fails holds nobody up but itself."""
    dags = [parsed["dags"][f"shop__alerts_{name}"]["serialised"]["dag"] for name in ("ops", "hook")]
    watchers = []
    for dag in dags:
        (asset,) = dag["timetable"]["__var"]["asset_condition"]["objects"]
        assert asset["name"] == "shop__alerts"
        watchers += asset["watchers"]
        assert (dag["max_active_runs"], dag["max_consecutive_failed_dag_runs"]) == (1, 0)
        (task,) = dag["tasks"]
        assert task["__var"]["retries"] == TASK_ATTEMPTS_MAX
    assert watchers[0] == watchers[1]
    assert watchers[0]["trigger"]["classpath"] == "tidegate_airflow.alerts_trigger.AlertsTrigger"
