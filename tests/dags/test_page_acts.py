"""A person with the right to edit the DAG ends a table's wait by a button; nobody else does, and no other site."""

from __future__ import annotations

import html
import http.server
import json
import os
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.dags.browser import browser, click, see
from tests.dags.page_looks import look_at, walk_by_keyboard
from tests.dags.page_server import served_by
from tests.dags.waiting_table import DDL, waits_for_approval
from tests.support.event_log import Log
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.lake import control
from tidegate.lake.people import audit
from tidegate.lake.people.audit import actions
from tidegate.lake.standing import held
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import EventKind, SnapshotState
from tidegate.snapshot.progress.requests import request, tell_tables, told
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place, Standing
from tidegate.table_names import Physical
from tidegate.tables import State

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore")]

OURS = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}


@dataclass
class World:
    """A pipeline whose table shop.a waits for an approval; its page. ann may edit the DAG, vic may read it."""

    log: Log
    url: str

    @property
    def table(self) -> str:
        return f"{self.url}/dags/road__apply/table?name=shop.a"

    @property
    def acts(self) -> str:
        return f"{self.url}/dags/road__apply/act"

    def ask(self, user: str, action: str = "approve", name: str = "shop.a") -> dict[str, str]:
        """The fields of the form that asks first."""
        page = self.get(f"{self.acts}?name={name}&action={action}", user)
        return dict(re.findall("type='hidden' name='([a-z]+)' value='([^']*)'", page))

    def get(self, url: str, user: str) -> str:
        request_of = urllib.request.Request(url, headers={"Cookie": f"user={user}"})
        return str(_opener().open(request_of).read().decode())

    def post(self, fields: dict[str, str], user: str, headers: dict[str, str] | None = None) -> int:
        """The status of the answer, without following it."""
        body = urllib.parse.urlencode(fields).encode()
        sent = (OURS if headers is None else headers) | {"Cookie": f"user={user}"}
        try:
            return int(_opener().open(urllib.request.Request(self.acts, body, sent)).status)
        except urllib.error.HTTPError as error:
            return error.code

    def state(self, name: str = "shop.a") -> State:
        standing = held.last_states(self.log.lake).get(name)
        return standing.state if standing is not None else State.ACTIVE


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    log = waits_for_approval(tmp_path)
    with served_by(monkeypatch, log.file) as url:
        made = World(log, url)
        assert made.state() is State.HELD
        yield made


def as_user(chromium: Chrome, world: World, user: str) -> None:
    chromium.get(f"{world.url}/page.js")
    chromium.add_cookie({"name": "user", "value": user, "path": "/"})


def test_a_person_approves_a_statement_by_the_button_and_the_table_goes_on(world: World, tmp_path: Path) -> None:
    screenshots = Path(os.environ.get("SCREENSHOTS", tmp_path))
    with browser() as chromium:
        as_user(chromium, world, "ann")
        see(chromium, f"{world.url}/dags/road__apply", ["held", "What you can do"])
        click(chromium, "a[href$='#acts']")
        see(chromium, None, ["held", "What you can do", "Approve the statement ..."])
        click(chromium, "a.button")
        see(
            chromium,
            None,
            ["Approve the statement: shop.a", DDL, "- v", "+ note text", "Silver follows"],
        )
        look_at(chromium, screenshots, "ask")
        assert walk_by_keyboard(chromium) >= 2
        assert world.state() is State.HELD, "nothing is done yet"
        button = chromium.find_element(By.CSS_SELECTOR, "form.ask button")
        chromium.execute_script("arguments[0].click(); arguments[0].click();", button)  # as an impatient person
        see(chromium, None, ["Done. shop.a goes on", "Who did what", "ann (Airflow)"])
        look_at(chromium, screenshots, "done")
        assert not chromium.find_elements(By.CSS_SELECTOR, "a.button"), "it waits for nothing any more"
    standing = held.last_states(world.log.lake)["shop.a"]
    assert (standing.state, standing.reason) == (State.RELEASED, "approved in Airflow by ann")
    (known,) = actions(world.log.lake)
    assert (known.action.author.user, str(known.action.act), str(known.outcome)) == ("ann", "approve", "done")
    app = world.log.apply()
    assert app.states["shop.a"].state is State.ACTIVE
    assert [column.name for column in app.histories["one"].versions("shop", "a")[-1].columns] == ["id", "note"]


def test_a_viewer_has_no_button_and_is_refused(world: World) -> None:
    fields = world.ask("ann")
    with browser() as chromium:
        as_user(chromium, world, "vic")
        see(chromium, f"{world.url}/dags/road__apply", ["held", "What ends it"])
        assert not chromium.find_elements(By.CSS_SELECTOR, "a[href$='#acts']")
        see(chromium, world.table, ["held", "What ends it", "tidegate release"])
        assert not chromium.find_elements(By.CSS_SELECTOR, "a.button, form[method=post]")
        see(chromium, f"{world.acts}?name=shop.a&action=approve", ["Not allowed", "right to edit the DAG road__apply"])
        click(chromium, "a[href^='table?']")
        see(chromium, None, ["held", "What ends it"])
    assert world.post(fields, "vic") == 403
    assert world.post(fields, "nobody") == 401
    assert world.state() is State.HELD
    assert not actions(world.log.lake)


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {},
    ],
    ids=str,
)
def test_what_another_site_sends_is_refused(world: World, headers: dict[str, str]) -> None:
    fields = world.ask("ann")
    assert world.post(fields, "ann", headers | {"Content-Type": OURS["Content-Type"]}) == 403
    assert world.state() is State.HELD
    assert not actions(world.log.lake)


def test_a_page_without_fetch_metadata_is_known_by_its_origin(world: World) -> None:
    """A browser sends Sec-Fetch-Site to trustworthy addresses alone: HTTPS, and this machine."""
    fields = world.ask("ann")
    assert world.post(fields, "ann", {"Origin": world.url, "Content-Type": OURS["Content-Type"]}) == 303
    assert world.state() is State.RELEASED


def test_a_form_on_another_site_is_refused_in_a_browser(world: World, tmp_path: Path) -> None:
    inputs = "".join(f"<input name='{name}' value='{text}'>" for name, text in world.ask("ann").items())
    (tmp_path / "evil").mkdir()
    form = f"<form method='post' action='{world.acts}'>{inputs}<button>Win</button></form>"
    form += f"<iframe src='{world.acts}?name=shop.a&action=approve'></iframe>"
    (tmp_path / "evil" / "index.html").write_text(form)
    handler = lambda *given: http.server.SimpleHTTPRequestHandler(*given, directory=str(tmp_path / "evil"))  # noqa: E731
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with browser() as chromium:
            as_user(chromium, world, "ann")
            see(chromium, f"http://127.0.0.1:{server.server_address[1]}/", ["Win"])
            chromium.switch_to.frame(0)
            assert "Approve" not in chromium.page_source, "a foreign page would lay it under its own button"
            chromium.switch_to.default_content()
            click(chromium, "button")
            see(chromium, None, ["Only a page of this Airflow may send this"])
    finally:
        server.shutdown()
    assert world.state() is State.HELD


def test_a_form_that_comes_twice_or_too_late_changes_nothing(world: World) -> None:
    fields, late = world.ask("ann"), world.ask("ann")
    assert [world.post(fields, "ann"), world.post(fields, "ann")] == [303, 303]
    assert world.state() is State.RELEASED
    assert world.post(late, "ann") == 409, "it isn't held any more"
    assert len(control.read(world.log.lake, tables.ACTIONS)) == 2
    world.log.apply()
    other = Standing(State.HELD, "another", Cause.DDL_STOPS, 20)
    row = held.to_row(other, "road", "shop.a", datetime.now(UTC))
    control.append(world.log.lake, tables.TABLE_STATES, [row])
    assert world.post(late | {"action": "release"}, "ann") == 409, "nobody saw this hold"
    assert world.state() is State.HELD


@pytest.mark.parametrize("odd", [{"id": "x"}, {"action": "accept"}, {"action": "drop"}, {"seen": "soon"}, {"name": ""}])
def test_a_form_that_the_page_did_not_make_is_refused(world: World, odd: dict[str, str]) -> None:
    assert world.post(world.ask("ann") | odd, "ann") == 409
    assert world.state() is State.HELD
    assert not actions(world.log.lake)


def test_a_body_is_bounded_and_must_be_a_form(world: World) -> None:
    fields = world.ask("ann")
    assert world.post(fields | {"name": "x" * 70_000}, "ann") == 413
    assert world.post(fields, "ann", OURS | {"Content-Type": "application/json"}) == 415
    assert world.state() is State.HELD


def test_a_person_judges_pauses_and_cancels(world: World) -> None:
    log = world.log
    log.send("one", "FROBNICATE EVERYTHING")
    log.level()
    log.apply()
    assert world.state("shop.b") is State.HELD
    fields = world.ask("ann", "judge", "shop.b")
    assert world.post(fields, "ann") == 409, "it says neither"
    fields = world.ask("ann", "judge", "shop.b")
    assert world.post(fields | {"word": "nothing"}, "ann") == 303
    assert world.state("shop.b") is State.RELEASED
    said = control.read(log.lake, tables.JUDGEMENTS).to_pylist()
    assert [(row["tables"], row["judged_by"]) for row in said] == [([], "ann")]
    request(log.lake, "road", [Physical("two", "two", "d")])
    for action, state in (
        ("pause", SnapshotState.PAUSED),
        ("resume", SnapshotState.REQUESTED),  # no reader has begun it
        ("cancel", SnapshotState.CANCELLED),
    ):
        assert world.post(world.ask("ann", action, "two.d"), "ann") == 303
        assert told(log.lake, "road")[0].state is state
    assert {str(known.outcome) for known in actions(log.lake)} == {"done"}


def test_the_two_answers_of_a_judgement_never_contradict_each_other(world: World, tmp_path: Path) -> None:
    world.log.send("one", "FROBNICATE EVERYTHING")
    world.log.level()
    world.log.apply()
    with browser() as chromium:
        as_user(chromium, world, "ann")
        see(chromium, f"{world.acts}?name=shop.b&action=judge", ["What does it change?", "shop.b"])
        look_at(chromium, Path(os.environ.get("SCREENSHOTS", tmp_path)), "judge")
        nothing, some, box = ("[value=nothing]", "[value=tables]", "[name=changes][value='shop.b']")

        def chosen() -> list[bool]:
            return [chromium.find_element(By.CSS_SELECTOR, each).is_selected() for each in (nothing, some, box)]

        click(chromium, "form.ask button")
        assert world.state("shop.b") is State.HELD, "the browser asks for an answer first"
        click(chromium, box)
        assert chosen() == [False, True, True]
        click(chromium, nothing)
        assert chosen() == [True, False, False]
        click(chromium, some)
        click(chromium, "form.ask button")
        assert chosen() == [False, True, False], "the form isn't sent: it wants a table"
        click(chromium, box)
        click(chromium, "form.ask button")
        see(chromium, None, ["Done.", "shop.b held: judged by ann"])
    (said,) = control.read(world.log.lake, tables.JUDGEMENTS).to_pylist()
    assert said["tables"] == ["shop.b"]


def test_a_judgement_is_of_the_tables_that_were_shown(world: World) -> None:
    log = world.log
    assert world.post(world.ask("ann"), "ann") == 303
    log.apply()
    log.send("one", "FROBNICATE EVERYTHING")
    log.level()
    log.apply()
    fields = world.ask("ann", "judge", "shop.b")
    assert world.post(fields | {"changes": "nodot"}, "ann") == 409, "it names no table, and all would go on"
    held.release(log.lake, held.last_states(log.lake)["shop.a"])
    assert world.post(fields | {"word": "nothing"}, "ann") == 409, "shop.a was shown beside it"
    assert world.state("shop.b") is State.HELD
    assert world.post(world.ask("ann", "judge", "shop.b") | {"changes": "shop.b"}, "ann") == 303
    assert world.state("shop.b") is State.HELD


def test_a_word_is_of_the_snapshot_that_was_shown(world: World) -> None:
    lake = world.log.lake
    for name in ("d*", "d"):
        request(lake, "road", [Physical("two", "two", name)])
    of_pattern, of_d = (world.ask("ann", "cancel", name) for name in ("two.d*", "two.d"))
    tell_tables(lake, "road", told(lake, "road"), EventKind.CANCELLED)
    request(lake, "road", [Physical("two", "two", "d")])
    assert world.post(of_pattern, "ann") == 409, "a table's name is no pattern"
    assert world.post(of_d, "ann") == 409, "another snapshot was shown"
    assert told(lake, "road")[-1].state is SnapshotState.REQUESTED


def test_a_person_hears_of_an_action_that_was_killed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever lost the answer presses again, with the same form; what became of it isn't known."""
    fields = world.ask("ann")
    with monkeypatch.context() as killed:
        killed.setattr(audit, "_end", lambda *_: None)
        killed.setattr(held, "release", _fault)
        assert world.post(fields, "ann") == 303
    assert world.post(fields, "ann") == 303, "it isn't begun again by itself"
    assert world.state() is State.HELD
    shown = world.get(f"{world.table}&done={fields['id']}", "ann")
    assert "Begun." in shown
    assert "act again" in shown
    assert world.post(world.ask("ann"), "ann") == 303
    assert world.state() is State.RELEASED


def _fault(*_: Any, **__: Any) -> None:
    raise RuntimeError("a fault that nobody expects")


def test_names_and_statements_are_text_on_every_page(world: World) -> None:
    lake, evil = world.log.lake, "shop.a'><script>alert(1)</script>\n<img src=x onerror=alert(1)>" + "x" * 200
    place = Place("one", "shop", evil[5:], "b.000001", 4, 20, f"ALTER TABLE `{evil}`")
    standing = Standing(State.HELD, f"reason of {evil}", Cause.DDL_ASKS, 20, place)
    control.append(lake, tables.TABLE_STATES, [held.to_row(standing, "road", evil, datetime.now(UTC))])
    quoted = urllib.parse.quote(evil)
    table = f"{world.url}/dags/road__apply/table?name={quoted}"
    pages = [f"{world.url}/", f"{world.url}/dags/road__apply", table, f"{world.acts}?name={quoted}&action=approve"]
    shown = [world.get(page, "ann") for page in pages]
    fields = {name: html.unescape(text) for name, text in re.findall("name='([a-z]+)' value='([^']*)'", shown[-1])}
    assert fields["name"] == evil
    assert world.post(fields, "ann") == 303
    shown.append(world.get(f"{table}&done={fields['id']}", "ann"))
    assert "&lt;img" in shown[-1]
    for page in shown:
        assert "<img" not in page
        assert "<script>" not in page
    assert world.state(evil) is State.RELEASED


def test_only_the_apply_dags_right_counts(world: World) -> None:
    """A user may edit one DAG of a pipeline and not another: the pipeline is changed by its apply DAG's right alone."""
    there = replace(world, url=world.url)
    for dag_id in ("road__verify", "road__capture", "~", "other__apply"):
        body = urllib.parse.urlencode(world.ask("ann")).encode()
        sent = urllib.request.Request(f"{there.url}/dags/{dag_id}/act", body, OURS | {"Cookie": "user=ann"})
        with pytest.raises(urllib.error.HTTPError, match="404"):
            _opener().open(sent)
    assert world.state() is State.HELD


@pytest.mark.server
def test_a_person_asks_for_a_tables_rows(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is asked which table at the source has them; a reader is woken by the request."""
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    log = Log(tmp_path)
    log.keeps(f"'{database}.*'")
    log.file.write_text(log.file.read_text().replace(", two: {conn_id: d, flavour: mariadb}", ""))
    place = Place("one", database, "t", "b.000001", 4, 20)
    standing = Standing(State.HELD, "it has older rows", Cause.NEEDS_ROWS, 20, place)
    row = held.to_row(standing, "road", f"{database}.t", datetime.now(UTC))
    control.append(log.lake, tables.TABLE_STATES, [row])
    reached = {"conn_type": "mysql", "host": mariadb.host, "port": mariadb.port}
    reached |= {"login": mariadb.user, "password": mariadb.password}
    with served_by(monkeypatch, log.file, json.dumps(reached)) as url:
        world = World(log, url)
        assert world.post(world.ask("ann", "snapshot", f"{database}.t"), "ann") == 303
        (asked,) = told(log.lake, "road")
        assert (asked.source, asked.name, asked.state) == ("one", (database, "t"), SnapshotState.REQUESTED)
        (known,) = actions(log.lake)
        assert (str(known.action.act), known.action.tables) == ("snapshot", (f"{database}.t",))
        with pytest.raises(urllib.error.HTTPError, match="409"):
            world.ask("ann", "snapshot", f"{database}.t")
        assert "cancel" in world.ask("ann", "cancel", f"{database}.t").values(), "it is under way"
