"""Airflow itself runs capture and apply until silver equals the source, on MariaDB and on MySQL 9 at once.

In:  two real servers with an empty shop, one Airflow with a pipeline for each, a workload of inserts, updates,
     deletes, key changes, rollbacks, ALTER TABLE ... ADD COLUMN and a CREATE TABLE while everything runs.
Out: silver, read by delta-rs, compared row by row with the servers' own SELECT by code of this file,
     and then once more by tidegate's own verify.

The MariaDB pipeline applies in batches and defers when its source is quiet, for long enough to be seen in it; the
MySQL one in micro-batches, and its captures take turns.
Both are in one Airflow, so that its start is paid for once.
"""

from __future__ import annotations

import datetime as dt
import importlib
import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from deltalake import DeltaTable

from tests.dags.airflow_instance import AirflowInstance
from tests.dags.browser import browser, click, log_in, see
from tests.dags.pages import look_at_maintain_form, look_for_held_table
from tests.kit.shop import DATABASE, TABLES, Shop
from tidegate import config, tables
from tidegate.binlog.warm import warm
from tidegate.config import Apply
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify
from tidegate_airflow.params import ON_THE_FORM

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.server, pytest.mark.timeout(3600)]

WORKLOAD_SECONDS = 12
EQUAL_SECONDS_MAX = 900
# How long anything may take: two Spark applications at a time start slowly on two cores beside other tests.
PATIENCE_SECONDS = 800

PIPELINE = """
pipeline: {name}
lake: {{path: {lake}}}
sources:
  main: {{conn_id: {name}_db, flavour: {flavour}}}
tables: {{include: ["{database}.*"]}}
ddl: {{drop_column: {drop_column}}}
capture:
  {{run_for_seconds: {capture_seconds}, idle_seconds: 6, heartbeat_seconds: 1, land_seconds: 0.3,
   value_log_path: {spool}}}
apply:
  {{mode: {mode}, run_for_seconds: 40, idle_seconds: 8, quiet_seconds: 3600, poll_seconds: 0.3, driver_memory: 768m}}
"""

World = tuple[AirflowInstance, dict[str, Shop]]


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Airflow with a pipeline per server that can be had, both capturing, both workloads done."""
    tmp = tmp_path_factory.mktemp("e2e")
    importlib.import_module("tidegate.capture.run")
    warm()  # and so: compiled once here, not in both captures and both Spark drivers at once
    shops: dict[str, Shop] = {}
    folder = tmp / "pipelines"
    folder.mkdir()
    for flavour, fixture in (("mariadb", "mariadb"), ("mysql", "mysql9")):
        try:
            server = request.getfixturevalue(fixture)
        except pytest.skip.Exception:
            continue  # its own test says so
        shops[flavour] = Shop(f"e2e_{flavour}", server, str(tmp / "lakes" / flavour), folder / f"{flavour}.yaml")
    for flavour, shop in shops.items():
        shop.create()
        batch = flavour == "mariadb"
        values = {
            "name": shop.name,
            "lake": shop.lake,
            "flavour": flavour,
            "database": DATABASE,
            "spool": tmp / "spool" / flavour,
            "mode": "batch" if batch else "micro_batch",
            "drop_column": "ask" if batch else "apply",
            "capture_seconds": 60 if batch else 25,
        }
        shop.file.write_text(PIPELINE.format(**values))
    connections = {f"{shop.name}_db": _uri(shop.server) for shop in shops.values()}
    connections["spark_default"] = json.dumps({"conn_type": "spark", "host": "local[2]"})
    with AirflowInstance(tmp / "airflow", folder, connections) as airflow:
        for flavour, shop in shops.items():
            airflow.unpause(f"{shop.name}__capture")
            airflow.unpause(f"{shop.name}__apply")
            if flavour == "mariadb":
                airflow.unpause(f"{shop.name}__approve")
        for shop in shops.values():
            airflow.wait_for(
                lambda shop=shop: _has(Path(shop.lake) / tables.SEGMENTS.path),
                PATIENCE_SECONDS,
                f"{shop.name} captures",
            )
        workers = [threading.Thread(target=shop.work, args=(WORKLOAD_SECONDS,)) for shop in shops.values()]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        yield airflow, shops


def _uri(server: Server) -> str:
    return f"mysql://{quote(server.user)}:{quote(server.password)}@{server.host}:{server.port}/"


def _has(table: Path) -> bool:
    return any((table / "_delta_log").glob("*.json"))


def _wait_until_equal(airflow: AirflowInstance, shop: Shop, seconds: float = EQUAL_SECONDS_MAX) -> None:
    end = time.monotonic() + seconds
    while differences := shop.differences():
        if time.monotonic() > end:
            held = [f"{row['table']}: {row['state']} {row['reason']}" for row in shop.table_states()]
            logs = "\n".join(airflow.task_log(f"{shop.name}__{kind}")[-3000:] for kind in ("capture", "apply"))
            raise AssertionError(f"{shop.name}: {differences}; states: {held}\n{logs}")
        time.sleep(1)


@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
def test_silver_equals_the_source_after_a_workload_with_ddl(world: World, flavour: str) -> None:
    airflow, shops = world
    if flavour not in shops:
        pytest.skip(f"no {flavour} server here")
    shop = shops[flavour]
    _wait_until_equal(airflow, shop)
    assert shop.table_states() == [] or {row["state"] for row in shop.table_states()} == {"active"}
    runs = airflow.get(f"/dags/{shop.name}__apply/dagRuns?limit=100")["dag_runs"]
    assert {run["run_type"] for run in runs} == {"asset_triggered"}, "the watcher on bronze started every run"
    assert not [run for run in runs if run["state"] == "failed"]
    _assert_one_at_a_time(runs)
    known = {"main": ConnectionInfo.from_airflow_text("e2e", _uri(shop.server))}
    report = verify(config.load(shop.file), known, shop.lake, options=VerifyOptions(timeout_seconds=90))
    assert report.equal, report
    assert {result.table for result in report.tables} == {f"{DATABASE}.{name}" for name in TABLES}
    if flavour == "mysql":  # what follows is about the other one, which needs the machine
        airflow.pause(f"{shop.name}__capture", f"{shop.name}__apply")


def _assert_one_at_a_time(runs: list[dict[str, Any]]) -> None:
    spans = sorted((run["start_date"], run["end_date"] or "9") for run in runs if run["start_date"])
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end <= start, "events that come during a run are one run after it"


def test_a_write_that_lands_while_an_apply_run_ends_is_applied_without_another_write(
    world: World,
) -> None:
    airflow, shops = world
    shop = shops["mariadb"]
    _wait_until_equal(airflow, shop)
    running = f"/dags/{shop.name}__apply/dagRuns?order_by=-run_after&limit=1&state=running"
    shop.server.query(f"INSERT INTO `{DATABASE}`.visits VALUES ('starts a run', 0)")
    airflow.wait_for(lambda: airflow.get(running)["dag_runs"], PATIENCE_SECONDS, "an apply run")
    for write in range(10):  # more and more slowly, so that one of them is what the run doesn't see any more
        shop.server.query(f"INSERT INTO `{DATABASE}`.visits VALUES ('during a run', {write})")
        time.sleep(write / 2)
        if not airflow.get(running)["dag_runs"]:
            break
    _wait_until_equal(airflow, shop)


def test_a_quiet_source_is_waited_for_in_the_triggerer_and_its_next_write_is_applied(
    world: World,
) -> None:
    airflow, shops = world
    shop = shops["mariadb"]
    _wait_until_equal(airflow, shop)
    runs = f"/dags/{shop.name}__apply/dagRuns?order_by=-run_after&limit=1"
    airflow.wait_for(lambda: _ended(airflow.get(runs)["dag_runs"]), PATIENCE_SECONDS, "the last apply run ends")
    before = airflow.get(runs)["total_entries"]
    instances = f"/dags/{shop.name}__capture/dagRuns/~/taskInstances?state=deferred"
    airflow.wait_for(lambda: airflow.get(instances)["task_instances"], PATIENCE_SECONDS, "capture gives its slot back")
    shown = airflow.get(runs)["total_entries"]
    assert shown == before, "a source that only proves it is quiet starts no Spark application"
    shop.server.query(f"INSERT INTO `{DATABASE}`.visits VALUES ('after the quiet', 1)")
    _wait_until_equal(airflow, shop)
    assert not airflow.get(f"/dags/{shop.name}__capture/dagRuns?state=failed")["dag_runs"]
    assert airflow.get("/importErrors")["import_errors"] == []
    assert airflow.get("/plugins/importErrors")["import_errors"] == []


def _ended(runs: list[dict[str, Any]]) -> bool:
    """The newest run is over, and long enough ago that what came during it would have started another."""
    if not runs or runs[0]["state"] not in ("success", "failed"):
        return False
    ended = dt.datetime.fromisoformat(runs[0]["end_date"])
    return (dt.datetime.now(dt.UTC) - ended).total_seconds() > 8


def _question(airflow: AirflowInstance, shop: Shop) -> tuple[dict[str, Any], str, str]:
    """The one open question: its task instance, its page in the UI, its path in the API."""
    dag = f"/dags/{shop.name}__approve"
    waiting = f"{dag}/dagRuns/~/taskInstances?state=deferred"
    (task,) = airflow.wait_for(lambda: airflow.get(waiting)["task_instances"], PATIENCE_SECONDS, "a question")
    run, index = quote(task["dag_run_id"]), task["map_index"]
    page = f"{airflow.url}{dag}/runs/{run}/tasks/approve/mapped/{index}/required_actions"
    return task, page, f"/api/v2{dag}/dagRuns/{run}/taskInstances/approve/{index}/hitlDetails"


def test_a_ddl_that_is_asked_about_holds_its_table_alone(world: World) -> None:
    airflow, shops = world
    shop = shops["mariadb"]
    _wait_until_equal(airflow, shop)
    shop.server.query(f"ALTER TABLE `{DATABASE}`.customers DROP COLUMN since")
    shop.server.query(f"INSERT INTO `{DATABASE}`.customers (name) VALUES ('after the column')")
    shop.server.query(f"INSERT INTO `{DATABASE}`.visits VALUES ('beside it', 1)")
    task, _, _ = _question(airflow, shop)
    assert task["rendered_map_index"] == f"{DATABASE}.customers"
    airflow.wait_for(lambda: set(shop.differences()) == {"customers"}, PATIENCE_SECONDS, "the others go on")


def test_the_question_stands_under_required_actions(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    airflow, shops = world
    _, page, _ = _question(airflow, shops["mariadb"])
    with browser() as chromium:
        log_in(chromium, airflow)
        see(chromium, page, ["may silver follow this DDL?", "DROP COLUMN", "Approve", "Keep holding"])
        chromium.save_screenshot(str(tmp_path_factory.mktemp("screenshots") / "approve.png"))


def test_a_held_table_is_seen_in_airflow(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    _question(world[0], world[1]["mariadb"])
    pages = tmp_path_factory.mktemp("screenshots")
    look_for_held_table(world[0], world[1]["mariadb"].name, f"{DATABASE}.customers", pages)


def test_an_approved_ddl_is_followed_and_its_table_catches_up(world: World) -> None:
    airflow, shops = world
    shop = shops["mariadb"]
    _, _, answer = _question(airflow, shop)
    airflow.call("PATCH", answer, {"chosen_options": ["Approve"], "params_input": {}})
    _wait_until_equal(airflow, shop)
    silver = DeltaTable(f"{shop.lake}/{tables.silver_path(DATABASE, 'customers')}")
    assert "since" not in {field.name for field in silver.schema().fields}
    reasons = [row["reason"] for row in shop.table_states() if row["state"] == "released"]
    assert reasons == [f"approved in Airflow by {airflow.user}"]


def test_no_secret_is_in_airflows_logs_or_rendered_fields(world: World) -> None:
    airflow, shops = world
    kept = (".log", ".db", ".json")
    written = [path for path in airflow.home.rglob("*") if path.is_file() and path.suffix in kept]
    assert written
    for shop in shops.values():
        secret = shop.server.password.encode()
        assert not [str(path) for path in written if secret in path.read_bytes()]


def test_the_ui_shows_the_dags_their_manual_and_what_an_operator_turns_in_the_trigger_form(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    airflow, shops = world
    name = next(iter(shops.values())).name
    with browser() as chromium:
        pages = tmp_path_factory.mktemp("screenshots")
        log_in(chromium, airflow)
        see(chromium, f"{airflow.url}/dags", [f"{name}__apply", f"{name}__capture", f"{name}__bronze", "@continuous"])
        chromium.save_screenshot(str(pages / "dags.png"))
        see(chromium, f"{airflow.url}/dags/{name}__capture", ["Owner", "tidegate"])
        click(chromium, "[data-testid='markdown-button']")
        see(chromium, None, ["Reads a source's binlog", "Tables written:", "When it is red:"])
        chromium.save_screenshot(str(pages / "manual.png"))
        see(chromium, f"{airflow.url}/dags/{name}__apply", ["Owner"])
        click(chromium, "[data-testid='trigger-dag-button']")
        described = {key: field.description or key for key, field in Apply.model_fields.items()}
        see(chromium, None, ["Run Parameters", *(described[key] for key in ON_THE_FORM[Apply])])
        body = chromium.find_element("tag name", "body").text
        assert not [key for key, text in described.items() if key not in ON_THE_FORM[Apply] and text in body]
        chromium.save_screenshot(str(pages / "trigger.png"))
        look_at_maintain_form(airflow, chromium, name, pages)
