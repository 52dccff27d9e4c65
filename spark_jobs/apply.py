"""Apply: bronze -> silver, window by window.

In:  --pipeline FILE; an object store's keys in TIDEGATE_STORAGE_OPTIONS (JSON).
Out: silver, cuts, ledger, schema_history, table_states. Exit code 0, 1 (stop: a person must look), 2 (usage)
     or 75 (try again).

batch applies until nothing new is resolved, then ends. micro_batch looks again every poll_seconds for
run_for_seconds, and ends early when no changes came for idle_seconds, the pipeline file keeps other tables, or somebody
waits for its lease. Where apply stands is read from silver and cuts: killing it at any point and starting it again
gives the same tables.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spark_jobs.apply_steps.ask_generated import ask_generated
from spark_jobs.apply_steps.checkpoint_tables import checkpoint_tables
from spark_jobs.apply_steps.choose_writers import choose_writers
from spark_jobs.apply_steps.compact_silver import compact_silver
from spark_jobs.apply_steps.decode_changes import decode_changes
from spark_jobs.apply_steps.follow_cascades import follow_cascades
from spark_jobs.apply_steps.judge_ddl import judge_ddl
from spark_jobs.apply_steps.measure_latency import measure_latency
from spark_jobs.apply_steps.merge_into_silver import merge_into_silver
from spark_jobs.apply_steps.plan_window import catches_up, next_catch_up, next_window, plan_window
from spark_jobs.apply_steps.prepare_silver import prepare_silver
from spark_jobs.apply_steps.publish_cut import publish_cut
from spark_jobs.apply_steps.record_ledger import record_ledger
from spark_jobs.apply_steps.replay_schema_history import replay_schema_history
from spark_jobs.apply_steps.resolve_prewrites import resolve_prewrites
from spark_jobs.apply_steps.resolve_watermarks import resolve_watermarks
from spark_jobs.apply_steps.write_changelog import write_changelog
from spark_jobs.session.background import BackgroundSession, top_process
from spark_jobs.session.failures import TableWriteError
from spark_jobs.session.job import configured, failed, lake_of, parser_of, sole
from spark_jobs.session.job_log import begin, tell
from spark_jobs.session.spark import application_session
from spark_jobs.session.window_lines import WindowDone, WindowLines
from spark_jobs.window.application import Application
from spark_jobs.window.life.following import stalled, take_up_selection
from spark_jobs.window.made import Applied
from spark_jobs.window.pairing.pairs import pairs_of
from spark_jobs.window.standing.silver_guard import ask_all, ask_released
from spark_jobs.window.standing.standings import line_of
from spark_jobs.window.standing.tries import Tries, release_after_a_pause
from spark_jobs.window.waves.waves import has_marks
from spark_jobs.window.window import Window
from tidegate import config
from tidegate.commit_ts import physical_ms, time_text
from tidegate.errors import TidegateError
from tidegate.home import EXIT_OK
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.control.lake_upgrade import upgrade
from tidegate.lake.figures.usage import Meter, every_seconds
from tidegate.lake.jobs.lease_wishes import Wishes
from tidegate.limits import QUIET_CUT_SECONDS, REFRESH_SECONDS
from tidegate.pipelines import FileWatch
from tidegate.segments.window import resolved_everywhere
from tidegate.tables import SegmentFlag, State
from tidegate.tables.usage_table import UsedBy
from tidegate.text_layout import counted


def apply_window(app: Application, window: Window) -> Applied:
    """A failed try is repeated on the same (low_ts, cut_ts], as long as the cause may pass (Tries).

    A table that was released meanwhile, with changes below the window, takes no part in it (plan_window).
    """
    tries = Tries(app, window.cut_ts)
    while True:
        try:
            app.check_claim()
            return _applied(app, window)
        except Exception as error:  # noqa: BLE001 - raised again in the end, as what it is or as Unexpected
            tries.note(error)
            window = window.again()


def _applied(app: Application, window: Window) -> Applied:
    """One try. Each step takes the results of earlier steps, and returns its own."""
    planned = plan_window(app, window)
    pairs = pairs_of(app, planned.window)
    replayed = replay_schema_history(app, planned, pairs)
    window, waves = resolve_watermarks(app, replayed.window)
    prewritten = resolve_prewrites(app, window, pairs)
    committed = prewritten.segments
    changes = judge_ddl(app, window)
    plans = choose_writers(app, window, committed, changes)
    prepare_silver(app, window, plans)
    decoded = ask_generated(app, window, committed, decode_changes(app, window, committed, plans))
    staged = follow_cascades(app, window, committed, plans, decoded)
    write_changelog(app, window, committed, plans, staged.by_keys)
    versions = merge_into_silver(app, window, replayed.ddl_times, waves.sweeps, plans, staged)
    ledger = [*prewritten.ledger, *decoded.ledger]
    record_ledger(app, window, ledger)
    publish_cut(app, window, waves, versions)
    latency = measure_latency(app, window, versions)
    compact_silver(app, window, plans, versions)
    checkpoint_tables(app, versions)
    return Applied(window, sum(entry.ledger.rows for entry in ledger), versions, plans, latency)


def run(app: Application, *, report: Callable[[str], None], is_over: Callable[[], str] = lambda: "") -> int:
    """Apply windows until done (batch), or out of time or over (micro_batch); returns how many.

    is_over: why the loop ends now; "" while it goes on.
    """
    lines = WindowLines(report)
    name, every = app.pipeline.pipeline, every_seconds(len(app.pipeline.sources))
    meter = Meter(app.lake, UsedBy.APPLY, name, every, top_process())
    try:
        return _loop(app, meter, report, lines, is_over)
    finally:
        meter.close()
        lines.flush()
        app.checkpoints.close()


def _loop(
    app: Application, meter: Meter, report: Callable[[str], None], lines: WindowLines, is_over: Callable[[], str]
) -> int:
    settings = app.pipeline.apply
    batch = settings.mode == config.ApplyMode.BATCH
    started = last_work = time.monotonic()
    windows = 0
    goal = 0
    app.claim()
    upgrade(app.lake, report)  # nobody else writes apply's tables now, and a kill here loses nothing
    app.load()
    take_up_selection(app)
    ask_all(app)
    app.lake.delete_folder("staging")
    look = Look(app)
    while True:
        meter.tick()
        now = time.monotonic()
        app.background.check()
        window = look.next_window(now)
        if windows == 0:
            # A batch ends where bronze ended when it began: a source that never pauses must not keep it for ever.
            goal = resolved_everywhere(app.index.refs, app.pipeline.sources.keys() - app.followed.behind.keys())
        if window is not None:
            done = apply_window(app, window)
            windows += 1
            if done.window.main:
                meter.cut(_lag_ended(done.window))
            if not look.quiet(done.window):
                last_work = time.monotonic()
            lines.add(_done(done, time.monotonic() - now))
            for name, state in sorted(done.window.held.items()):
                what = "waits, and catches up by itself" if state.state is State.RELEASED else f"is {state.state}"
                report(f"tidegate: warning: {name} {what}: {line_of(app, name, state)}")
            app.lake.empty("staging")
            app.control.tidy()
            app.lake.trim_logs()
            if batch and app.cut_ts >= goal and not catches_up(app):
                return windows
        elif batch:
            return windows
        else:
            time.sleep(settings.poll_seconds)
        if not batch:
            app.background.begin_ahead()  # the first window is done, and the next ones may be larger
        now = time.monotonic()
        if not batch and (now - started > settings.run_for_seconds or now - last_work > settings.idle_seconds):
            return windows
        if not batch and (why := is_over()):
            report(why)
            return windows


@dataclass(frozen=True, slots=True)
class EndsEarly:
    """The reasons for an end of the loop before its time."""

    file: FileWatch
    wishes: Wishes

    def why(self) -> str:
        """A line for the log; "" while the loop goes on."""
        if self.file.has_changed():
            return "the pipeline file says otherwise of tables, sources or DDL: the next run goes on by it"
        if self.wishes.made():
            return "somebody waits for apply's lease (erase, or rebuild --swap): the next run goes on after that"
        return ""


class Look:
    """How the loop looks at bronze and at the control tables that others write: cheaply, because it looks often.

    A main window and one below the cut take turns, so that neither waits for more than one of the other.
    """

    def __init__(self, app: Application) -> None:
        self._app = app
        self._refresh_at = self._quiet_at = 0.0
        self._turn = 0
        self._main_is_next = True

    def next_window(self, now: float) -> Window | None:
        """The next window. None when there is no work, or only a quiet source's proof that its cut
        may move.
        """
        self._take_in()
        stalled(self._app)
        main_is_next, self._main_is_next = self._main_is_next, True
        if not main_is_next and (window := self._below()) is not None:
            return window
        window = next_window(self._app)
        if window is None or (self.quiet(window) and self._too_early(now)):
            return self._below() if main_is_next else None
        self._main_is_next = False
        return window

    def _below(self) -> Window | None:
        self._turn += 1
        return next_catch_up(self._app, self._turn)

    def _too_early(self, now: float) -> bool:
        if self._app.pipeline.apply.mode == config.ApplyMode.MICRO_BATCH and now < self._quiet_at:
            return True
        self._quiet_at = now + QUIET_CUT_SECONDS
        return False

    def quiet(self, window: Window) -> bool:
        """Whether no kept table can have changed in it, and no snapshot."""
        app = self._app
        if not window.main or app.states.any(State.RELEASED):
            return False
        return not any(
            ref.flags & (SegmentFlag.HAS_DDL | SegmentFlag.HAS_ANSWER)  # a Pump's commits too
            or next(app.names.in_segment(ref), None)
            or has_marks(ref)
            for ref in window.refs
        )

    def _take_in(self) -> None:
        """Capture and people write to control tables. Their writes from before a segment must be known when the
        segment is applied.
        """
        app = self._app
        if app.index.refresh(app.cut_ts) or time.monotonic() >= self._refresh_at:
            app.check_claim()
            app.refresh()
            release_after_a_pause(app)
            ask_released(app)
            self._refresh_at = time.monotonic() + REFRESH_SECONDS


def _lag_ended(window: Window) -> float:
    """Age of its oldest change, in seconds; 0 without any."""
    firsts = [max(ref.min_commit_ts, window.low_ts) for ref in window.refs if ref.max_commit_ts > window.low_ts]
    return max(0.0, time.time() - physical_ms(min(firsts)) / 1000) if firsts else 0.0


def _done(done: Applied, seconds: float) -> WindowDone:
    window = done.window
    held = "".join(
        f"; {state}: {', '.join(names)}"
        for state in (State.HELD, State.RELEASED)
        if (names := sorted(name for name, known in window.held.items() if known.state is state))
    )
    writers = f" ({done.writers()})" if done.versions else ""
    latency = f"; {done.latency.markers} markers: {done.latency}" if done.latency else ""
    notes = f"{writers}{held}{latency}"
    size = len(window.refs), done.rows, len(done.versions)
    return WindowDone(window.cut_ts, *size, seconds, notes, is_news=bool(window.held))


def _arguments(argv: list[str]) -> argparse.Namespace:
    return parser_of("apply", "Apply bronze to silver.").parse_args(argv)


def main(argv: list[str]) -> int:
    """Entry of spark-submit."""
    arguments = _arguments(argv)
    begin()
    try:
        pipeline = configured(arguments.pipeline, "apply", arguments.set)
        lake = lake_of(pipeline)
        with sole(lake, pipeline.pipeline, "apply") as lease:
            spark = BackgroundSession(
                partial(application_session, f"tidegate apply {pipeline.pipeline}", lake.spark_options)
            )
            app = Application(spark, pipeline, lake, BronzeIndex(lake), lease)
            gc.freeze()  # modules stay: no collection needs to look at them
            ends = EndsEarly(FileWatch(arguments.pipeline, pipeline), Wishes(lake, pipeline.pipeline, "apply"))
            windows = run(app, report=tell, is_over=ends.why)
            held = sorted(name for name, _ in app.states.of(State.HELD))
            aside = f", but for {counted(len(held), 'held table', 'held tables')}: {', '.join(held)}" if held else ""
            tell(
                f"applied {counted(windows, 'window', 'windows')};"
                f" silver is complete up to {app.cut_ts} ({time_text(app.cut_ts)}){aside}"
            )
            spark.stop()
    except (TidegateError, TableWriteError) as error:
        return failed(error)
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
