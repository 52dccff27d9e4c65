"""Samples of a look: every metric of the catalogue is made, with its labels, and says what the look says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.pipeline_views import CHASING, CUT, NOW, table, view
from tidegate.capture.silence import LastSign, LeasedWork, Silence
from tidegate.commit_ts import physical_ms
from tidegate.config.completeness import Completeness
from tidegate.config.verify import Verify
from tidegate.metrics.catalogue import METRICS
from tidegate.metrics.disks import Disk
from tidegate.metrics.measured import samples
from tidegate.pipelines import PipelineView
from tidegate.standing.causes import Cause
from tidegate.tables import State

WHO = {("eu", "capture", "m1"): NOW - 900, ("", "apply", "m2"): NOW}


def test_every_metric_is_measured_with_its_labels() -> None:
    look = view(held=False)
    hourly = look.pipeline.model_copy(update={"completeness": Completeness(hourly=True)})
    room = {"lake": Disk(Path("/lake"), 100, 40)}
    assert look.standing is not None
    held = replace(table("shop.a", State.HELD), since="2026-09-21T11:30:00+00:00")
    waits = replace(look, pipeline=hourly, standing=replace(look.standing, tables=(held, table("shop.b"))))
    made = [*samples(view(), {"eu": CHASING}, per_table=True), *samples(waits, {}, room)]
    assert {sample.metric for sample in made} == set(METRICS)
    assert {len(sample.labels) - len(METRICS[sample.metric].labels) for sample in made} == {0}
    made = samples(view(), {"eu": CHASING}, room, per_table=True)
    assert len({(sample.metric, sample.labels) for sample in made}) == len(made), "a series has one value"


def test_a_look_is_measured() -> None:
    cut = physical_ms(CUT) / 1000
    shows = {(sample.metric, *sample.labels[1:]): sample.value for sample in samples(view(), {"eu": CHASING})}
    assert shows["tidegate_up",] == 1
    assert shows["tidegate_lag_seconds",] == 2.0
    assert shows["tidegate_cut_timestamp_seconds",] == cut
    assert {state: shows["tidegate_state", state] for state in ("current", "tables wait")} == {
        "current": 0,
        "tables wait": 1,
    }
    assert (shows["tidegate_source_up", "eu"], shows["tidegate_source_up", "us"]) == (1, 0)
    assert ("tidegate_source_clock_ahead_seconds", "us") not in shows, "it didn't answer"
    assert {host: shows["tidegate_lease_since_timestamp_seconds", *host] for host in WHO} == WHO
    assert shows["tidegate_errors", "SourceUnavailable"] == 1
    assert (shows["tidegate_source_behind_bytes", "eu"], shows["tidegate_unapplied_bytes", "us"]) == (4_711, 0)
    assert ("tidegate_source_behind_bytes", "us") not in shows
    assert shows["tidegate_window_seconds",] == 1.0
    assert (shows["tidegate_tables", "active"], shows["tidegate_tables", "held"]) == (36, 1)
    assert sum(shows["tidegate_held_tables", str(cause)] for cause in Cause) == 1
    assert shows["tidegate_held_tables", "ddl_asks"] == 1
    assert shows["tidegate_tables_behind_max_seconds",] > 3600, "the held table's own"
    assert (shows["tidegate_snapshot_read_rows",], shows["tidegate_snapshot_estimated_rows",]) == (1500, 2000)
    # Of 40 tables every second one was verified; one of the others is gone at the source.
    assert (shows["tidegate_verified_tables", "equal"], shows["tidegate_unverified_tables",]) == (19, 20)
    assert shows["tidegate_verified_through_timestamp_seconds",] == cut
    assert (shows["tidegate_capture_chasing", "eu"], shows["tidegate_capture_behind_bytes", "eu"]) == (1, 4_000)
    assert shows["tidegate_source_purge_in_seconds", "eu"] == 7200


def test_work_that_has_stopped_is_measured() -> None:
    whole = view()
    assert whole.standing is not None
    name = whole.pipeline.pipeline
    down = [
        Silence(work, of, name, LastSign.KILLED, NOW, f"{name}__{work}")
        for work, of in ((LeasedWork.CAPTURE, "us"), (LeasedWork.APPLY, name))
    ]
    for silences, expected in (((), (0, 0, 0)), ((down[0],), (0, 1, 0)), ((down[1],), (0, 0, 1))):
        look = replace(whole, standing=replace(whole.standing, silences=silences))
        shows = {(sample.metric, *sample.labels[1:]): sample.value for sample in samples(look)}
        names = (("tidegate_capture_down", "eu"), ("tidegate_capture_down", "us"), ("tidegate_apply_down",))
        assert tuple(shows[each] for each in names) == expected


def test_a_lake_that_cant_be_read_is_down_and_no_old_figure_stands_in() -> None:
    broken = replace(view(), standing=None, error="no route", timeline=None, snapshots=(), verified={}, fault="OSError")
    made = samples(broken, per_table=True)
    of_none = {"tidegate_up", "tidegate_look_timestamp_seconds", "tidegate_state", "tidegate_errors"}
    assert {sample.metric for sample in made} == of_none
    assert {sample.labels[1] for sample in made if sample.metric == "tidegate_errors"} == {"OSError"}
    assert {sample.labels[1] for sample in made if sample.metric == "tidegate_state" and sample.value} == {"unreadable"}


def test_the_number_of_series_doesnt_follow_the_number_of_tables() -> None:
    assert len(samples(view(20))) == len(samples(view(2_000)))


def test_a_pipeline_that_was_never_verified_counts_from_its_first_cut_unless_nobody_wants_to_be_told() -> None:
    whole = view(held=False)
    assert whole.standing is not None
    never = replace(whole, verified={}, standing=replace(whole.standing, first_cut_at=NOW - 9))

    def since(look: PipelineView) -> list[float]:
        return [each.value for each in samples(look) if each.metric == "tidegate_unverified_since_timestamp_seconds"]

    assert since(never) == [NOW - 9]
    assert since(replace(never, standing=replace(whole.standing, first_cut_at=None))) == [], "nothing was ever applied"
    assert since(whole) == [physical_ms(CUT) / 1000]
    by_hand = whole.pipeline.model_copy(update={"verify": Verify(each_table_hours=0)})
    assert since(replace(never, pipeline=by_hand)) == since(replace(whole, pipeline=by_hand)) == []
