"""A held table goes on once it is emptied at the source, unless what it lacks lives on in another table.

In:  events as servers write them, in bronze.
Out: the steps up to decode, and publish_cut, as apply runs them: no Spark, only the control tables.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.apply_steps.plan_window import catches_up
from spark_jobs.window.standing.facts import facts_of
from spark_jobs.window.standing.standings import hold_for_error
from spark_jobs.window.waves.snapshots import Begun, start
from spark_jobs.window.waves.verdicts import Share, verdict_of
from tests.support.event_log import Log, held
from tests.support.seeds import share
from tests.support.steps import publish, to_ddl, to_decode
from tidegate.errors import LakeRefused
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.replay.history import SNAPSHOT
from tidegate.snapshot.waves import EndedWave
from tidegate.standing.causes import Cause
from tidegate.standing.events import CaughtUp
from tidegate.standing.standing import Standing
from tidegate.standing.step import step
from tidegate.table_names import Physical
from tidegate.tables import State

AWAY = ("RENAME TABLE shop.a TO shop.old", ("shop.a", "shop.old"))
BACK = ("RENAME TABLE shop.old TO shop.a", ("shop.a", "shop.old"))
EMPTY = ("TRUNCATE TABLE shop.a", ("shop.a",))
ANEW = ("CREATE TABLE shop.a (id INT PRIMARY KEY)", ("shop.a",))
EMPTY_OLD = ("TRUNCATE TABLE shop.old", ("shop.old",))
DROP_OLD = ("DROP TABLE shop.old", ("shop.old",))


def _log(tmp_path: Path, *statements: tuple[str, tuple[str, ...]]) -> Log:
    """The table a lacks what a statement changed; then these."""
    log = Log(tmp_path)
    log.send("one", "UPDATE a SET id = 2")
    for sql, names in statements:
        log.send("one", sql, names)
    log.level()
    return log


@pytest.mark.parametrize("at_once", [True, False], ids=["one window", "a window each"])
@pytest.mark.parametrize("rest", share([(BACK, EMPTY), (ANEW, EMPTY_OLD), (EMPTY_OLD,), (ANEW, DROP_OLD)]))
def test_a_renamed_table_goes_on_with_whom_it_gave_its_rows_once_nothing_of_them_is_left(
    rest: tuple[tuple[str, tuple[str, ...]], ...], at_once: bool, tmp_path: Path
) -> None:
    log = _log(tmp_path, AWAY, *(rest if at_once else ()))
    if not at_once:
        app = log.apply()
        assert held(app) == {"shop.a", "shop.old"}, "what it gave lacks what the statement changed"
        for number, (sql, names) in enumerate(rest):
            assert held(app) == {"shop.a", "shop.old"}, f"after {number} of them"
            log.send("one", sql, names)
            log.level()
            app = log.apply()
    app = log.apply()
    assert held(app) == set()
    assert not catches_up(app)
    assert {app.states[name].state for name in ("shop.a", "shop.old")} <= {State.ACTIVE, State.DROPPED}


def test_what_could_not_be_written_goes_on_once_the_table_is_emptied_behind_it(tmp_path: Path) -> None:
    """It has no place in the log, only a window; a rename in between, to a name that nobody keeps, has no bearing."""
    log = Log(tmp_path)
    log.keeps("shop.a, shop.b, crm.*, two.*")
    log.level()
    app, window = log.first_window()
    window = to_decode(app, window)
    hold_for_error(app, window, "shop.a", LakeRefused("x"))
    publish(app, window)
    assert held(log.apply()) == {"shop.a"}, "its CREATE TABLE stands before what it met"
    for sql, names in (AWAY, BACK):
        log.send("one", sql, names)
    log.level()
    log.apply()
    log.send("one", *EMPTY)
    log.level()
    assert held(log.apply()) == set()


def test_a_held_table_that_gave_its_rows_to_another_is_not_mended_by_a_new_one_of_its_name(tmp_path: Path) -> None:
    log = _log(tmp_path, AWAY, ANEW)
    assert held(log.apply()) == {"shop.a", "shop.old"}
    log.send("one", *EMPTY)
    log.level()
    assert held(log.apply()) == {"shop.a", "shop.old"}


def test_what_cascades_changed_in_silence_is_not_given_to_another_table_by_a_rename(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.file.write_text(log.file.read_text().replace("ddl: {", "ddl: {unlogged_cascades: hold, "))
    child = "(id INT PRIMARY KEY, p INT, CONSTRAINT up FOREIGN KEY (p) REFERENCES shop.b (id) ON DELETE CASCADE)"
    log.send("one", f"CREATE TABLE shop.child {child}", ("shop.child",))
    log.level()
    assert held(log.apply()) == {"shop.child"}
    log.send("one", "ALTER TABLE shop.child DROP FOREIGN KEY up", ("shop.child",))
    log.send("one", "RENAME TABLE shop.child TO shop.old", ("shop.child", "shop.old"))
    log.send("one", "CREATE TABLE shop.child (id INT PRIMARY KEY, p INT)", ("shop.child",))
    log.level()
    assert held(log.apply()) == {"shop.child", "shop.old"}, "old has the rows whose changes nobody saw"
    log.send("one", *EMPTY_OLD)
    log.level()
    assert held(log.apply()) == set()


def test_who_took_rows_of_a_table_that_a_snapshot_begins_anew_waits_for_its_own_in_the_same_window_too(
    tmp_path: Path,
) -> None:
    """Silver has the giver's rows as they were when it was held: a taker that went on with it would get those."""
    log = Log(tmp_path)
    log.send("one", "UPDATE a SET id = 2")
    log.level()
    assert held(log.apply()) == {"shop.a"}
    for sql, names in (AWAY, ANEW):
        log.send("one", sql, names)
    log.level()
    app, window = log.first_window()
    window = to_ddl(app, window)
    assert window.held["shop.old"].partner == "shop.a"
    history = app.histories["one"]
    last = history.versions("shop", "a")[-1]
    wave = EndedWave("s", 1, "token", window.cut_ts, window.cut_ts, "", ())
    history.add([replace(last, version=last.version + 1, kind=SNAPSHOT, commit_ts=wave.low_ts)])
    before = (dict(app.states), dict(window.held), history.versions("shop", "a"))
    verdict = verdict_of(app, window, Share(wave, Physical("one", "shop", "a"), []))
    assert (verdict.begins, verdict.made) == (True, ()), "its version is there: a try before this one was killed"
    assert (dict(app.states), dict(window.held), history.versions("shop", "a")) == before, "a verdict changes nothing"
    start(app, window, Begun(), wave, Physical("one", "shop", "a"), verdict.made)
    assert window.held["shop.old"].cause == Cause.NEEDS_ROWS


@pytest.mark.parametrize("upto", ["the cut", "its statement"])
def test_what_empties_a_table_above_the_cut_ends_no_snapshot_at_the_cut(upto: str, tmp_path: Path) -> None:
    """A killed window has replayed the statement, and the table comes back at the cut, which lies below."""
    log = Log(tmp_path)
    log.send("one", "UPDATE a SET id = 2")
    log.level()
    log.apply()
    log.send("one", *EMPTY)
    log.level()
    app, window = log.first_window()
    cut_ts, physical = app.cut_ts, Physical("one", "shop", "a")
    last = app.histories["one"].versions("shop", "a")[-1]
    wave = EndedWave("s", 1, "token", cut_ts - 1, cut_ts - 1, "", ())
    made = replace(last, version=9, kind=SNAPSHOT, commit_ts=wave.low_ts, status=VersionStatus.ACTIVE)
    start(app, window, Begun(), wave, physical, [made])
    to_ddl(app, window)
    emptied = app.histories["one"].versions("shop", "a")[-1]
    assert emptied.kind == "truncate"
    assert emptied.commit_ts > cut_ts
    at_ts = cut_ts if upto == "the cut" else emptied.commit_ts
    facts = replace(facts_of(app, "shop.a"), cut_ts=at_ts, applied=lambda: at_ts)
    back = step(Standing(State.RELEASED, applied_ts=at_ts), CaughtUp(at_ts), facts).standing
    assert back is not None
    assert back.state is (State.SNAPSHOT if upto == "the cut" else State.ACTIVE)
