"""Submit a job of spark_jobs/, and map its end to success, fail or retry.

In:  a pipeline file, the run's params, the Spark connection.
Out: the job's writes; success, or the job's own one-line error as Terminal (fail) or Transient (retry).

The job gets its settings by argv, the lake's keys by the environment variable TIDEGATE_STORAGE_OPTIONS, and those of
masks by TIDEGATE_MASK_KEYS, set at run time only: they are in no argv, no log and no rendered template. On YARN and
Kubernetes, where spark-submit would put the environment into argv, keys are not passed: the driver uses the cluster's
own identity, or secrets mounted under these names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException

from tidegate import log_lines, pipelines, source_logins, spark_settings
from tidegate.errors import ConfigError, LakeUnavailable, Terminal, TidegateError
from tidegate.home import (
    EXIT_ERROR,
    EXIT_TRANSIENT,
    EXIT_USAGE,
    HOME_ENV,
    MASK_KEYS_ENV,
    SOURCE_LOGINS_ENV,
    SPARK_MASTER_ENV,
    STORAGE_OPTIONS_ENV,
    home,
)
from tidegate.masks.mask_keys import mask_passwords
from tidegate_airflow.connections import lake_connection
from tidegate_airflow.retries import Ended

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.config import Pipeline

# The job's line with its final error.
_ERROR_LINE = re.compile(r"^tidegate: (?!warning: )\w+: (?P<line>.+)$")
# The job's lines with warnings.
_WARNING_LINE = re.compile(r"^tidegate: warning: (?P<line>.+)$")


# Java and Spark print these at each start.
_JVM_STARTS = re.compile(r"\s*(WARNING: Using incubator modules: |Setting Spark log level to )")
_SETTINGS = re.compile(r"--conf .*(?= --name )")


def short_command(text: str) -> str:
    """A spark-submit without its settings, which come from the pipeline file and this machine."""
    return _SETTINGS.sub(lambda settings: f"... {settings[0].count('--conf ')} settings by --conf ...", text, count=1)


class JobFailed(Terminal):
    """The Spark job ended with an error that a person must look at."""


class JobInterrupted(LakeUnavailable):
    """The Spark job ended with an error that may pass by itself."""


class JobLost(Ended):
    """The Spark job ended without a line of its own."""


class SparkJobOperator(SparkSubmitOperator):
    """One run of a pipeline's job: a SparkSubmitOperator whose settings come from the pipeline file and the params.

    A subclass names its job and says which arguments a run's params make.
    """

    job: ClassVar[str]
    template_fields = ()  # no templates: Airflow's database would keep rendered fields

    def __init__(self, *, pipeline_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file

    def execute(self, context: Context) -> None:
        """Submit the job and wait for it. Raises JobFailed, JobInterrupted, or ConfigError for params out of bounds."""
        pipeline, arguments = self.configured(pipelines.load(Path(self.pipeline_file)), context)
        self._prepare(pipeline, arguments)
        self._relay_warnings()
        try:
            super().execute(context)
        except AirflowException as error:
            raise self._named(error, pipeline) from None

    def configured(self, pipeline: Pipeline, context: Context) -> tuple[Pipeline, list[str]]:
        """The pipeline with the run's params in place of the file's values, and the job's arguments beyond it."""
        raise NotImplementedError

    def _prepare(self, pipeline: Pipeline, arguments: list[str]) -> None:
        root = home()
        self.application = str(spark_settings.application(self.job))
        self.application_args = ["--pipeline", self.pipeline_file, *arguments]
        self.name = f"tidegate {pipeline.pipeline} {self.job}"
        self.conf = spark_settings.submit_conf(pipeline, root)
        self._conn_id = pipeline.apply.spark_conn_id
        self.env_vars = spark_settings.submit_environment(root) | _spark_of_this_environment()
        self._hook = self._get_hook()
        _use_local_unless_configured(self._hook, self.log)
        if self._hook._connection["master"].startswith("local"):  # noqa: SLF001
            self.env_vars["SPARK_LOCAL_IP"] = "127.0.0.1"  # a driver that nobody else talks to listens to nobody else
        if self._hook._is_yarn or self._hook._is_kubernetes:  # noqa: SLF001 - the provider has no public word for it
            if pipeline.lake.conn_id:
                self.log.warning("lake.conn_id isn't passed to the driver, which uses its cluster's identity")
            self.env_vars = {HOME_ENV: str(root)}
        else:
            options = pipelines.storage_options(pipeline.lake, lake_connection)
            self.env_vars[STORAGE_OPTIONS_ENV] = json.dumps(options)
            if self.job == "apply" and (passwords := mask_passwords(pipeline.tables, lake_connection)):
                self.env_vars[MASK_KEYS_ENV] = json.dumps(passwords)
            if self.job == "apply" and (logins := source_logins.given(pipeline, lake_connection)):
                self.env_vars[SOURCE_LOGINS_ENV] = json.dumps(logins)
        self._hook._env_vars = self.env_vars  # noqa: SLF001 - as the hook's constructor would

    def _relay_warnings(self) -> None:
        """Log the job's warnings as warnings of the task. The provider logs everything that a job prints as
        information.

        The log has the command without its 40 or so settings; at level debug it has the whole command. Lines that Java
        prints at each start are left out.
        """
        hook = self._hook
        assert hook is not None, "made by _prepare"
        relay = hook._process_spark_submit_log  # noqa: SLF001 - no other place sees the lines while they come

        def sifted(lines: Iterator[Any]) -> Iterator[Any]:
            for line in lines:
                text = line.strip()
                if warning := _WARNING_LINE.match(said := log_lines.plain(text)):
                    self.log.warning("%s", warning["line"] if said == text else text)
                elif not _JVM_STARTS.match(line):
                    yield line

        def relayed(itr: Iterator[Any]) -> None:
            relay(sifted(itr))

        hook._process_spark_submit_log = relayed  # type: ignore[method-assign]  # noqa: SLF001
        masked = hook._mask_cmd  # noqa: SLF001 - its only other place is a failed job's message

        def shortened(command: str | list[str]) -> str:
            whole = masked(command)
            self.log.debug("%s", whole)
            return short_command(whole)

        hook._mask_cmd = shortened  # type: ignore[assignment, method-assign]  # noqa: SLF001

    def _named(self, error: AirflowException, pipeline: Pipeline) -> Exception:
        """The exception for the job's exit code and error line. Without a line the job was ended from outside."""
        process = self._hook._submit_sp if self._hook else None  # noqa: SLF001
        kind = _KINDS.get(process.returncode if process else None)
        last = reversed(self._hook._last_submit_log_lines) if self._hook else ()  # noqa: SLF001
        lines = (log_lines.plain(text.strip()) for text in last)
        line = next((match["line"] for text in lines if (match := _ERROR_LINE.match(text))), None)
        where = f"{self.job} of {pipeline.pipeline}"
        if kind and line:
            return kind(line, where=where)
        if process is None or process.returncode in (None, 0):
            return error
        code = process.returncode
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return JobLost(
            f"Spark ended {how}, without saying why",
            where=where,
            remedy="see the lines above; 137 and signal 9 mean that this machine ran out of memory, or a kill; nothing"
            " is lost, the next try goes on",
        )


# A job with another code was ended from outside (out of memory, a lost machine).
_KINDS: dict[int | None, type[TidegateError]] = {
    EXIT_ERROR: JobFailed,
    EXIT_USAGE: JobFailed,
    EXIT_TRANSIENT: JobInterrupted,
}


def _spark_of_this_environment() -> dict[str, str]:
    """PATH and SPARK_HOME that lead to the pyspark installed beside this Python, whatever else the machine has."""
    scripts = str(Path(sys.executable).parent)
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "pyspark is not installed", where=sys.executable, remedy="install requirements.txt (make environment)"
        )
    return {
        "PATH": os.pathsep.join((scripts, os.environ.get("PATH", os.defpath))),
        "SPARK_HOME": next(iter(spec.submodule_search_locations)),
    }


def _use_local_unless_configured(hook: SparkSubmitHook, log: Any) -> None:
    """spark_default of a fresh Airflow says yarn. Without a Hadoop configuration that can't work, so the job runs on
    this machine.
    """
    hadoop = os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")
    connection = hook._connection  # noqa: SLF001
    if connection["master"] == "yarn" and not hadoop:
        log.info("the Spark connection names no cluster that can be reached; the job runs here, on local[*]")
        connection |= {
            "master": os.environ.get(SPARK_MASTER_ENV, "local[*]"),
            "queue": None,
            "deploy_mode": None,
        }
        hook._is_yarn = hook._is_yarn_cluster_mode = False  # noqa: SLF001
