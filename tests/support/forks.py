"""Processes that are forked from one that has imported everything: an interpreter of its own costs a CPU second.

In:  nothing.
Out: forks, a context of multiprocessing; exit_code(): how a function ended in a process of its own.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(
    [
        "spark_jobs.apply",
        "spark_jobs.maintain",
        "tidegate.binlog.rows.decode",
        "tests.support.driver",
        "tests.support.ties",
        "tests.support.loaded",
    ]
)


def exit_code(target: Callable[..., None], *arguments: Any) -> int | None:
    """As multiprocessing tells it: minus the signal that ended it; None: it is still at work after ten minutes."""
    process = forks.Process(target=target, args=arguments)
    process.start()
    process.join(600)
    code = process.exitcode
    if code is None:
        process.kill()
    return code
