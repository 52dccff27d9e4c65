"""Where the project lies on this machine, and the words that its processes agree on: environment names, exit codes.

In:  the environment.
Out: paths and constants. What starts a process and what that process reads have them from here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

# Names of environment variables.
HOME_ENV: Final = "TIDEGATE_HOME"
PIPELINES_ENV: Final = "TIDEGATE_PIPELINES"
STORAGE_OPTIONS_ENV: Final = "TIDEGATE_STORAGE_OPTIONS"
SPARK_MASTER_ENV: Final = "TIDEGATE_SPARK_MASTER"
# Shows the whole stack of an error that has no line of its own.
TRACEBACK_ENV: Final = "TIDEGATE_TRACEBACK"

# Exit codes of commands and jobs. Airflow's operator maps them to fail or retry.
EXIT_OK: Final = 0
EXIT_ERROR: Final = 1  # a person must look; a command also ends so when it found what it was asked to look for
EXIT_USAGE: Final = 2  # called or configured wrongly
EXIT_TRANSIENT: Final = 75  # EX_TEMPFAIL of sysexits.h: may be gone the next time
EXIT_INTERRUPTED: Final = 130  # Ctrl-C
DIFFERS: Final = "not equal: "  # begins the last line of a job that ends with 1 because it found a difference: no fault


def home() -> Path:
    """The project's root: TIDEGATE_HOME, else the folder that holds include/."""
    configured = os.environ.get(HOME_ENV)
    return Path(configured) if configured else Path(__file__).resolve().parents[2]


def state_folder() -> Path:
    """Where this machine keeps what isn't in a lake: value logs, jars, compiled kernels."""
    return home() / ".tidegate"
