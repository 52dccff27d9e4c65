"""The project's place on this machine, and the constants of its processes: environment names, exit codes.

In:  the environment.
Out: paths and constants. A process that starts another one, and the started process, have them from here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

# Names of environment variables.
HOME_ENV: Final = "TIDEGATE_HOME"
PIPELINES_ENV: Final = "TIDEGATE_PIPELINES"
STORAGE_OPTIONS_ENV: Final = "TIDEGATE_STORAGE_OPTIONS"
MASK_KEYS_ENV: Final = "TIDEGATE_MASK_KEYS"
SOURCE_LOGINS_ENV: Final = "TIDEGATE_SOURCE_LOGINS"
SPARK_MASTER_ENV: Final = "TIDEGATE_SPARK_MASTER"
# Shows the whole stack of an error that has no line of its own.
TRACEBACK_ENV: Final = "TIDEGATE_TRACEBACK"
# "json": log lines are JSON.
LOG_ENV: Final = "TIDEGATE_LOG"

# Exit codes of commands and jobs. Airflow's operator maps them to fail or retry.
EXIT_OK: Final = 0
EXIT_ERROR: Final = 1  # a person must look; also: the command found a difference, a held table or a fault
EXIT_USAGE: Final = 2  # called or configured wrongly
EXIT_TRANSIENT: Final = 75  # EX_TEMPFAIL of sysexits.h: may be gone the next time
EXIT_INTERRUPTED: Final = 130  # Ctrl-C
DIFFERS: Final = "not equal: "  # begins the last line of a job that ends with 1 for a difference, and not for a fault


_TREE: Final = Path(__file__).resolve().parents[2]  # of a checkout its root
# Folders of the project that an installed package has elsewhere, beside the package tidegate.
_INSTALLED: Final = {
    "dags": "tidegate_airflow/dags",
    "plugins": "tidegate_airflow/none",  # Airflow finds the plugin by its entry point
    "spark_jobs": "spark_jobs",
    "include/pipelines": "tidegate/pipelines/examples",
}


def home() -> Path:
    """Where pipelines' relative paths and this machine's state lie: TIDEGATE_HOME, else the checkout's root.

    For an installed package it is the folder tidegate of the user.
    """
    configured = os.environ.get(HOME_ENV)
    if configured:
        return Path(configured)
    return _TREE if _is_checkout() else Path.home() / "tidegate"


def pipelines_folder() -> Path:
    """Where pipeline files lie unless TIDEGATE_PIPELINES says otherwise."""
    return home() / ("include/pipelines" if (home() / "include").is_dir() else "pipelines")


def folder_of(part: str) -> Path:
    """A folder of the code that runs: dags, plugins, spark_jobs or include/pipelines.

    home() isn't asked: it may be AIRFLOW_HOME, whose dags/ is its owner's.
    """
    return _TREE / part if _is_checkout() else Path(__file__).resolve().parents[1] / _INSTALLED[part]


def _is_checkout() -> bool:
    return (_TREE / "spark_jobs").is_dir() and (_TREE / "dags").is_dir()


def state_folder() -> Path:
    """Where this machine keeps what isn't in a lake: value logs, jars, compiled kernels."""
    return home() / ".tidegate"
