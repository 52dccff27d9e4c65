"""Questions to pipelines' lakes, each answered within seconds, also if a lake hangs.

In:  PipelineReaders, which wait for their lakes for ever.
Out: views; of a lake without an answer the last view, and it says so. Other questions end with NoAnswer.

All pages of Airflow share some forty threads. Without this, a few open pages of a hanging lake would hold them all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from tidegate.home import state_folder
from tidegate.limits import (
    PAGE_ACT_SECONDS,
    PAGE_FIRST_SECONDS,
    PAGE_HUNG_THREADS_MAX,
    PAGE_LAKE_SECONDS,
    PAGE_OLD_SECONDS,
    PAGE_VIEW_THREADS_MAX,
)
from tidegate.metrics.disks import Disk, disks
from tidegate.patience import NoAnswer, Patience
from tidegate.pipelines import PipelineReader, PipelineView

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")
NO_ANSWER: Final = "it hasn't answered yet; a first look takes longer than later ones"


class PatientReader:
    """Asks a reader. Any thread may use it."""

    def __init__(self, reader: PipelineReader) -> None:
        self.reader = reader
        self._views = Patience(PAGE_LAKE_SECONDS, PAGE_HUNG_THREADS_MAX)
        self._questions = Patience(PAGE_LAKE_SECONDS, PAGE_HUNG_THREADS_MAX)
        self._acts = Patience(PAGE_ACT_SECONDS, PAGE_HUNG_THREADS_MAX)
        self._acted_at = 0.0
        self._known: dict[str, PipelineView] = {}  # by span

    def view(self, span: str = "hour") -> PipelineView:
        """The reader's view; after PAGE_LAKE_SECONDS without an answer its last one. If nobody has looked for a while,
        it waits longer for a newer one.

        Nobody waits for a look from before an action: it would show the state before it.
        """
        oldest = time.time() - PAGE_OLD_SECONDS
        is_known = any(view.at > oldest for view in self._known.copy().values())
        seconds = PAGE_LAKE_SECONDS if is_known else PAGE_FIRST_SECONDS
        try:
            name = f"view of the last {span} since {self._acted_at}"
            view = self._views.ask(name, lambda: self._look(span), seconds)
        except NoAnswer:
            view = self._last(span, time.time())
        return replace(view, is_before_act=view.at <= self._acted_at)

    def _look(self, span: str) -> PipelineView:
        """Each look at a slow lake may take too long: the view is kept, whoever waits for it."""
        view = self.reader.view(span)
        known = self._known.get(span)
        if not view.error and (known is None or known.at < view.at):
            self._known[span] = view
        return view

    def look_again(self) -> None:
        """Make the next view a newer one, after an action. Never waits."""
        self.reader.look_again()
        self._acted_at = time.time()

    def _last(self, span: str, now: float) -> PipelineView:
        known = self._known.get(span)
        if known is None and self._known:
            known = replace(max(self._known.copy().values(), key=lambda view: view.at), timeline=None)
        if known is None:
            return PipelineView(self.reader.pipeline, now, NO_ANSWER, fault=NoAnswer.__name__)
        return replace(known, is_old=now - known.at > PAGE_OLD_SECONDS)

    def disks(self) -> dict[str, Disk | None]:
        """Disks of this machine by name; {} while their first answer is late."""
        with suppress(NoAnswer):
            return self._views.ask("disks", lambda: disks(self.reader.pipeline, state_folder()))
        return {}

    def ask(self, name: str, question: Callable[[], T]) -> T:
        """Another look at the lake; a late answer counts a while, until somebody acts.

        Raises NoAnswer, and the question's own errors.
        """
        return self._questions.ask(f"{name} since {self._acted_at}", question, keeps=PAGE_OLD_SECONDS)

    def act(self, name: str, action: Callable[[], T]) -> T:
        """An action, in a thread. NotAsked: it isn't begun. NoAnswer: it goes on, its end unknown."""
        return self._acts.ask(name, action, PAGE_ACT_SECONDS)


class PatientReaders:
    """A PatientReader per pipeline, made anew when its reader is another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: dict[str, PatientReader] = {}

    def of(self, reader: PipelineReader) -> PatientReader:
        with self._lock:
            name = reader.pipeline.pipeline
            known = self._readers.get(name)
            if known is None or known.reader is not reader:
                known = self._readers[name] = PatientReader(reader)
            return known

    def views(self, readers: Sequence[PipelineReader]) -> list[PipelineView]:
        """The views of all of them, asked side by side."""
        if not readers:
            return []
        with ThreadPoolExecutor(min(PAGE_VIEW_THREADS_MAX, len(readers)), "tidegate-views") as pool:
            return list(pool.map(lambda reader: self.of(reader).view(), readers))
