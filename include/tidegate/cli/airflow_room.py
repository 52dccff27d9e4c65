"""Check, for `tidegate check`, that this computer's Airflow may run as many tasks at a time as the pipelines need.

In:  Airflow's core.parallelism, from the environment or airflow.cfg; how many sources all pipelines have.
Out: a Line, if it is too small. Airflow isn't imported: that takes seconds, and Airflow may be in another environment.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tidegate.mysql.checking.examination import Line

# Apply, maintain, snapshot, verify, and two tasks that a person starts.
TASKS_BESIDE: Final = 6
_HOME: Final = "AIRFLOW_HOME"
_SETTING: Final = "AIRFLOW__CORE__PARALLELISM"


def parallelism(environment: Mapping[str, str]) -> int | None:
    """core.parallelism; None if neither sets it."""
    setting = environment.get(_SETTING)
    if setting is None:
        home = Path(environment.get(_HOME, "~/airflow")).expanduser()
        airflow_cfg = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            airflow_cfg.read(home / "airflow.cfg")
        except (OSError, configparser.Error, UnicodeDecodeError):
            return None
        setting = airflow_cfg.get("core", "parallelism", fallback=None)
    return int(setting) if setting is not None and setting.strip().isdigit() else None


def airflow_lines(sources: int, environment: Mapping[str, str] = os.environ) -> list[Line]:
    """sources: number of sources of all pipelines. Each has a task that seldom or never gives its
    slot back.
    """
    from tidegate.mysql.checking.examination import Line, SourceVerdict

    has, needs = parallelism(environment), sources + TASKS_BESIDE
    if has is None or has >= needs:
        return []
    text = (
        f"core.parallelism is {has}, and pipelines with {sources} sources need {needs}: some are captured by turns, and"
        " apply waits for them"
    )
    return [Line("Airflow", SourceVerdict.CAUTION, text)]
