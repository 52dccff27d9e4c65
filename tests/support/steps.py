"""apply's steps as tests run them: up to one of them, as one window's try does, or with something done before one.

In:  an Application and a Window.
Out: the window as the steps leave it, and what they made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from spark_jobs import apply as job
from spark_jobs.apply_steps.decode_changes import decode_changes
from spark_jobs.apply_steps.judge_ddl import judge_ddl
from spark_jobs.apply_steps.plan_window import plan_window
from spark_jobs.apply_steps.publish_cut import publish_cut
from spark_jobs.apply_steps.replay_schema_history import replay_schema_history
from spark_jobs.apply_steps.resolve_watermarks import resolve_watermarks
from spark_jobs.window.application import Application
from spark_jobs.window.made import DdlReplayed, TakenWaves
from spark_jobs.window.pairing.pairs import pairs_of
from spark_jobs.window.plan import NOTHING_PLANNED
from spark_jobs.window.shape.decode_plan import Decoded
from spark_jobs.window.window import Window

# In the order in which a window's try comes to them.
NAMES: Final = tuple(
    name
    for name in job._applied.__code__.co_names
    if getattr(getattr(job, name, None), "__module__", "") == f"spark_jobs.apply_steps.{name}"
)


def do_before(patch: pytest.MonkeyPatch, name: str, act: Callable[[], None]) -> None:
    """Whenever a window comes to a step."""
    step = getattr(job, name)

    def done(*given: object) -> object:
        act()
        return step(*given)

    patch.setattr(job, name, done)


def replayed(app: Application, window: Window) -> DdlReplayed:
    planned = plan_window(app, window)
    return replay_schema_history(app, planned, pairs_of(app, planned.window))


def to_ddl(app: Application, window: Window) -> Window:
    """Planned, and its DDL replayed."""
    return replayed(app, window).window


def to_waves(app: Application, window: Window) -> tuple[Window, TakenWaves]:
    """... and what snapshots have read taken."""
    return resolve_watermarks(app, to_ddl(app, window))


def decoded(app: Application, window: Window) -> tuple[Window, Decoded]:
    """... without snapshots; judged and decoded, for MERGE."""
    window = to_ddl(app, window)
    judge_ddl(app, window)
    return window, decode_changes(app, window, (), dict.fromkeys(window.tables, NOTHING_PLANNED))


def to_decode(app: Application, window: Window) -> Window:
    return decoded(app, window)[0]


def publish(
    app: Application, window: Window, waves: TakenWaves | None = None, versions: Mapping[str, int] | None = None
) -> None:
    publish_cut(app, window, waves or TakenWaves(), versions or {})


__all__ = ["NAMES", "decoded", "do_before", "publish", "replayed", "to_ddl", "to_decode", "to_waves"]
