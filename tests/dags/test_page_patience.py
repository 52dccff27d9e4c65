"""A lake that hangs holds no page up: each answers within seconds, with the lake's last state, and says so."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.dags.browser import browser, see
from tests.dags.page_server import served_by
from tests.dags.test_page_acts import World, as_user
from tests.dags.waiting_table import waits_for_approval
from tests.support.pipeline_views import pipeline, view
from tidegate import tables
from tidegate.cli.main import app as command_line
from tidegate.lake import control
from tidegate.lake.people.audit import actions
from tidegate.lake.standing.held import to_row
from tidegate.lake.storage import storage_options
from tidegate.patience import NoAnswer, Patience
from tidegate.pipelines import PipelineView, watching
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State
from tidegate_airflow.page.acting import SentForm

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore")]

ANSWERS_SECONDS = 15.0  # a busy machine's; the mount hangs for 120


class Mount:
    """The lake's folder: while it hangs, a look doesn't come back."""

    def __init__(self, lake: Path) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.looks = 0
        self._lake, self._look, self._resolve = lake, watching.look, Path.resolve

    def look(self, *arguments: Any) -> Any:
        self.looks += 1
        self.answers.wait(120)
        return self._look(*arguments)

    def resolve(self, path: Path, strict: bool = False) -> Path:
        if path == self._lake:
            self.answers.wait(120)
        return self._resolve(path, strict)


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mount]:
    made = Mount(tmp_path / "lake")
    monkeypatch.setattr(Path, "resolve", lambda path, strict=False: made.resolve(path, strict))
    monkeypatch.setattr(storage_options, "_PATIENCE", Patience(0.2))
    monkeypatch.setattr(watching, "look", made.look)
    monkeypatch.setattr(watching, "PAGE_LOOK_SECONDS", 0.0)
    yield made
    made.answers.set()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mount: Mount) -> Iterator[World]:
    del mount  # patched before the page runs
    log = waits_for_approval(tmp_path)
    with served_by(monkeypatch, log.file) as url:
        yield World(log, url)


def refused(world: World, url: str) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as caught:
        world.get(url, "ann")
    return caught.value.code, caught.value.read().decode()


def test_each_page_of_a_hanging_lake_shows_its_last_state_within_seconds(
    world: World, mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate_airflow.page import patient

    dag = f"{world.url}/dags/road__apply"
    fields = world.ask("ann")
    assert "The lake hasn&#x27;t answered" not in world.get(dag, "ann")
    mount.answers.clear()
    with monkeypatch.context() as patched:
        patched.setattr(patient, "PAGE_OLD_SECONDS", 0.0)  # what was seen a moment ago is old
        patched.setattr(patient, "PAGE_FIRST_SECONDS", 1.0)
        for page in (f"{world.url}/", dag, f"{dag}?span=day", world.table):
            began = time.monotonic()
            shown = world.get(page, "ann")
            assert time.monotonic() - began < ANSWERS_SECONDS, page
            assert "The lake hasn&#x27;t answered" in shown, page
            assert "held" in shown, "as it was"
        assert "unreadable" in world.get(dag, "ann")
        began, before = time.monotonic(), mount.looks
        askers = [threading.Thread(target=world.get, args=(dag, "ann")) for _ in range(60)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        assert time.monotonic() - began < ANSWERS_SECONDS, "they don't wait for each other"
        assert mount.looks == before, "one look hangs, not one an asker"
        code, said = refused(world, f"{dag}/status.json")
        assert (code, json.loads(said)["state"], json.loads(said)["tables"][0]["state"]) == (503, "unreadable", "held")
        code, said = refused(world, f"{world.acts}?name=shop.a&action=approve")
        assert (code, "answer" in said) == (409, True)
        assert world.post(fields, "ann") == 409
    mount.answers.set()
    end = time.monotonic() + 30
    while "The lake hasn&#x27;t answered" in world.get(dag, "ann") and time.monotonic() < end:
        time.sleep(0.1)
    assert "The lake hasn&#x27;t answered" not in world.get(dag, "ann"), "it answers again"
    assert world.state() is State.HELD
    assert not actions(world.log.lake), "nothing was begun"
    assert world.post(world.ask("ann"), "ann") == 303


def test_a_lake_that_hangs_from_the_beginning_is_said_to(
    world: World, mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate_airflow.page import patient

    monkeypatch.setattr(patient, "PAGE_FIRST_SECONDS", 1.0)
    mount.answers.clear()
    with browser() as chromium:
        as_user(chromium, world, "ann")
        see(chromium, f"{world.url}/", ["unreadable", "it hasn't answered yet"])
        see(chromium, world.table, ["it hasn't answered yet"])


def test_an_action_that_fails_as_the_lake_begins_to_hang_holds_no_page_up(
    world: World, mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was recorded after all is a look at the lake, too."""
    from tidegate_airflow.page import application

    fields = world.ask("ann")
    looker = threading.Thread(target=world.get, args=(f"{world.url}/dags/road__apply", "ann"))

    def fails(*_: Any) -> str:
        mount.answers.clear()
        before = mount.looks
        looker.start()
        while mount.looks == before:
            time.sleep(0.01)
        raise OSError("the mount doesn't answer")

    monkeypatch.setattr(application, "perform", fails)
    began = time.monotonic()
    assert world.post(fields, "ann") == 504
    assert time.monotonic() - began < ANSWERS_SECONDS
    mount.answers.set()
    looker.join()


def test_an_action_whose_end_isnt_known_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate_airflow.page import application, patient

    back, perform = threading.Event(), application.perform

    def slow(*given: Any) -> str:
        back.wait(60)
        return perform(*given)

    monkeypatch.setattr(application, "perform", slow)
    fields = world.ask("ann")
    monkeypatch.setattr(patient, "PAGE_ACT_SECONDS", 0.5)
    assert world.post(fields, "ann") == 504
    assert world.state() is State.HELD
    back.set()
    end = time.monotonic() + 30
    while world.state() is State.HELD and time.monotonic() < end:
        time.sleep(0.1)
    assert world.state() is State.RELEASED
    assert "Done." in world.get(f"{world.table}&done={fields['id']}", "ann")


@pytest.fixture
def slow_look(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowLook]:
    made = SlowLook()
    monkeypatch.setattr(watching, "look", made.look)
    yield made
    made.ends.set()


class SlowLook:
    """From the call of `slow` on the next look has read the lake when `has_read` is set, and comes back at `ends`."""

    def __init__(self) -> None:
        self.has_read, self.ends = threading.Event(), threading.Event()
        self.is_slow = False
        self._look = watching.look

    def look(self, *arguments: Any) -> PipelineView:
        seen = self._look(*arguments)
        if self.is_slow:
            self.is_slow = False
            self.has_read.set()
            self.ends.wait(60)
        return seen


def act_during_a_look(world: World, look: SlowLook) -> str:
    """Approve while a look from before is under way; the address of the table's page then."""
    fields = world.ask("ann")
    look.is_slow = True
    threading.Thread(target=world.get, args=(f"{world.url}/dags/road__apply", "ann"), daemon=True).start()
    assert look.has_read.wait(60)
    assert world.post(fields, "ann") == 303
    assert world.state() is State.RELEASED
    return f"{world.table}&done={fields['id']}"


def test_whoever_acted_sees_the_state_after_it_though_an_older_look_is_under_way(
    world: World, slow_look: SlowLook
) -> None:
    after = act_during_a_look(world, slow_look)
    threading.Timer(0.5, slow_look.ends.set).start()
    shown = world.get(after, "ann")
    assert "catching up" in shown
    assert "Done." in shown
    assert "read again" not in shown, "it is the newest"


def test_a_page_from_before_ones_own_action_says_so(world: World, slow_look: SlowLook) -> None:
    after = act_during_a_look(world, slow_look)
    shown = world.get(after, "ann")
    assert "Sent." in shown
    assert "from before the last action: the lake is being read again" in shown
    assert "from before the last action: the lake is being read again" in world.get(
        f"{world.url}/dags/road__apply", "ann"
    )
    slow_look.ends.set()
    end = time.monotonic() + 30
    while "read again" in (shown := world.get(after, "ann")) and time.monotonic() < end:
        time.sleep(0.1)
    assert "read again" not in shown
    assert "catching up" in shown
    assert "Done." in shown


def test_a_page_of_another_process_than_the_acting_one_is_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow's API server may have several: this one has looked a moment ago, and another one acts."""
    world.get(world.table, "ann")
    monkeypatch.setattr(watching, "PAGE_LOOK_SECONDS", 60.0)
    world.get(world.table, "ann")
    command = ["release", str(world.log.file), "shop.a"]
    assert CliRunner().invoke(command_line, command).exit_code == 0
    assert world.state() is State.RELEASED
    assert "catching up" in world.get(world.table, "ann")


def test_a_hung_lake_holds_few_threads_whatever_names_are_asked_for(
    world: World, slow_look: SlowLook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of names that no table has, none; of tables, a bounded number."""
    from tidegate_airflow.page import patient

    for name in ("shop.b", "crm.c"):
        stops = Standing(State.HELD, "the disk is full", Cause.FAULT, 1)
        control.append(world.log.lake, tables.TABLE_STATES, [to_row(stops, "road", name, datetime.now(UTC))])
    monkeypatch.setattr(patient, "PAGE_LAKE_SECONDS", 0.05)
    monkeypatch.setattr(patient, "PAGE_HUNG_THREADS_MAX", 2)
    monkeypatch.setattr(watching.PipelineReader, "schema_changes", lambda *_: slow_look.ends.wait(120))
    for name in ("shop.a", "shop.b", "crm.c", *(f"no.{number}" for number in range(20))):
        shown = world.get(f"{world.url}/dags/road__apply/table?name={name}", "ann")
        said = "Nothing is known of this table." if name.startswith("no.") else "The lake hasn't answered yet"
        assert said in shown, name
    asked = sorted(
        each.name for each in threading.enumerate() if each.name.startswith(("tidegate-shop", "tidegate-no"))
    )
    assert [name.partition(" ")[0] for name in asked] == ["tidegate-shop.a", "tidegate-shop.b"]


def test_an_action_that_isnt_begun_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many others hang: it won't be done later, either."""
    from tidegate_airflow.page import application, patient

    monkeypatch.setattr(patient, "PAGE_HUNG_THREADS_MAX", 1)
    first, second = world.ask("ann"), world.ask("ann")
    monkeypatch.setattr(patient, "PAGE_ACT_SECONDS", 0.5)
    back, acts = threading.Event(), list[str]()

    def slow(_: Any, form: SentForm) -> str:
        acts.append(form.id)
        back.wait(60)
        return "done"

    monkeypatch.setattr(application, "perform", slow)
    assert [world.post(first, "ann"), world.post(second, "ann")] == [504, 409]
    assert acts == [first["id"]]
    back.set()


class Slow:
    """A reader whose every look takes longer than anybody waits."""

    pipeline = pipeline()

    def view(self, span: str) -> PipelineView:
        del span
        time.sleep(0.3)
        return replace(view(), at=time.time())


def test_a_lake_whose_every_answer_is_late_is_shown_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate_airflow.page import patient

    monkeypatch.setattr(patient, "PAGE_LAKE_SECONDS", 0.05)
    monkeypatch.setattr(patient, "PAGE_FIRST_SECONDS", 0.05)
    reader = patient.PatientReader(Slow())  # type: ignore[arg-type]
    assert reader.view().standing is None, "nothing is known yet"
    time.sleep(1)
    seen = reader.view()
    assert seen.standing is not None
    assert not seen.is_old
    with pytest.raises(NoAnswer):
        reader.ask("versions", lambda: time.sleep(0.3) or "late")
    time.sleep(1)
    assert reader.ask("versions", lambda: time.sleep(0.3) or "newer") == "late"
    monkeypatch.setattr(patient, "PAGE_OLD_SECONDS", 0.1)
    with pytest.raises(NoAnswer):
        reader.ask("versions", lambda: time.sleep(0.3) or "newest")
    time.sleep(1)
    with pytest.raises(NoAnswer):
        reader.ask("versions", lambda: time.sleep(0.3) or "")
