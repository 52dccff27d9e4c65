"""Stopped work: capture of a source, or apply of a pipeline, judged by the last sign in its lease.

In:  the newest entry of the lease; since when a change waits for the work; the time.
Out: a Silence, with words for it; None while the work goes on.

A running process renews its lease every ten seconds. A process that ends by itself releases it,
also after an error. It may then rest until there is work: capture waits in Airflow's triggerer, and
apply waits until bronze has changes. An entry has times of its writer's clock. Only people read
them: they decide nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from tidegate.delta.leases.lease_entry import LeaseEntry, is_gone
from tidegate.limits import WORK_BEGINS_SECONDS, WORK_SILENT_SECONDS
from tidegate.text_layout import age_text


class LeasedWork(StrEnum):
    """A kind of work with a lease."""

    CAPTURE = "capture"
    APPLY = "apply"


class LastSign(StrEnum):
    """The last sign of stopped work."""

    KILLED = "killed"  # its process is gone without a release
    SILENT = "silent"  # it gives no sign any more: its process or its machine may be gone
    ENDED = "ended"  # it ended by itself, normally or with an error, and nothing has started it again


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """Work going on. of: the source, or the pipeline. host: of its process. since: Unix time."""

    work: LeasedWork
    of: str
    host: str
    since: float


@dataclass(frozen=True, slots=True)
class Silence:
    """Stopped work. of: the source, or the pipeline. since: Unix time of the last sign. dag: its DAG's id."""

    work: LeasedWork
    of: str
    pipeline: str
    sign: LastSign
    since: float
    dag: str

    @property
    def command(self) -> str:
        """The command for the same work without Airflow."""
        of = f" --source {self.of}" if self.work is LeasedWork.CAPTURE else ""
        return f"tidegate {self.work} {self.pipeline}{of}"

    def text(self, now: float) -> str:
        """Which work stopped, and since when."""
        at = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        ago = age_text(max(0.0, now - self.since))
        return f"{self.work} of {self.of} has not answered since {at}, {ago} ago: {_SIGNS[self.sign]}"

    @property
    def way_out(self) -> str:
        """How to start it again."""
        return (
            f"start the DAG {self.dag} in Airflow: unpause it, or do what its log says; `tidegate up {self.pipeline}`"
            f" starts Airflow on this computer. Without Airflow: `{self.command}`"
        )

    def plain(self, now: float) -> dict[str, Any]:
        """In JSON's own types."""
        row = {"work": str(self.work), "of": self.of, "sign": str(self.sign), "since": self.since}
        return row | {"dag": self.dag, "text": self.text(now), "way_out": self.way_out}


_SIGNS: Final = {
    LastSign.KILLED: "its process is gone",
    LastSign.SILENT: "it hangs, its machine is gone, or it can't write to the lake",
    LastSign.ENDED: "it ended, and nothing has begun it again",
}


def last_sign(
    entry: LeaseEntry | None, now: float, *, waits_since: float | None, rests_seconds: float = math.inf
) -> tuple[LastSign, float] | None:
    """The last sign of stopped work, and its Unix time; None while it goes on, or before its first
    run.

    waits_since: the Unix time of the first waiting change; None without one. rests_seconds: how
    long the work may rest even then.
    """
    if entry is None:
        return None
    since = entry.written_ms / 1000
    if not entry.released:
        if is_gone(entry):
            return LastSign.KILLED, since
        silent = now - since > max(WORK_SILENT_SECONDS, 2 * entry.term_seconds)
        return (LastSign.SILENT, since) if silent else None
    begins = min(math.inf if waits_since is None else waits_since, since + rests_seconds)
    return (LastSign.ENDED, since) if now - max(since, begins) > WORK_BEGINS_SECONDS else None
