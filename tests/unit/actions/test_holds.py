"""What a person does to a held table is done once, says what it did, and stands in control/actions with its outcome."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import forks
from tidegate import config, tables
from tidegate.actions import holds, snapshot_words
from tidegate.actions.desk import Desk
from tidegate.connections import from_environment
from tidegate.errors import AlreadyDone, LakeRefused, LakeUnavailable, UsageError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.people import audit
from tidegate.lake.people.audit import Author, actions
from tidegate.lake.standing import held
from tidegate.snapshot.progress.requests import request
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place, Standing
from tidegate.table_names import Physical
from tidegate.tables import State
from tidegate.tables.actions_table import Act, ActionOutcome

PLACE = Place("s", "d", "t", "b.000001", 300, 30, "ALTER TABLE t DROP a")
ID = "0" * 31 + "1"
TEXT = "pipeline: shop\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mariadb}}\ntables: {include: ['d.*']}\n"


def desk_at(root: Path, **standings: Standing) -> Desk:
    lake = LakeFiles(str(root))
    now = datetime.now(UTC) - timedelta(minutes=1)
    rows = [held.to_row(standing, "shop", f"d.{name}", now) for name, standing in standings.items()]
    control.append(lake, tables.TABLE_STATES, rows)
    return Desk(config.parse(TEXT, where="shop.yaml"), lake, from_environment, Author("ann"), ID)


def asks() -> Standing:
    return Standing(State.HELD, "may it?", Cause.DDL_ASKS, 20, PLACE)


def rows_of(lake: LakeFiles) -> list[dict[str, Any]]:
    return control.read(lake, tables.ACTIONS).sort_by("recorded_at").to_pylist()


def test_an_approval_is_recorded_before_and_behind_it(tmp_path: Path) -> None:
    desk = desk_at(tmp_path, t=asks())
    line = holds.release(desk, "d.t")
    assert held.last_states(desk.lake)["d.t"].reason == "approved by ann"
    rows = rows_of(desk.lake)
    assert [(row["action"], row["outcome"], row["detail"]) for row in rows] == [
        ("approve", "begun", ""),
        ("approve", "done", line),
    ]
    assert (rows[0]["tables"], rows[0]["user"], rows[0]["place"]) == (["d.t"], "ann", "command line")
    assert rows[0]["subject"] == PLACE.ddl
    (known,) = actions(desk.lake)
    assert (known.outcome, known.action.act, known.action.author) == (ActionOutcome.DONE, Act.APPROVE, desk.author)


def test_a_release_that_would_fill_a_table_by_half_is_refused_and_recorded(tmp_path: Path) -> None:
    desk = desk_at(tmp_path, t=Standing(State.HELD, "old rows", Cause.NEEDS_ROWS, 20, PLACE))
    with pytest.raises(UsageError, match="needs rows"):
        holds.release(desk, "d.t")
    (known,) = actions(desk.lake)
    assert (known.outcome, known.action.act) == (ActionOutcome.REFUSED, Act.RELEASE)
    assert "needs rows" in known.detail
    assert held.last_states(desk.lake)["d.t"].state is State.HELD


def test_a_hold_that_the_person_did_not_see_is_left_alone(tmp_path: Path) -> None:
    desk = desk_at(tmp_path, t=asks())
    seen = held.last_states(desk.lake)["d.t"].since
    other = Standing(State.HELD, "another one", Cause.DDL_ASKS, 20, replace(PLACE, at_ts=31, ddl="DROP TABLE t"))
    later = datetime.now(UTC)
    control.append(desk.lake, tables.TABLE_STATES, [held.to_row(other, "shop", "d.t", later)])
    with pytest.raises(UsageError, match="something else now: another one"):
        holds.release(desk, "d.t", seen)
    assert not rows_of(desk.lake)
    holds.release(desk, "d.t", later)
    assert held.last_states(desk.lake)["d.t"].approved_ts == 31


def test_an_action_is_done_once_by_its_id(tmp_path: Path) -> None:
    desk = desk_at(tmp_path, t=asks(), u=asks())
    holds.release(desk, "d.t")
    with pytest.raises(AlreadyDone):
        holds.release(desk, "d.u")
    assert held.last_states(desk.lake)["d.u"].state is State.HELD
    holds.release(replace(desk, id="0" * 32), "d.u")
    assert len(actions(desk.lake)) == 2


def test_of_many_processes_with_one_id_one_acts(tmp_path: Path) -> None:
    desk_at(tmp_path, t=asks())
    with forks.Pool(4) as pool:
        done = pool.map(_begin, [str(tmp_path)] * 8)
    assert sorted(done) == [False] * 7 + [True]
    assert len(rows_of(LakeFiles(str(tmp_path)))) == 1


def _begin(root: str) -> bool:
    row = {"id": ID, "pipeline": "p", "action": "release", "tables": [], "subject": "", "user": "u", "place": "x"}
    row |= {"outcome": "begun", "detail": "", "recorded_at": datetime.now(UTC)}
    return control.append_once(LakeFiles(root), tables.ACTIONS, row, "id")


def test_what_cannot_be_recorded_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_at(tmp_path, t=asks())

    def away(*_: object) -> bool:
        raise LakeUnavailable("no such bucket")

    monkeypatch.setattr(control, "append_once", away)
    with pytest.raises(LakeUnavailable):
        holds.release(desk, "d.t")
    assert held.last_states(desk.lake)["d.t"].state is State.HELD


def test_words_about_snapshots_are_recorded_with_their_tables(tmp_path: Path) -> None:
    desk = replace(desk_at(tmp_path, t=asks()), id="")
    request(desk.lake, "shop", [Physical("s", "d", "t"), Physical("s", "d", "u")])
    assert snapshot_words.tell(desk, Act.PAUSE, ["d.t"]) == "paused: d.t"
    assert snapshot_words.tell(desk, Act.CANCEL, []) == "cancelled: d.t, d.u"
    with pytest.raises(UsageError, match="no snapshot that can be resumed"):
        snapshot_words.tell(desk, Act.RESUME, ["d.t"])
    assert [(known.action.act, known.action.tables) for known in reversed(actions(desk.lake))] == [
        (Act.PAUSE, ("d.t",)),
        (Act.CANCEL, ("d.t", "d.u")),
    ]


def test_of_two_people_at_once_one_lets_the_table_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both saw the hold, and press within the same second. Apply went on behind the first one's word."""
    desk = desk_at(tmp_path, t=asks())
    began = audit.PersonAction.row

    def meanwhile(action: audit.PersonAction, outcome: ActionOutcome, detail: str = "") -> dict[str, Any]:
        monkeypatch.setattr(audit.PersonAction, "row", began)
        holds.release(replace(desk, id=""), "d.t")
        row = held.to_row(Standing(State.ACTIVE, applied_ts=90), "shop", "d.t", datetime.now(UTC))
        control.append(desk.lake, tables.TABLE_STATES, [row])
        return began(action, outcome, detail)

    monkeypatch.setattr(audit.PersonAction, "row", meanwhile)
    with pytest.raises(UsageError, match="isn't held for that any more"):
        holds.release(desk, "d.t")
    assert held.last_states(desk.lake)["d.t"].state is State.ACTIVE, "it would begin again below its rows"
    assert sorted(str(known.outcome) for known in actions(desk.lake)) == ["done", "refused"]


def test_a_release_counts_though_the_clock_of_the_holder_is_ahead(tmp_path: Path) -> None:
    desk = desk_at(tmp_path)
    ahead = datetime.now(UTC) + timedelta(seconds=30)
    control.append(desk.lake, tables.TABLE_STATES, [held.to_row(asks(), "shop", "d.t", ahead)])
    holds.release(desk, "d.t")
    assert held.last_states(desk.lake)["d.t"].state is State.RELEASED


def test_a_name_is_a_short_line_whatever_airflow_gives(tmp_path: Path) -> None:
    desk = desk_at(tmp_path, t=replace(asks(), place=replace(PLACE, ddl="x" * 10_000)))
    holds.release(replace(desk, author=Author("ann\n\x1b[31m\u202e<b>" + "x" * 10_000, "Airflow")), "d.t")
    reason = held.last_states(desk.lake)["d.t"].reason
    assert reason.startswith("approved in Airflow by ann [31m <b>xxx"), "whatever a terminal makes of it"
    assert reason.isprintable()
    for row in rows_of(desk.lake):
        assert max(map(len, (row["user"], row["subject"], row["detail"]))) <= 2000
        assert len(row["user"]) == 250
    assert Author("\n").user == "an unknown user"


def test_another_pipelines_lake_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """The pipeline was renamed: its DAGs have other names, and other people may edit them."""
    desk = desk_at(tmp_path, t=asks())
    row = {"number": 1, "pipeline": "before", "recorded_at": datetime.now(UTC)}
    nothing: dict[str, Any] = {"string": "", "int64": 0, "bool": False}
    cells = {cell.name: None if cell.nullable else nothing.get(str(cell.type)) for cell in tables.FOLLOWED.schema}
    control.append(desk.lake, tables.FOLLOWED, [cells | row])
    request(desk.lake, "shop", [Physical("s", "d", "u")])
    with pytest.raises(LakeRefused, match="belongs to pipeline before"):
        holds.release(desk, "d.t")
    with pytest.raises(LakeRefused, match="belongs to pipeline before"):
        snapshot_words.tell(desk, Act.CANCEL, [])
    assert held.last_states(desk.lake)["d.t"].state is State.HELD
    assert not actions(desk.lake)
