"""How a Spark job's end and its warnings come out in Airflow, by the provider's own hook and a real process.

In:  a job's lines; a process that is killed.
Out: warnings of the task; one line for a job that could not say why it ended, tried again three times.
"""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tidegate import config
from tidegate.errors import Transient

pytestmark = pytest.mark.airflow

PIPELINE = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['*.*']}\n"


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Any:
    from tidegate_airflow.apply_operator import ApplyOperator

    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    made = ApplyOperator(task_id="apply", pipeline_file="p.yaml", conn_id="spark_default")
    made._hook = made._get_hook()
    return made


def test_a_jobs_warnings_are_the_tasks_warnings(operator: Any, capsys: pytest.CaptureFixture[str]) -> None:
    operator._relay_warnings()
    operator._hook._process_spark_submit_log(iter(["cut 1: 2 changes\n", "tidegate: warning: a.b is held: why\n"]))
    usual, warned = capsys.readouterr().out.splitlines()
    assert "info" in usual
    assert "cut 1: 2 changes" in usual
    assert "warning" in warned
    assert "a.b is held: why" in warned
    assert "tidegate: warning" not in warned


def test_a_tasks_log_has_no_line_of_each_start_and_a_command_that_fits_a_screen(
    operator: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was 3,000 characters, the first thing that a person met."""
    operator.application, operator.name = "/p/spark_jobs/apply.py", "tidegate p apply"
    operator.conf = {f"spark.a{number}": "-XX:One -XX:Two=3" for number in range(40)}
    hook = operator._hook = operator._get_hook()
    operator._relay_warnings()
    command = hook._build_spark_submit_command("/p/spark_jobs/apply.py")
    assert command.count("--conf") == 40, "what runs has them"
    hook._process_spark_submit_log(iter(["WARNING: Using incubator modules: jdk.incubator.vector\n", "silver\n"]))
    lines = capsys.readouterr().out.splitlines()
    (said,) = [line for line in lines if "Spark-Submit cmd" in line]
    assert "... 40 settings by --conf ... --name tidegate p apply /p/spark_jobs/apply.py" in said
    assert "-XX" not in said
    assert not any("incubator" in line for line in lines)


def test_a_killed_spark_is_one_line_and_tried_three_times(operator: Any) -> None:
    from airflow.sdk import RetryAction
    from airflow.sdk.exceptions import AirflowException

    from tidegate_airflow.retries import TransientOnly

    with subprocess.Popen(["sleep", "60"]) as process:
        process.kill()
    operator._hook._submit_sp = process
    operator._hook._last_submit_log_lines = ["tidegate: warning: a.b is held: why", "something of Spark's own"]
    error = operator._named(AirflowException("Cannot execute: spark-submit ..."), config.parse(PIPELINE, where="p"))
    assert isinstance(error, Transient)
    assert str(error).startswith("apply of p: Spark ended by signal 9, without saying why; see the lines above")
    actions = [TransientOnly().evaluate(error, try_number=number, max_tries=9).action for number in (1, 2, 3)]
    assert actions == [RetryAction.RETRY, RetryAction.RETRY, RetryAction.FAIL]
