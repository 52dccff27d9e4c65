"""Lineage for Airflow's OpenLineage provider: made by its own extractor and sent by its own adapter, to a file.

In:  a lake with cuts, versions of tables, and silver's logs; a verification's report.
Out: events, as OpenLineage's client writes them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.utils.state import TaskInstanceState
from deltalake import CommitProperties, Transaction, write_deltalake

from tidegate import pipelines, tables
from tidegate.config import Pipeline
from tidegate.lake import control
from tidegate.lake.cuts.lineage import applied_since, captured_tables
from tidegate.lake.files import LakeFiles
from tidegate.limits import LINEAGE_SHARDS_TABLES_MAX, LINEAGE_TABLES_MAX
from tidegate.masks.masking import MASK_METADATA
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.verify.report import Outcome, Report, TableResult
from tidegate_airflow import lineage
from tidegate_airflow.apply_operator import ApplyOperator
from tidegate_airflow.capture_sensor import CaptureSensor
from tidegate_airflow.lineage import LineageDatasets
from tidegate_airflow.verify_operator import VerifyOperator

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

FILE = r"""
pipeline: shop
lake: {path: LAKE}
sources:
  main: {conn_id: shop_db, flavour: mysql}
tables:
  include: ["shop.*"]
  routes: [{match: 'shop.orders_\d+', to: shop.all_orders}]
"""
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
RUN_ID = "01a219fd-cdf6-7724-aba5-a44b622543ee"
COLUMNS = (Column(1, "id", "int(11)", nullable=False), Column(2, "Name of it", "varchar(20)"))


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", "mysql://u:secret@db.example:3307")
    file = tmp_path / "shop.yaml"
    file.write_text(FILE.replace("LAKE", str(tmp_path / "lake")))
    return pipelines.load(file)


class Lake:
    """A lake written by hand. A cut is a number."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.files = LakeFiles(pipeline.lake.path)

    def source(self, *names: str, columns: tuple[Column, ...] = COLUMNS) -> None:
        rows = [
            TableVersion("main", "shop", name, 1, 1, "b.1", 4, "create", "", columns, (1,), "utf8mb4").to_row()
            for name in names
        ]
        control.append(self.files, tables.SCHEMA_HISTORY, [row | {"recorded_at": NOW} for row in rows])

    def write(self, name: str, cut_ts: int, count: int) -> None:
        """A commit of ours."""
        masked = {MASK_METADATA: '["partial","",0,2,""]'} if name == "shop.customers" else {}
        fields = [pa.field("id", pa.int32()), pa.field(COLUMNS[1].silver, pa.string(), metadata=masked)]
        rows = pa.table([pa.array(range(count), pa.int32()), ["x"] * count], schema=pa.schema(fields))
        mark = Transaction(f"tidegate/shop/{name}", cut_ts)
        write_deltalake(
            self.files.uri(tables.silver_path(*name.split("."))),
            rows,
            mode="append",
            commit_properties=CommitProperties(app_transactions=[mark]),
        )

    def cut(self, cut_ts: int, versions: dict[str, int]) -> None:
        common = {"cut_ts": cut_ts, "applied_ts": cut_ts, "state": "active", "published_at": NOW}
        rows = [{**common, "table": name, "delta_version": at} for name, at in {"": -1, **versions}.items()]
        control.append(self.files, tables.CUTS, rows)
        accounted = {"payload_bytes": 700, "decoded_bytes": 700, "ignored_bytes": 0, "quarantined_bytes": 0, "rows": 7}
        ledger = {"source": "main", "seq": cut_ts, "cut_ts": cut_ts, "ignored_by_rule": "{}", **accounted}
        control.append(self.files, tables.LEDGER, [ledger])


@pytest.fixture
def lake(pipeline: Pipeline) -> Lake:
    """Cuts 10 and 20. customers changed in both, quiet in the first alone, all_orders (of 12 shards) in the second."""
    made = Lake(pipeline)
    made.source("customers", "quiet", *(f"orders_{number}" for number in range(12)))
    made.write("shop.customers", 10, 5)
    made.write("shop.quiet", 10, 5)
    made.cut(10, {"shop.customers": 0, "shop.quiet": 0})
    made.write("shop.customers", 15, 3)
    made.write("shop.customers", 20, 4)
    made.write("shop.all_orders", 20, 2)
    made.cut(20, {"shop.customers": 2, "shop.all_orders": 0})
    return made


def sent(operator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: TaskInstanceState) -> dict[str, Any]:
    """The event in the provider's file, of an operator whose task has ended."""
    from airflow.providers.openlineage.extractors.manager import ExtractorManager
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter

    path = tmp_path / "events.json"
    transport = json.dumps({"type": "file", "log_file_path": str(path), "append": True})
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", transport)
    assert lineage.is_on()
    run: Any = SimpleNamespace(run_id="manual")
    metadata = ExtractorManager().extract_metadata(run, operator, state, SimpleNamespace())
    OpenLineageAdapter().complete_task(
        *(RUN_ID, "shop__apply.apply", NOW.isoformat(), metadata, None, None, None, None, None)
    )
    (line,) = path.read_text().splitlines()
    event: dict[str, Any] = json.loads(line)
    return event


def test_without_a_transport_nothing_is_read_of_the_lake(pipeline: Pipeline) -> None:
    assert not lineage.is_on()
    assert lineage.cut_before(pipeline) is None


def test_a_capture_run_names_its_sources_tables_and_bronze(
    pipeline: Pipeline, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source -> bronze -> silver is one road in a lineage graph: bronze is the end of one edge, and begins the next."""
    del lake
    operator = CaptureSensor(task_id="main", pipeline_file="shop.yaml", source="main")
    operator._lineage = lineage.made(lambda: lineage.of_capture(pipeline, "main", 4711))
    event = sent(operator, tmp_path, monkeypatch, TaskInstanceState.SUCCESS)
    source, bronze = "mysql://db.example:3307", f"{tmp_path / 'lake'}/bronze/segments"
    names = {(each["namespace"], each["name"]) for each in event["inputs"]}
    assert {(source, "shop.customers"), (source, "shop.quiet"), (source, "shop.orders_11")} <= names
    assert len(names) == 14
    fields = {each["name"]: each["facets"]["schema"]["fields"] for each in event["inputs"]}
    assert [field["name"] for field in fields["shop.quiet"]] == ["id", "Name of it"]
    (output,) = event["outputs"]
    assert (output["namespace"], output["name"]) == ("file", bronze)
    assert output["outputFacets"]["outputStatistics"]["size"] == 4711
    assert event["run"]["facets"]["tidegate"]["tablesKept"] == 14
    applied = lineage.of_apply(pipeline, 10)
    assert bronze in {each.name for each in applied.inputs}, "the same dataset as apply's input"
    assert lineage.of_capture(pipeline, "other", None).inputs == []


def test_an_event_of_capture_is_bounded(pipeline: Pipeline, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.source(*(f"more_{number}" for number in range(LINEAGE_TABLES_MAX)))
    known, more = captured_tables(pipeline, lake.files, "main")
    assert (len(known), more) == (LINEAGE_TABLES_MAX, 14)
    monkeypatch.setattr("tidegate.lake.cuts.lineage.LINEAGE_CHARACTERS_MAX", 2000)
    known, more = captured_tables(pipeline, lake.files, "main")
    assert 0 < len(known) < 10
    assert len(known) + more == LINEAGE_TABLES_MAX + 14


def test_an_apply_run_names_what_it_changed_with_columns_rows_and_bytes(
    pipeline: Pipeline, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = ApplyOperator(task_id="apply", pipeline_file="shop.yaml")
    operator._lineage = lineage.made(lambda: lineage.of_apply(pipeline, 10))
    event = sent(operator, tmp_path, monkeypatch, TaskInstanceState.SUCCESS)
    root, source = str(tmp_path / "lake"), "mysql://db.example:3307"
    outputs = {output["name"]: output for output in event["outputs"]}
    assert outputs.keys() == {f"{root}/silver/shop/customers", f"{root}/silver/shop/all_orders"}
    customers = outputs[f"{root}/silver/shop/customers"]
    assert customers["namespace"] == "file"
    assert customers["facets"]["version"]["datasetVersion"] == "2"
    assert customers["outputFacets"]["outputStatistics"]["rowCount"] == 7, "not the five of the cut before"
    assert customers["outputFacets"]["outputStatistics"]["size"] > 0
    assert [field["name"] for field in customers["facets"]["schema"]["fields"]] == ["id", COLUMNS[1].silver]
    (of,) = customers["facets"]["columnLineage"]["fields"][COLUMNS[1].silver]["inputFields"]
    assert (of["namespace"], of["name"], of["field"]) == (source, "shop.customers", "Name of it")
    assert of["transformations"][0]["masking"] is True
    (of,) = customers["facets"]["columnLineage"]["fields"]["id"]["inputFields"]
    assert of["transformations"][0] == {"type": "DIRECT", "subtype": "IDENTITY", "masking": False}
    shards = outputs[f"{root}/silver/shop/all_orders"]["facets"]["columnLineage"]["fields"]["id"]["inputFields"]
    assert len(shards) == LINEAGE_SHARDS_TABLES_MAX
    inputs = {(each["namespace"], each["name"]): each for each in event["inputs"]}
    assert len(inputs) == 2 + LINEAGE_SHARDS_TABLES_MAX, "bronze, customers, and some shards"
    bronze = inputs["file", f"{root}/bronze/segments"]["inputFacets"]["inputStatistics"]
    assert (bronze["rowCount"], bronze["size"]) == (7, 700)
    assert (source, "shop.quiet") not in inputs
    counted = event["run"]["facets"]["tidegate"]
    assert (counted["cutTs"], counted["tablesChanged"], counted["tablesNamed"]) == ("20", 2, 2)
    assert "secret" not in json.dumps(event)


def test_of_thousands_of_tables_some_are_named_and_the_others_counted(pipeline: Pipeline, lake: Lake) -> None:
    every = {f"shop.t{number:05}": 0 for number in range(3000)}
    lake.cut(30, every)
    chosen = [table.name for table in applied_since(pipeline, lake.files, 20).tables]
    for name in chosen:
        lake.write(name, 30, 1)
    applied = applied_since(pipeline, lake.files, 20)
    assert [table.name for table in applied.tables] == chosen, "as often as a run is tried"
    assert (len(applied.tables), applied.more) == (LINEAGE_TABLES_MAX, 3000 - LINEAGE_TABLES_MAX)
    assert all((table.rows, table.sources) == (1, ()) for table in applied.tables), "no version is known of them"
    lake.cut(31, every)
    assert not {table.name for table in applied_since(pipeline, lake.files, 30).tables} & {*chosen}, "others, in turn"


def test_a_table_that_cant_be_read_is_named_without_more_and_one_that_waits_isnt_named(
    pipeline: Pipeline, lake: Lake
) -> None:
    log = Path(lake.files.uri(tables.silver_path("shop", "all_orders"))) / "_delta_log"
    next(log.glob("*0.json")).write_text("{}}")
    held = {"cut_ts": 20, "applied_ts": 10, "state": "held", "published_at": NOW}
    control.append(lake.files, tables.CUTS, [{**held, "table": "shop.quiet", "delta_version": 0}])
    applied = applied_since(pipeline, lake.files, 10)
    assert {table.name: (len(table.columns), table.rows) for table in applied.tables} == {
        "shop.all_orders": (0, None),
        "shop.customers": (2, 7),
    }


def test_columns_are_named_while_there_is_room(pipeline: Pipeline, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.lake.cuts.lineage.LINEAGE_CHARACTERS_MAX", 1500)
    applied = applied_since(pipeline, lake.files, 10)
    assert {table.name: len(table.columns) for table in applied.tables} == {"shop.all_orders": 0, "shop.customers": 2}


def test_a_verification_is_assertions_on_silver_and_what_differs_comes_first(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [
        TableResult("main", "shop.a", "shop.a", Outcome.EQUAL, source_rows=5, silver_rows=5),
        TableResult("main", "shop.b", "shop.b", Outcome.DIFFERENT, source_rows=5, silver_rows=4, different=1),
        TableResult("main", "shop.c", "shop.c", Outcome.HELD),
        TableResult("main", "shop.d", "shop.d", Outcome.WAITS),
    ]
    operator = VerifyOperator(task_id="verify", pipeline_file="shop.yaml")
    report = Report("shop", 20, {}, tuple(results))
    operator._lineage = lineage.made(lambda: lineage.of_verify(pipeline, report))
    event = sent(operator, tmp_path, monkeypatch, TaskInstanceState.FAILED)
    silver = f"{tmp_path / 'lake'}/silver/shop"
    assert [each["name"] for each in event["inputs"]] == [f"{silver}/b", f"{silver}/a"], "c was not compared"
    (different,), (equal,) = (each["inputFacets"]["dataQualityAssertions"]["assertions"] for each in event["inputs"])
    assert (different["assertion"], different["success"], equal["success"]) == ("equal_to_source", False, True)
    assert (different["expected"], different["actual"]) == ("5", "4")
    assert different["description"].startswith("1 rows differ")


def test_lineage_that_cant_be_made_ends_no_run(pipeline: Pipeline) -> None:
    """The lake is gone, or the provider's classes are others."""

    def broken() -> Any:
        raise AttributeError("no such facet")

    assert lineage.made(broken) is None
    empty = lineage.made(lambda: lineage.of_apply(pipeline, 0))
    assert empty is not None
    assert empty.outputs == []


@pytest.mark.parametrize(
    ("lake", "name"),
    [
        ("/data/lake", ("file", "/data/lake/silver/a/b")),
        ("s3://bucket/lakes/shop", ("s3://bucket", "lakes/shop/silver/a/b")),
        (
            "abfss://box@account.dfs.core.windows.net/shop",
            ("abfss://box@account.dfs.core.windows.net", "shop/silver/a/b"),
        ),
    ],
)
def test_datasets_of_the_lake_have_the_names_of_the_specification(
    pipeline: Pipeline, lake: str, name: tuple[str, str]
) -> None:
    part = pipeline.lake.model_copy(update={"path": lake})
    assert lineage.LineageDatasets(pipeline.model_copy(update={"lake": part})).file("silver/a/b") == name


@pytest.mark.parametrize("setting", ["{no JSON: k3y}", '["k3y"]'])
def test_settings_that_can_not_be_read_cost_the_run_its_lineage_alone(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, setting: str
) -> None:
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", setting)
    assert lineage.cut_before(pipeline) is None
    assert "no lineage" in caplog.text
    assert "k3y" not in caplog.text


def test_a_source_at_an_address_of_ipv6_has_a_name_with_brackets(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", '{"conn_type": "mysql", "host": "2001:db8::1"}')
    assert LineageDatasets(pipeline).table("main", "shop", "a") == ("mysql://[2001:db8::1]:3306", "shop.a")
