"""Run one of tidegate's Spark jobs by spark-submit, as the DAGs do.

In:  a job's name, a pipeline file, the job's own arguments.
Out: the job's exit code, its lines on stdout, its error on stderr; an object store's keys travel in the environment,
     never in argv.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TextIO

from tidegate import config, log_lines, pipelines, source_logins, spark_settings
from tidegate.connections import from_environment
from tidegate.errors import HostLacks, ProcessFailed, UsageError
from tidegate.home import (
    DIFFERS,
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_TRANSIENT,
    EXIT_USAGE,
    MASK_KEYS_ENV,
    SOURCE_LOGINS_ENV,
    STORAGE_OPTIONS_ENV,
    home,
)
from tidegate.masks.mask_keys import mask_passwords

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles

# A job's line with its final error. The class is for Airflow's operator.
_ERROR_LINE: Final = re.compile(r"^tidegate: (?!warning: )\w+: (?P<line>.+)$")
# Java prints the first line about a module that Spark uses, Spark the second about a setting of
# ours.
_JVM_STARTS: Final = re.compile(r"WARNING: Using incubator modules: |Setting Spark log level to ")
_KNOWN_CODES: Final = (
    EXIT_OK,
    EXIT_ERROR,
    EXIT_USAGE,
    EXIT_TRANSIENT,
)


def submit(job: str, pipeline: str, arguments: Sequence[str], master: str) -> int:
    """pipeline: its name, or its file. Raises UsageError, ConfigError, HostLacks, ProcessFailed."""
    root = home()
    path = pipelines.find(pipeline)
    loaded = pipelines.load(path)
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", master]
    for name, value in spark_settings.submit_conf(loaded, root).items():
        command += ["--conf", f"{name}={value}"]
    command += [str(spark_settings.application(job)), "--pipeline", str(path), *arguments]
    environment = os.environ | spark_settings.submit_environment(root)
    if loaded.lake.conn_id:
        environment[STORAGE_OPTIONS_ENV] = json.dumps(pipelines.storage_options(loaded.lake, from_environment))
    if job != "maintain" and (passwords := mask_passwords(loaded.tables, from_environment)):
        environment[MASK_KEYS_ENV] = json.dumps(passwords)
    if job != "maintain" and (logins := source_logins.given(loaded, from_environment)):
        environment[SOURCE_LOGINS_ENV] = json.dumps(logins)
    if not Path(command[0]).is_file():
        raise HostLacks("pyspark is not installed", where=command[0], remedy="run: make environment")
    has_error = False
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, errors="replace") as process:
        assert process.stdout is not None
        ends = _Ends(process)
        jvm = threading.Thread(target=_pass_on, args=(process.stderr,))
        jvm.start()
        for text in process.stdout:  # spark-submit puts both of the job's streams there
            said = log_lines.plain(text)
            error_line = _ERROR_LINE.match(said)
            has_error = has_error or error_line is not None or said.startswith(DIFFERS)
            print(
                f"tidegate: {error_line['line']}" if error_line and said == text else text.rstrip("\n"),
                flush=True,
                file=_stream(error_line),
            )
        jvm.join()
    code = process.returncode
    if ends.signalled and code != EXIT_OK:  # as after Ctrl-C, which a terminal sends to Spark, too
        return EXIT_INTERRUPTED
    if code != 0 and not has_error and (code not in _KNOWN_CODES or code == EXIT_ERROR):
        how = f"was ended from outside (signal {-code})" if code < 0 else f"ended with exit code {code}"
        raise ProcessFailed(
            f"Spark {how}, without a line of its own",
            where=f"{job} of {loaded.pipeline}",
            remedy="see what it printed above; run it again, nothing is lost",
        )
    return code


class _Ends:
    """Passes SIGTERM on to Spark: otherwise Spark would go on alone, and hold its lease. signalled: whether a signal
    came.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.signalled = False
        self._process = process
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self.signalled = True
        # The job's Python is a child of Spark's JVM. Without a signal it would go on until it needs Spark.
        for children in Path(f"/proc/{self._process.pid}/task").glob("*/children"):
            pids = list[str]()
            with suppress(OSError):  # a thread of the JVM has ended meanwhile
                pids = children.read_text().split()
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGTERM)
        self._process.terminate()


def _pass_on(stderr: IO[str]) -> None:
    """Copy the JVM's output, without the lines that each start prints."""
    for text in stderr:
        if not _JVM_STARTS.match(text):
            print(text.rstrip("\n"), flush=True, file=sys.stderr)


def _stream(error: re.Match[str] | None) -> TextIO:
    return sys.stderr if error else sys.stdout


def known_table(pipeline: config.Pipeline, lake: LakeFiles, table: str) -> None:
    """Raises UsageError for a table that this lake has never seen, before Spark starts."""
    from tidegate import tables
    from tidegate.lake import control

    named = control.newest(lake, tables.CUTS, by=["table"], columns=["table"])["table"].to_pylist()
    pair = ["database", "table"]
    history = control.newest(lake, tables.SCHEMA_HISTORY, by=pair, columns=pair)
    seen = {(row["database"], row["table"]) for row in history.to_pylist() if row["table"]}
    known = {name for name in named if name} | {pipeline.tables.logical(*pair).name for pair in seen}
    if table not in known:
        close = difflib.get_close_matches(table, known, n=1)
        remedy = f"did you mean {close[0]}?" if close else "give database.table as in silver"
        raise UsageError(f"there is no table {table!r}", where=pipeline.pipeline, remedy=remedy)
