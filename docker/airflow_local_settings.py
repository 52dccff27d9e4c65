"""A policy of Airflow: capture has a queue of its own, so that it comes back to the machine of its value log."""

from typing import Any


def task_policy(task: Any) -> None:
    if task.task_type == "CaptureSensor":
        task.queue = "capture"
