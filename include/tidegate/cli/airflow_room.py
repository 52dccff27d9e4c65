"""Whether this computer's Airflow runs as many tasks at one time as pipelines need, for `tidegate check`.

In:  Airflow's core.parallelism, from the environment or airflow.cfg; how many sources all pipelines have.
Out: a Line, where it is too small. Airflow isn't imported: that takes seconds, and it may be another environment's.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tidegate.mysql.checking.examination import Line

# Apply, maintain, snapshot, verify, and two for what a person starts.
TASKS_BESIDE: Final = 6
_HOME: Final = "AIRFLOW_HOME"
_SETTING: Final = "AIRFLOW__CORE__PARALLELISM"


def parallelism(environment: Mapping[str, str]) -> int | None:
    """None where nobody says it."""
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
    """sources: of all pipelines: each has a task that gives its slot back seldom or never."""
    from tidegate.mysql.checking.examination import Line, SourceVerdict

    has, needs = parallelism(environment), sources + TASKS_BESIDE
    if has is None or has >= needs:
        return []
    text = (
        f"core.parallelism is {has}, and pipelines with {sources} sources need {needs}: some are captured by turns, and"
        " apply waits for them"
    )
    return [Line("Airflow", SourceVerdict.CAUTION, text)]
