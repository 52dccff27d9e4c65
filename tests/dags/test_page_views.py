"""What the page says of pipelines: a word for each, tables that need a person first, and all by pages."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.pipeline_views import CHASING, CUT, NOW, pipeline, table, view
from tidegate.capture.health import Health, health
from tidegate.capture.silence import LastSign, LeasedWork, Silence
from tidegate.cli.status import status_lines
from tidegate.commit_ts import compose
from tidegate.config import Verify
from tidegate.errors import ConfigError
from tidegate.lake.figures.maintained import LastMaintain, LeftStep, MaintainStep
from tidegate.lake.figures.timeline import STEPS
from tidegate.lake.figures.verified import Verified
from tidegate.lake.schema_history.schema_changes import SchemaChange
from tidegate.metrics.disks import Disk
from tidegate.pipelines import PipelineView
from tidegate.pipelines.plain import plain
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.segments.prewrites import Prewrite
from tidegate.tables import State
from tidegate.tables.prewrites_table import PrewriteState
from tidegate_airflow.page.care_list import maintenance, prewrites_list
from tidegate_airflow.page.charts import chart, sparkline
from tidegate_airflow.page.layout import HEADERS, SCRIPT, document
from tidegate_airflow.page.overview import broken_files, overview
from tidegate_airflow.page.pipeline_view import pipeline_view
from tidegate_airflow.page.table_view import table_view
from tidegate_airflow.page.tables_list import PAGE_ROWS, TablesAsked, tables_list, verified_text

EMPTY = {"meta", "input", "br", "wbr"}


class Balanced(HTMLParser):
    """Fails where an element isn't closed, or closes another one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open += [tag] * (tag not in EMPTY)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Closes itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def names(html: str) -> list[str]:
    return re.findall("<th scope='row'>(?:<a[^>]*>)?([^<]+)", html)


@pytest.mark.parametrize(
    ("of", "word", "says"),
    [
        (PipelineView(pipeline(), NOW, "no such bucket"), Health.UNREADABLE, "no such bucket"),
        (replace(view(), standing=replace(view().standing, cut_ts=0)), Health.EMPTY, "Nothing is applied yet"),  # type: ignore[type-var]
        (replace(view(), standing=replace(view().standing, ahead=True)), Health.AHEAD, "in the future"),  # type: ignore[type-var]
        (view(held=False, lag=125), Health.BEHIND, "Silver is 2 min behind."),
        (view(), Health.WAITING, "; 1 table lacks rows until a snapshot ends"),
        (
            view(lag=0),
            Health.WAITING,
            "has all that the sources wrote, but 2 of 40 tables wait: 1 for approval of a statement, 1 until apply",
        ),
        (view(held=False), Health.CURRENT, "Silver is 2.0 s behind."),
        (view(held=False, lag=0), Health.CURRENT, "Nothing is missing."),
    ],
)
def test_a_pipelines_state_is_one_word_and_a_sentence(of: PipelineView, word: Health, says: str) -> None:
    assert health(of.standing) is word
    assert says in of.why


def test_pipelines_that_need_a_look_come_first() -> None:
    shown = overview([view(held=False, name="a"), view(name="b"), PipelineView(pipeline("c"), NOW, "<gone>")])
    assert names(shown) == ["b", "c", "a"]
    assert "href='dags/b__apply'" in shown
    assert "&lt;gone&gt;" in shown
    assert "no pipeline that you may see" in overview([])


def test_a_pipeline_shows_its_road_its_history_and_what_ends_a_hold() -> None:
    shown = pipeline_view(view(), TablesAsked())
    for words in (
        "binlog<wbr>.000007<wbr>:5150",
        "no answer: host away",
        "81.0 MB in 412 segments",
        "Lag of silver",
        "What ends it",
    ):
        assert words in shown
    assert "DROP COLUMN &lt;b&gt;" in shown
    parser = Balanced()
    parser.feed(document("shop", shown, "../"))
    assert parser.open == []


def test_capture_on_this_machine_shows_its_rate_while_it_runs() -> None:
    for ago, shown in ((1, True), (120, False)):
        capture = replace(CHASING, written_at=NOW - ago, bytes_per_second=2_500_000.0)
        page = pipeline_view(replace(view(), captures={"eu": capture}), TablesAsked())
        assert page.count("<span>reads 2.5 MB/s</span>") == shown


def test_a_disk_that_is_nearly_full_or_silent_is_named() -> None:
    rooms = {"lake": Disk(Path("/l"), 10**11, 10**9), "value log": None, "spark": Disk(Path("/t"), 10**11, 10**11)}
    page = unescape(pipeline_view(view(), TablesAsked(), rooms))
    assert "The disk of lake has 1.0 GB left of 100.0 GB: make room at /l." in page
    assert "The disk of value log doesn't answer" in page
    assert "spark" not in page
    assert "Disks of this" not in pipeline_view(view(), TablesAsked(), {"spark": rooms["spark"]})


def test_a_look_that_gets_no_answer_is_old_and_unreadable() -> None:
    old = replace(view(held=False), is_old=True, at=NOW)
    assert old.health is Health.UNREADABLE
    assert "The lake hasn't answered since 14:13:20 UTC" in old.why
    assert names(overview([view(held=False, name="a"), replace(old, pipeline=pipeline("z"))])) == ["z", "a"]
    assert "The lake hasn't answered since" in unescape(table_view(old, "shop.orders_00001", None))


def test_a_table_that_differs_is_named_with_what_to_do() -> None:
    look = view(held=False)
    name = next(iter(look.verified))
    wrong = replace(look, verified={**look.verified, name: replace(look.verified[name], outcome="different")})
    said = f"1 table differs from the source by the last verification: {name}. `tidegate verify shop` shows the rows"
    assert said in wrong.why
    assert said in unescape(overview([wrong]))
    assert "differ" not in look.why


def test_a_broken_pipeline_file_is_named_with_its_error() -> None:
    assert broken_files([]) == ""
    shown = broken_files([ConfigError("flavour: is <x>", where="p.yaml:3")])
    assert "1 pipeline file has no DAGs, as it can't be used:" in shown
    assert "p.yaml:3: flavour: is &lt;x&gt;" in shown


def test_prepared_transactions_are_named_with_what_answers_them() -> None:
    hour_ago = compose(int((NOW - 3600) * 1000))
    parked = Prewrite("eu", "X'6131',X'',1", hour_ago, 1, 1, ("shop.<a>",), PrewriteState.PARKED)
    still = [Prewrite("us", f"X'{number:04}',X'',1", hour_ago - number, 1, 1, ("shop.b",)) for number in range(30)]
    shown = prewrites_list(replace(view(), prewrites=(*still, parked)))
    assert shown.index("X&#x27;6131&#x27;") < shown.index("X&#x27;0029&#x27;"), "a person's come first"
    assert "shop.&lt;a&gt;" in shown
    assert "60 min ago" in shown or "1.0 h ago" in shown
    words = re.search(r"<code>(tidegate prewrites shop --commit .*?)</code>", shown)
    assert words is not None
    command = shlex.split(unescape(words[1]))
    assert command == ["tidegate", "prewrites", "shop", "--commit", f"eu X'6131',X'',1 {hour_ago}"]
    assert "XA COMMIT" in shown
    assert "and 11 more" in shown
    assert "Required Actions" not in shown
    assert prewrites_list(view()) == ""
    parser = Balanced()
    parser.feed(shown)
    assert parser.open == []


def test_the_last_maintenance_says_what_it_did_and_left() -> None:
    assert "No run has done anything yet." in maintenance(view())
    steps = (MaintainStep("cluster", 12, 90, 14, 5_000_000, 4_000_000, 75.0), MaintainStep("forget", 1, 900, 100))
    left = (LeftStep("shop.a", "vacuum", "left", "no <room>"),)
    of = replace(view(), maintained=LastMaintain(NOW - 3 * 86_400, steps, left, 4))
    shown = maintenance(of)
    for words in ("12 tables", "90 to 14", "5.0 MB to 4.0 MB", "900 to 100 rows", "no &lt;room&gt;", "and 3 more"):
        assert words in shown
    assert "4 steps are left for the next run." in shown
    assert "is <code>shop__maintain</code> paused?" in shown, "it is late"
    assert "paused?" not in maintenance(replace(of, maintained=LastMaintain(NOW - 3600, steps, (), 0)))
    parser = Balanced()
    parser.feed(document("shop", pipeline_view(of, TablesAsked()), "../"))
    assert parser.open == []


def test_a_table_without_rows_in_silver_is_named_with_the_way_of_its_rows() -> None:
    standing = view().standing
    assert standing is not None
    standing = replace(standing, unseen=("shop.new",))
    shown = pipeline_view(replace(view(), standing=standing), TablesAsked())
    assert "1 table isn't in silver yet: shop.new (a snapshot brings rows" in shown
    said = " ".join(" ".join(status_lines(standing)).split())
    assert "and 1 more, not in silver yet: shop.new (a snapshot brings rows" in said


def test_tables_that_need_a_person_come_first_and_each_is_on_some_page() -> None:
    of = view(250)
    first = names(tables_list(of, TablesAsked()))
    assert first[0] == "shop.orders_00001"
    assert len(first) == PAGE_ROWS
    every = [name for page in (1, 2, 3) for name in names(tables_list(of, TablesAsked(page=page)))]
    assert sorted(every) == sorted({table.table for table in of.standing.tables})  # type: ignore[union-attr]
    assert names(tables_list(of, TablesAsked(page=99))) == names(tables_list(of, TablesAsked(page=3))), (
        "beyond the last one"
    )


def test_tables_are_chosen_by_name_and_state_and_sorted() -> None:
    of = view(250)
    assert names(tables_list(of, TablesAsked("ORDERS_0012", sort="name"))) == [
        f"shop.orders_0012{n}" for n in range(10)
    ]
    assert names(tables_list(of, TablesAsked(state="held"))) == ["shop.orders_00001"]
    assert names(tables_list(of, TablesAsked(sort="lag")))[0] == "shop.orders_00001"
    assert names(tables_list(of, TablesAsked(sort="verified")))[0] == "shop.orders_00001", "never verified"
    for sort, first in (("rows", "00000"), ("files", "00008"), ("bytes", "00249")):
        assert names(tables_list(of, TablesAsked(sort=sort)))[0] == f"shop.orders_{first}", sort
    assert "0 of 250 tables" in tables_list(of, TablesAsked("no such"))


def test_a_table_shows_its_rows_files_and_bytes_where_they_are_known() -> None:
    for shown in (tables_list(view(250), TablesAsked("orders_00249")), table_view(view(250), "shop.orders_00249", ())):
        for words in ("99,751", ">6<", "3.0&nbsp;MB"):
            assert words in shown
    cells = json.loads(json.dumps(plain(view(250))))["tables"]
    assert cells[249]["size"] == {"rows": 99_751, "files": 6, "bytes": 3_000_249}
    assert cells[1]["size"] is None
    unknown = tables_list(view(), TablesAsked("orders_00001"))
    assert "<td data-label='Rows'>-</td><td data-label='Files'>-</td><td data-label='Size'>-</td>" in unknown


def test_a_long_statement_is_short_in_the_list_and_whole_on_the_tables_page() -> None:
    of = view()
    assert of.standing is not None
    columns = ", ".join(f"ADD c{number} INT" for number in range(200))
    reason = f"shop.orders_00001: ALTER TABLE t {columns} at b.7:4711; ddl.add is approve"
    tables = tuple(
        replace(each, reason=reason) if each.table == "shop.orders_00001" else each for each in of.standing.tables
    )
    of = replace(of, standing=replace(of.standing, tables=tables))
    listed = tables_list(of, TablesAsked("orders_00001"))
    assert "c150 INT" not in listed
    assert "shop.orders_00001: ALTER TABLE t ADD c0 INT" in listed
    assert "at b.7:4711; ddl.add is approve" in listed
    assert escape(reason) in table_view(of, "shop.orders_00001", ())


def test_a_pipeline_without_tables_counts_none() -> None:
    of = view()
    assert of.standing is not None
    shown = pipeline_view(replace(of, standing=replace(of.standing, tables=())), TablesAsked())
    assert "no table yet" in shown
    assert "0 of 0" not in shown


def test_what_a_person_typed_is_text() -> None:
    shown = tables_list(view(), TablesAsked("'><script>alert(1)</script>", span="day"))
    assert "<script>" not in shown
    assert "value='&#x27;&gt;&lt;script&gt;" in shown
    assert "'" not in TablesAsked("orders' onclick='x").link(page=2), "a link is quoted, too"
    links = tables_list(view(250), TablesAsked("orders", span="day"))
    assert re.findall("href='([?][^']*)'", links) == ["?q=orders&amp;sort=trouble&amp;page=2&amp;span=day"]


def test_a_table_that_differs_is_said_in_the_overview() -> None:
    of = view(held=False)
    assert json.loads(json.dumps(plain(of)))["verification"]["outcomes"] == {"equal": 20}
    shown = overview(
        [replace(of, verified={"shop.orders_00000": Verified("different", 5, "2026-09-21T13:00:00+00:00")})]
    )
    assert "1 different" in shown
    assert "39 never" in shown


def test_a_gap_in_what_is_known_is_a_gap_in_the_line() -> None:
    drawn = sparkline([None, 1.0, 2.0, None, 4.0, None], "a <b>")
    assert drawn.count("<polyline") == 2
    assert "aria-label='a &lt;b&gt;'" in drawn
    assert "Nothing is known yet" in chart([None, None], "Lag", str, ("a", "b"))
    assert sparkline([0.0, 0.0], "flat").count("<polyline") == 1
    (single,) = re.findall("points='([^']*)'", sparkline([None, None, 3.0], "one step, at the edge"))
    assert single == "115.0,2.0 125.0,2.0", "half of it can be seen"


def test_work_that_has_stopped_is_said_with_what_begins_it_again() -> None:
    of = view(held=False)
    assert of.standing is not None
    down = (
        Silence(LeasedWork.CAPTURE, "us", "shop", LastSign.KILLED, NOW - 720, "shop__capture"),
        Silence(LeasedWork.APPLY, "shop", "shop", LastSign.ENDED, NOW - 300, "shop__apply"),
    )
    shown = pipeline_view(replace(of, standing=replace(of.standing, silences=down)), TablesAsked())
    Balanced().feed(shown)
    assert "Capture of us has not answered since 2026-09-21 14:01:20 UTC, 12 min ago: its process is gone." in shown
    assert "Apply of shop has not answered since 2026-09-21 14:08:20 UTC, 5 min ago: it ended" in shown
    assert shown.count("start the DAG shop__apply in Airflow") == 1
    assert "Apply of shop has stopped. What ends it: start" in shown
    assert "apture of eu has" not in shown


def test_a_peak_that_is_drawn_is_not_called_0() -> None:
    of = view(held=False)
    assert of.timeline is not None
    rows = (*(0,) * (STEPS - 2), 2, 0)
    past = replace(of.timeline, rows=rows, payload_bytes=tuple(10 * each for each in rows), lag=(0.0,) * 59 + (0.004,))
    shown = pipeline_view(replace(of, timeline=past), TablesAsked())
    assert "Row changes a second: <b>0</b> now, at most 0.033" in shown
    assert "Binlog a second: <b>0 bytes</b> now, at most 0.33 bytes" in shown
    assert "Lag of silver: <b>4 ms</b> now, at most 4 ms" in shown


def test_the_page_takes_nothing_from_elsewhere() -> None:
    whole = document("shop", pipeline_view(view(), TablesAsked()), "../")
    assert not re.findall(r"(?:https?:)?//", whole.replace("</", ""))
    assert re.findall("<script[^>]*>", whole) == ["<script src='../page.js' defer>"]
    assert "unsafe-inline" not in HEADERS["Content-Security-Policy"].partition("script-src")[2]
    assert "fetch(location.href" in SCRIPT


def test_a_snapshots_end_is_told_without_a_place_in_the_log() -> None:
    """It was shown as "no column, no key" at ":0"."""
    column = Column(1, "id", "int", nullable=False)
    version = TableVersion("eu", "shop", "t", 2, CUT, "", 0, "snapshot", "", (column,), (1,), "utf8mb4")
    shown = table_view(view(), "shop.orders_00000", [SchemaChange(version, ())])
    assert "its columns stay" in shown
    assert "shop.t of eu" in shown
    assert ":0" not in shown


def test_a_table_says_how_its_snapshot_does() -> None:
    shown = table_view(view(), "shop.orders_00002", ())
    said = "running, 1,500 of about 2,000 rows are read; about 40.0 s left, done at 2026-09-21 14:14 UTC"
    assert f"<dt>Snapshot</dt><dd>{said}</dd>" in shown
    assert "<dt>Snapshot</dt>" not in table_view(view(), "shop.orders_00001", ())


def test_tables_that_wait_at_one_place_are_named_together() -> None:
    """A statement may hold all tables: each with the same sentence was a wall of text."""
    look = view(held=False)
    assert look.standing is not None
    place = {"source": "eu", "file": "binlog.000007", "pos": 4711, "way_out": "say what it changes"}
    held = [replace(table(f"shop.t{number}", State.HELD), **place) for number in range(9)]
    alone = replace(table("shop.z", State.HELD), **place | {"pos": 4712})
    other = replace(table("shop.y", State.HELD), **place | {"cause": "needs_rows"})
    tables = (*held, alone, other)
    shown = pipeline_view(replace(look, standing=replace(look.standing, tables=tables)), TablesAsked(), can_act=True)
    Balanced().feed(shown)
    waits = shown[shown.index("What waits") : shown.index("The road")]
    assert re.findall(r"<li><a [^>]*>([^<]*)</a>([^<]*)<a", waits) == [
        ("shop.t0", " and 8 more at the same place are held. What ends it: say what it changes "),
        ("shop.z", " is held. What ends it: say what it changes "),
        ("shop.y", " is held. What ends it: say what it changes "),
    ]


def test_the_page_begins_with_the_waiting_tables_and_what_ends_each_wait() -> None:
    look = view(held=False)
    assert look.standing is not None
    assert "What waits" not in pipeline_view(look, TablesAsked())
    goes_on = replace(table("shop.a", State.RELEASED), way_out="it catches up by itself")
    held = [replace(table(f"shop.<{number}>", State.HELD), way_out="approve <it>") for number in range(6)]
    shown = pipeline_view(replace(look, standing=replace(look.standing, tables=(goes_on, *held))), TablesAsked())
    Balanced().feed(shown)
    waits = shown[shown.index("What waits") : shown.index("The road")]
    assert re.findall(r"<li><a [^>]*>([^<]*)</a>([^<]*)</li>", waits) == [
        (f"shop.&lt;{number}&gt;", " is held. What ends it: approve &lt;it&gt;") for number in range(5)
    ]
    assert "and 2 more, in the list of tables below" in waits


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (None, "Only by hand: <code>verify.each_table_hours</code> isn't set."),
        (0, "Only by hand, and no alert says when it is old: <code>verify.each_table_hours</code> is 0."),
        (24, "Each table once in 24 h, by <code>shop__verify</code>."),
    ],
)
def test_the_page_says_whether_verification_is_scheduled(hours: int | None, words: str) -> None:
    own = pipeline().model_copy(update={"verify": Verify(each_table_hours=hours)})
    assert words in pipeline_view(replace(view(), pipeline=own), TablesAsked())


def test_a_pipeline_that_was_never_verified_says_how() -> None:
    shown = pipeline_view(replace(view(), verified={}), TablesAsked())
    assert "never</span>: <code>tidegate verify shop</code>, or unpause <code>shop__verify</code>" in shown
    assert "unpause" not in pipeline_view(view(), TablesAsked())


def test_a_table_that_was_held_when_the_others_were_compared_was_not_compared() -> None:
    known = next(iter(view().verified.values()))
    assert verified_text(replace(known, outcome="equal")).startswith("<span class='good'>equal</span>")
    assert "<span class='bad'>not compared (held)</span>" in verified_text(replace(known, outcome="held"))
