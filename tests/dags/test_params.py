"""A run's params over a pipeline file's values, and what is tried again.

In:  models of tidegate.config, params as Airflow hands them to a task.
Out: the settings of that run, or one line of refusal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidegate.config import Apply, ApplyMode, Capture, Maintain, Snapshot, Verify
from tidegate.errors import ConfigError, HostRefused, LakeUnavailable, PositionLost, SourceRefused, SourceUnavailable
from tidegate.pipelines import encoded

pytestmark = pytest.mark.airflow


def test_a_triggered_runs_params_win_over_the_file_for_that_run() -> None:
    from tidegate_airflow.params import with_params

    file = Apply(parallel_tables=4)
    part = with_params(
        file, {"mode": "micro_batch", "parallel_tables": 1, "tables": 5}, where="run", beside=("tables",)
    )
    assert part.mode is ApplyMode.MICRO_BATCH
    assert part.parallel_tables == 1
    assert part.window_bytes == file.window_bytes
    assert encoded(part, file) == ["--set", 'mode="micro_batch"', "--set", "parallel_tables=1"]
    assert file.parallel_tables == 4


def test_params_as_airflow_defaults_them_change_nothing() -> None:
    from tidegate_airflow.params import params_of, with_params

    for file in (Apply(), Capture(), Capture(value_log_path="/spool"), Apply(spark_conf={"a": "b"})):
        defaults = {name: param.resolve() for name, param in params_of(file).items()}
        assert with_params(file, defaults, where="run") == file
        assert encoded(with_params(file, defaults, where="run"), file) == []


# What runs another program, reads or writes elsewhere, or makes silver another one.
NOT_A_RUNS = [
    (Apply(), "spark_conf", {"spark.submit.pyFiles": "http://host/sitecustomize.py"}),
    (Apply(), "spark_conn_id", "another"),
    (Apply(), "driver_memory", "64g"),
    (Apply(), "zero_dates", "error"),
    (Apply(), "unlogged_columns", "null"),
    (Capture(), "value_log_path", "/etc"),
    (Capture(), "value_log_reserve_bytes", 0),
    (Maintain(), "keep_cuts_hours", 1),
    (Maintain(), "keep_bronze_days", 1),
    (Snapshot(), "marks", "unlogged"),
    (Verify(), "memory_bytes", 1 << 40),
    (Apply(), "lake", {"path": "s3://another"}),
    (Apply(), "paralel_tables", 2),
]


@pytest.mark.parametrize(("file", "name", "value"), NOT_A_RUNS, ids=[name for _, name, _ in NOT_A_RUNS])
def test_what_is_the_pipeline_files_alone_is_refused_in_one_line(
    file: Apply | Capture | Maintain | Snapshot | Verify, name: str, value: Any
) -> None:
    from tidegate_airflow.params import params_of, with_params

    assert name not in params_of(file)
    with pytest.raises(ConfigError, match=rf"^api__1: a run may not set {name}; write settings into") as raised:
        with_params(file, {name: value}, where="api__1")
    assert "http" not in str(raised.value), "a value may be a secret"


def test_what_a_run_repeats_of_the_file_is_let_pass() -> None:
    from tidegate_airflow.params import with_params

    file = Apply(spark_conf={"a": "b"})
    assert with_params(file, {"spark_conf": {"a": "b"}, "zero_dates": "null"}, where="run") == file


@pytest.mark.parametrize("job", ["apply", "maintain"])
def test_an_operator_refuses_a_runs_spark_settings_before_anything_is_started(job: str, tmp_path: Path) -> None:
    from tidegate_airflow.apply_operator import ApplyOperator
    from tidegate_airflow.maintain_operator import MaintainOperator

    file = tmp_path / "p.yaml"
    file.write_text(
        "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['*.*']}\n"
    )
    operator = {"apply": ApplyOperator, "maintain": MaintainOperator}[job](task_id=job, pipeline_file=str(file))
    run = {"params": {"spark_conf": {"spark.submit.pyFiles": "http://host/x.py"}}, "run_id": "api__1"}
    with pytest.raises(ConfigError, match="a run may not set spark_conf"):
        operator.execute(run)


def test_no_operator_takes_templates() -> None:
    from tidegate_airflow import (
        apply_operator,
        approve_operator,
        capture_sensor,
        maintain_operator,
        snapshot_operator,
        verify_operator,
    )

    assert [
        tuple(operator.template_fields)
        for operator in (
            apply_operator.ApplyOperator,
            approve_operator.ApproveOperator,
            capture_sensor.CaptureSensor,
            maintain_operator.MaintainOperator,
            snapshot_operator.SnapshotOperator,
            verify_operator.VerifyOperator,
        )
    ] == [()] * 6


def test_a_param_out_of_bounds_is_one_line_that_names_it() -> None:
    from tidegate_airflow.params import with_params

    with pytest.raises(
        ConfigError, match=r"^manual__1: param run_for_seconds: .*greater than or equal to 5; trigger"
    ) as raised:
        with_params(Capture(), {"run_for_seconds": 1}, where="manual__1")
    assert "\n" not in str(raised.value)


def test_airflow_itself_refuses_a_param_out_of_bounds_in_the_form() -> None:
    from airflow.sdk.exceptions import ParamValidationError

    from tidegate_airflow.params import params_of

    with pytest.raises(ParamValidationError, match="minimum"):
        params_of(Capture())["run_for_seconds"].resolve(1)


@pytest.mark.parametrize("error", [SourceRefused("no"), PositionLost("gone"), ConfigError("bad")])
def test_a_terminal_error_is_never_tried_again(error: Exception) -> None:
    from airflow.sdk import RetryAction

    from tidegate_airflow.retries import TransientOnly

    assert TransientOnly().evaluate(error, try_number=1, max_tries=10).action is RetryAction.FAIL


@pytest.mark.parametrize("error", [SourceUnavailable("down"), LakeUnavailable("down")])
def test_a_transient_error_is_tried_again_for_days_at_most_a_minute_apart(error: Exception) -> None:
    from airflow.sdk import RetryAction

    from tidegate.limits import TASK_ATTEMPTS_MAX
    from tidegate_airflow.retries import TransientOnly

    decisions = [
        TransientOnly().evaluate(error, try_number=n, max_tries=TASK_ATTEMPTS_MAX) for n in (1, 2, 3, 100, 9000)
    ]
    assert all(decision.action is RetryAction.RETRY for decision in decisions)
    assert [decision.retry_delay.total_seconds() for decision in decisions if decision.retry_delay] == [2, 4, 8, 60, 60]


def test_a_fault_is_tried_three_times() -> None:
    from airflow.sdk import RetryAction

    from tidegate_airflow.retries import TransientOnly

    actions = [TransientOnly().evaluate(KeyError("x"), try_number=n, max_tries=9).action for n in (1, 2, 3)]
    assert actions == [RetryAction.RETRY, RetryAction.RETRY, RetryAction.FAIL]


def test_a_maintain_runs_params_become_the_jobs_arguments() -> None:
    from tidegate import config
    from tidegate_airflow.maintain_operator import MaintainOperator

    text = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['*.*']}\n"
    pipeline = config.parse(text, where="p.yaml")
    operator = MaintainOperator(task_id="maintain", pipeline_file="p.yaml")
    params = {"cluster_share": 0.5, "purge_share": 0.2, "table": "shop.orders", "dry_run": True}
    found, arguments = operator.configured(pipeline, {"params": params, "run_id": "manual__1"})
    assert arguments == ["--set", "cluster_share=0.5", "--table", "shop.orders", "--dry-run"]
    assert found.maintain.cluster_share == 0.5
    for nothing in (None, ""):
        params = {"table": nothing, "dry_run": False}
        assert operator.configured(pipeline, {"params": params, "run_id": "m"})[1] == []


TWO_PUMPS = """
pipeline: orders
lake: {path: lake}
sources:
  pump_1: {conn_id: tidb, flavour: tidb, listen: ["unix:/run/1.sock"]}
  main: {conn_id: main, flavour: mysql}
  pump_2: {conn_id: tidb, flavour: tidb, listen: ["unix:/run/2.sock"]}
tables: {include: ["*.*"]}
"""


@pytest.mark.parametrize("begun", [0.0, 1.0, 299.0, 300.0, 300.5, 599.0])
def test_no_two_pumps_of_a_tidb_end_their_runs_at_the_same_moment(begun: float) -> None:
    """Each begins its next run some seconds after it ended, for ever."""
    from tidegate import config
    from tidegate_airflow.capture_sensor import run_ends_at

    pipeline = config.parse(TWO_PUMPS, where="orders.yaml")
    seconds = pipeline.capture.run_for_seconds
    ends: dict[str, list[float]] = {"pump_1": [], "pump_2": []}
    for source, moments in ends.items():
        now = 1.7e9 + begun
        for run in range(50):
            end = run_ends_at(pipeline, source, now)
            assert seconds / 2 <= end - now <= 1.5 * seconds
            moments.append(end)
            now = end + 2 + run % 4
    apart = min(abs(one - other) for one in ends["pump_1"] for other in ends["pump_2"])
    assert apart >= seconds / 2 - 1
    assert run_ends_at(pipeline, "main", 7.0) == 7.0 + seconds


@pytest.mark.parametrize(
    ("sources", "error", "seconds"),
    [
        (1, SourceRefused("access denied"), []),
        (3, SourceRefused("access denied"), [60.0]),
        (3, KeyError("a fault of ours"), [60.0]),
        (3, SourceUnavailable("down"), []),  # it is tried again in the same run
    ],
    ids=["alone", "refused", "fault", "down"],
)
def test_the_next_run_of_a_source_that_is_refused_doesnt_begin_at_once(
    sources: int, error: Exception, seconds: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate_airflow import capture_sensor

    file = tmp_path / "p.yaml"
    listed = ", ".join(f"s{number}: {{conn_id: c{number}, flavour: mysql}}" for number in range(sources))
    file.write_text(f"pipeline: p\nlake: {{path: x}}\nsources: {{{listed}}}\ntables: {{include: ['*.*']}}\n")

    def refuse(*_: object, **_by_name: object) -> None:
        raise error

    waited = list[float]()
    sensor = capture_sensor.CaptureSensor(task_id="s0", pipeline_file=str(file), source="s0")
    monkeypatch.setattr(sensor, "_capture_or_wait", refuse)
    monkeypatch.setattr(sensor._stop, "wait", waited.append)
    monkeypatch.setattr(capture_sensor.pipelines, "resolved", lambda pipeline: pipeline)
    with pytest.raises(type(error)):
        sensor.execute({"params": {}, "run_id": "r"})
    assert waited == seconds


@pytest.mark.parametrize("heals", [True, False])
def test_a_refused_pump_is_tried_again_and_fails_no_sooner_than_others(
    heals: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TiDB may be waiting for it: a new process would take seconds more, and thousands of runs a day."""
    from tidegate_airflow import capture_sensor

    file, tried, now = tmp_path / "p.yaml", list[float](), [0.0]
    pump = "{conn_id: c, flavour: tidb, listen: ['unix:/p']}"
    file.write_text(f"pipeline: p\nlake: {{path: x}}\nsources: {{s0: {pump}}}\ntables: {{include: ['*.*']}}\n")

    def capture(*_: object, **_by_name: object) -> None:
        tried.append(now[0])
        if not (heals and len(tried) == 4):
            raise HostRefused("can't listen")

    def wait(seconds: float) -> bool:
        now[0] += seconds
        return False

    sensor = capture_sensor.CaptureSensor(task_id="s0", pipeline_file=str(file), source="s0")
    monkeypatch.setattr(sensor, "_capture_or_wait", capture)
    monkeypatch.setattr(sensor._stop, "wait", wait)
    monkeypatch.setattr(capture_sensor.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(capture_sensor.pipelines, "resolved", lambda pipeline: pipeline)
    if heals:
        sensor.execute({"params": {}, "run_id": "r"})
        assert tried == [0.0, 2.0, 4.0, 6.0]
        return
    with pytest.raises(HostRefused):
        sensor.execute({"params": {}, "run_id": "r"})
    assert tried == [2.0 * number for number in range(31)]


def test_a_quiet_source_proves_each_hour_soon_where_others_wait_for_it() -> None:
    from tidegate import config
    from tidegate_airflow.capture_sensor import waits_until

    text = "pipeline: p\nlake: {path: x}\nsources: {db: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"
    plain = config.parse(text, where="p.yaml")
    hourly = config.parse(text + "completeness: {hourly: true}\n", where="p.yaml")
    assert waits_until(plain, 7_100.0, 7_700.0) == 7_700.0
    assert 7_200.0 < waits_until(hourly, 7_100.0, 7_700.0) < 7_210.0
    assert waits_until(hourly, 7_201.0, 7_700.0) == 7_700.0, "the next hour is far away"
