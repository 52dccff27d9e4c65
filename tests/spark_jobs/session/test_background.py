"""Spark in the background: begun once, waited for by who needs it, one clear error when it doesn't come up."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.session.background import BackgroundSession
from tidegate.errors import ConfigError, SparkUnavailable, Terminal, Transient


def test_begin_returns_at_once_and_who_asks_waits() -> None:
    go, made = threading.Event(), []
    there: Any = object()

    def make() -> SparkSession:
        go.wait(60)
        made.append(1)
        return there

    background = BackgroundSession(make)
    background.begin()
    background.begin()
    background.check()
    assert not made
    asked = threading.Timer(0.05, go.set)
    asked.start()
    assert background.session is there
    assert background.session is there
    assert made == [1], "begun once"


def test_what_was_never_asked_for_is_not_begun() -> None:
    def make() -> SparkSession:
        raise AssertionError("nobody asked")

    background = BackgroundSession(make)
    background.check()
    background.stop()


@pytest.mark.parametrize(("master", "begun"), [("local[2]", []), ("yarn", [1]), ("spark://host:7077", [1])])
def test_ahead_of_the_windows_only_a_cluster_is_started(
    master: str, begun: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    asked, made = [], list[int]()

    def submitted() -> str:
        asked.append(1)
        return master

    def make() -> SparkSession:
        made.append(1)
        session: Any = SimpleNamespace(stop=lambda: None)
        return session

    monkeypatch.setattr("spark_jobs.session.background._submitted_master", submitted)
    background = BackgroundSession(make)
    background.begin_ahead()
    background.begin_ahead()
    assert len(asked) == 1, "the gateway is asked once"
    background.stop()
    assert made == begun
    assert background.session is not None
    assert made == [1], "who needs it has it"


def test_a_failed_start_is_one_error_for_all_who_ask_and_none_of_them_hangs() -> None:
    def make() -> SparkSession:
        raise OSError("no memory\nfor the JVM")

    background = BackgroundSession(make)
    for _ in range(2):
        with pytest.raises(SparkUnavailable, match="Spark did not start: no memory"):
            _ = background.session
    with pytest.raises(SparkUnavailable) as caught:
        background.check()
    assert isinstance(caught.value, Transient)
    background.stop()


def test_apply_is_imported_without_pyspark() -> None:
    told = "import sys, spark_jobs.apply; print([name for name in sys.modules if name.partition('.')[0] == 'pyspark'])"
    found = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]", "a small window would wait for it: import it where Spark is used"


@pytest.mark.spark
def test_a_class_that_no_jar_has_is_a_fault_of_the_settings(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm

    def make() -> SparkSession:
        made: SparkSession = jvm.org.apache.spark.util.Utils.classForName("no.such.Class", True, True)
        return made

    background = BackgroundSession(make)
    with pytest.raises(SparkUnavailable) as passing:  # a table that asks is not held for it
        _ = background.session
    assert not isinstance(passing.value, Terminal)
    with pytest.raises(ConfigError, match=r"no\.such\.Class"):
        background.check()


def _nobody() -> SparkSession:
    raise AssertionError("asked for a session")


@pytest.mark.spark
@pytest.mark.parametrize(("master", "expected"), [("local[2]", "True"), ("spark://nobody:7077", "False")])
def test_where_spark_runs_is_known_before_it_starts(tmp_path: Path, master: str, expected: str) -> None:
    """spark-submit's settings say it, whose JVM is there anyhow."""
    script = tmp_path / "where.py"
    script.write_text(
        "from spark_jobs.session.background import BackgroundSession\n"
        "from tests.spark_jobs.session.test_background import _nobody\n"
        "print('local:', BackgroundSession(_nobody).is_local())\n"
    )
    submit = Path(sys.executable).with_name("spark-submit")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [str(submit), "--master", master, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert f"local: {expected}" in done.stdout, done.stderr


@pytest.mark.parametrize(("master", "expected"), [("local[4]", True), ("yarn", False)])
def test_without_spark_submit_the_session_itself_says_where_it_runs(
    monkeypatch: pytest.MonkeyPatch, master: str, *, expected: bool
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    assert BackgroundSession(lambda: session).is_local() is expected
