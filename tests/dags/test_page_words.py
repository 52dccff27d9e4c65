"""The page's words about a late pipeline, and about the hours that other DAGs wait for."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from tests.support.pipeline_views import NOW, pipeline, table, view
from tidegate.config import Completeness
from tidegate.pipelines import PipelineView
from tidegate.tables import State
from tidegate_airflow.page.overview import overview
from tidegate_airflow.page.pipeline_view import pipeline_view
from tidegate_airflow.page.table_view import table_view
from tidegate_airflow.page.tables_list import TablesAsked, verified_text


def test_the_page_names_the_tables_that_an_hour_waits_for() -> None:
    look = view(held=False)
    assert look.standing is not None
    assert "Hours for other DAGs" not in pipeline_view(look, TablesAsked()), "no DAG waits for any"
    own = look.pipeline.model_copy(update={"completeness": Completeness(hourly=True)})
    assert "every hour that is over is complete" in pipeline_view(replace(look, pipeline=own), TablesAsked())
    held = [replace(table(f"shop.<{number}>", State.HELD), since="2026-09-21T11:30:00+00:00") for number in range(7)]
    shown = pipeline_view(
        replace(look, pipeline=own, standing=replace(look.standing, tables=tuple(held))), TablesAsked()
    )
    names = ", ".join(f"shop.&lt;{number}&gt;" for number in range(5))
    assert f"an hour of all tables is over for 2.2 h and isn&#x27;t complete: {names} and 2 more wait" in shown


def test_the_page_says_which_tables_the_hours_of_all_tables_wait_for() -> None:
    stands = view(held=False).standing
    assert stands is not None
    filled = tuple(
        table(each.table, State.SNAPSHOT) if number < 2 else each for number, each in enumerate(stands.tables)
    )
    stands = replace(stands, tables=filled, unseen=("shop.new",))
    part = Completeness(hourly=True, tables=("shop.orders_00001", "shop.new"))
    own = pipeline().model_copy(update={"completeness": part})
    shown = unescape(pipeline_view(replace(view(), pipeline=own, standing=stands), TablesAsked()))
    for words in (
        "no hour of shop.orders_00001 yet: its first snapshot hasn't ended",
        "no hour of shop.new yet: it isn't in silver",
        "no hour of all tables yet: the snapshots of shop.orders_00000, shop.orders_00001 must end first",
        "shop__complete waits for 40 tables of silver, and not for 1 table that isn't in silver",
    ):
        assert words in shown
    assert "every hour that is over" not in shown


def test_a_table_of_a_late_pipeline_isnt_called_current() -> None:
    late = view(held=False, lag=300.0)
    shown = pipeline_view(late, TablesAsked()) + overview([late])
    assert "40 of 40 tables active" in shown
    assert "40 active" in shown
    assert "current" not in re.sub("aria-current='true'", "", shown)
    assert "Silver</b><span>5 min behind" in shown
    nothing = replace(late, standing=replace(late.standing, cut_ts=0, lag_seconds=None))  # type: ignore[type-var]
    assert "- behind" not in pipeline_view(nothing, TablesAsked())
    assert "As of 14:13:20 UTC" in shown


def test_a_held_table_leads_to_its_buttons_whoever_may_press_them() -> None:
    waits = pipeline_view(view(), TablesAsked(), can_act=True).partition("</ul>")[0]
    assert "name=shop.orders_00001#acts'>What you can do</a>" in waits
    assert waits.count("#acts") == 1, "the others wait for nobody"
    assert "#acts" not in pipeline_view(view(), TablesAsked())


def test_a_table_that_was_dropped_isnt_shown_as_a_fault() -> None:
    known = replace(view().verified["shop.orders_00000"], outcome="dropped")
    assert verified_text(known).startswith("<span class='soft'>not compared (dropped)</span>")


def test_a_table_of_a_lake_without_an_answer_says_whose_answer_is_missing() -> None:
    shown = unescape(table_view(PipelineView(pipeline(), NOW, "it hasn't answered yet"), "shop.a", None))
    assert "The lake can't be read: it hasn't answered yet" in shown
