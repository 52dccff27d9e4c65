"""Wake the notifiers' DAGs when a pipeline's trouble begins, and when it ends.

In:  the state of a pipeline, as the page reads it: its lake, its sources, and the status of a capture on this machine.
Out: an asset event with every beginning and end since the last one. Airflow's asset state remembers these.

If the triggerer dies after it fired an event and before it stored that, the event is fired again. Each message so comes
at least once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tidegate.config import Pipeline
from tidegate.errors import SourceUnavailable, TidegateError
from tidegate.limits import ALERT_LOOK_SECONDS, ALERT_VIEW_SECONDS_MAX, ANSWER_SECONDS_MAX
from tidegate.patience import Patience
from tidegate_airflow.connections import alake_connection, asource_connection
from tidegate_airflow.lake_trigger import LakeTrigger

if TYPE_CHECKING:
    from tidegate.connections import Connection, Connections
    from tidegate.metrics.notices import Notices
    from tidegate.pipelines import PipelineReader, PipelineView


class AlertsTrigger(LakeTrigger):
    """pipeline: the pipeline file as plain values; it has no secrets."""

    kept_key = "told"

    def __init__(
        self, pipeline: dict[str, Any], *, look_seconds: float = ALERT_LOOK_SECONDS, poll_seconds: float = 2.0
    ) -> None:
        self.pipeline = pipeline
        self.look_seconds = look_seconds
        self._file = Pipeline.model_validate(pipeline)
        # Its look opens the lake by itself, with the connection.
        super().__init__(self._file.lake.path, None, {}, poll_seconds=poll_seconds)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments: the triggerer makes the trigger again from these."""
        return (
            "tidegate_airflow.alerts_trigger.AlertsTrigger",
            {"pipeline": self.pipeline, "look_seconds": self.look_seconds, "poll_seconds": self.poll_seconds},
        )

    def follow(self, kept: Any) -> FollowedPipeline:
        """Follows the pipeline from what was kept."""
        loop = asyncio.get_running_loop()
        connections = (_asked_in(loop, alake_connection), _asked_in(loop, asource_connection))
        return FollowedPipeline(self._file, kept, connections, self.look_seconds)


def _asked_in(loop: asyncio.AbstractEventLoop, ask: Callable[[str], Coroutine[Any, Any, Connection]]) -> Connections:
    """Connections for a thread beside the triggerer's loop, since Airflow gives them in the loop only. They raise only
    our own errors, as a look handles no others.
    """

    def connection(conn_id: str) -> Connection:
        try:
            return asyncio.run_coroutine_threadsafe(ask(conn_id), loop).result(ANSWER_SECONDS_MAX)
        except TidegateError:
            raise
        except Exception as error:  # Airflow's own errors, and a timeout
            raise SourceUnavailable(
                f"Airflow doesn't give connection {conn_id!r}: {type(error).__name__}", where="Airflow"
            ) from error

    return connection


class FollowedPipeline:
    """Reads the state of a pipeline every look_seconds. kept: a value that the property of this name gave. connections:
    (the lake's, the sources').
    """

    def __init__(
        self, pipeline: Pipeline, kept: Any, connections: tuple[Connections, Connections], look_seconds: float
    ) -> None:
        self._pipeline, self._before, self._connections = pipeline, kept, connections
        self._look_seconds = look_seconds
        self._reader: PipelineReader | None = None
        self._notices: Notices | None = None
        self._looked_at = -look_seconds
        self._patience = Patience(ALERT_VIEW_SECONDS_MAX)

    @property
    def kept(self) -> dict[str, Any]:
        """The alerts that were sent and aren't over."""
        return self._notices.kept if self._notices is not None else dict(self._before or {})

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Blocks."""
        del lake, options
        from tidegate.metrics.notices import Notices  # heavy imports: in the looking thread
        from tidegate.pipelines import PipelineReader

        if self._notices is None:
            self._notices = Notices(self._pipeline, self._before)
        self._reader = PipelineReader(self._pipeline, *self._connections)

    def look(self) -> dict[str, Any] | None:
        """The changes since the last look; None without any. Blocks."""
        from tidegate.capture import status_file
        from tidegate.home import state_folder
        from tidegate.metrics.disks import disks
        from tidegate.metrics.measured import samples
        from tidegate.metrics.rules import says

        assert self._reader is not None, "open comes first"
        assert self._notices is not None, "open makes it"
        if time.monotonic() - self._looked_at < self._look_seconds:
            return None
        view = self._view(self._reader)
        self._looked_at = time.monotonic()
        captures = status_file.read_all(self._pipeline, state_folder())
        figures = samples(view, captures, disks(self._pipeline, state_folder()))
        changes = self._notices.take_in(says(view, figures), view.at)
        return {"changes": [change.plain() for change in changes]} if changes else None

    def _view(self, reader: PipelineReader) -> PipelineView:
        """A hanging lake, such as a dead server's mount, is an unreadable one: else nobody would hear of anything."""
        from tidegate.pipelines import PipelineView

        try:
            return self._patience.ask("look", lambda: reader.view(None))
        except TimeoutError:
            return PipelineView(self._pipeline, time.time(), "the lake doesn't answer", fault=TimeoutError.__name__)
