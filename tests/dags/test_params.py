"""A run's params over a pipeline file's values, and what is tried again.

In:  models of tidegate.config, params as Airflow hands them to a task.
Out: the settings of that run, or one line of refusal.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate import pipelines
from tidegate.config import Apply, ApplyMode, Capture, Maintain
from tidegate.errors import ConfigError, LakeUnavailable, PositionLost, SourceRefused, SourceUnavailable
from tidegate.pipelines import encoded

pytestmark = pytest.mark.airflow


def test_a_triggered_runs_params_win_over_the_file_for_that_run() -> None:
    from tidegate_airflow.params import with_params

    file = Apply(parallel_tables=4)
    part = with_params(file, {"mode": "micro_batch", "parallel_tables": 1, "not_ours": 5}, where="run")
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
    params = {"keep_cuts_hours": 24, "purge_share": 0.2, "table": "shop.orders", "dry_run": True}
    found, arguments = operator.configured(pipeline, {"params": params, "run_id": "manual__1"})
    assert arguments == ["--set", "keep_cuts_hours=24", "--table", "shop.orders", "--dry-run"]
    assert found.maintain.keep_cuts_hours == 24
    for nothing in (None, ""):
        params = {"table": nothing, "dry_run": False}
        assert operator.configured(pipeline, {"params": params, "run_id": "m"})[1] == []


@pytest.mark.parametrize("part", [Capture(), Apply(), Maintain()], ids=["capture", "apply", "maintain"])
def test_a_field_that_may_be_nothing_can_be_cleared_in_the_form(part: Capture | Apply | Maintain) -> None:
    from tidegate_airflow.params import params_of, with_params

    fields = {name: form for name, form in params_of(part).items() if "null" in (form.schema["type"] or ())}
    assert fields
    for name, form in fields.items():
        found = with_params(part, {name: form.resolve(None)}, where="run")
        assert getattr(found, name) is None


@pytest.mark.parametrize("key", ["maintain.keep_bronze_days", "maintain.keep_records_days", "apply.stalled_seconds"])
def test_a_field_that_was_cleared_reaches_the_job_as_nothing(tmp_path: Path, key: str) -> None:
    from spark_jobs.session.job import configured
    from tidegate_airflow.apply_operator import ApplyOperator
    from tidegate_airflow.maintain_operator import MaintainOperator

    file = tmp_path / "p.yaml"
    file.write_text(
        "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['*.*']}\n"
    )
    part, name = key.split(".")
    operator = {"apply": ApplyOperator, "maintain": MaintainOperator}[part](task_id=part, pipeline_file=str(file))
    run = {"params": {name: None}, "run_id": "manual__1"}
    _, arguments = operator.configured(pipelines.load(file), run)
    assert getattr(getattr(configured(file, part, arguments[1::2]), part), name) is None
