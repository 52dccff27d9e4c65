"""Transactions that TiDB can't tell of any more wait for a person, and go on with what one says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.kit.tidb import encode
from tests.kit.tidb.pump_world import Client, Counter, Fates, pump_run, running, until
from tests.support.captures import landed_segments
from tidegate.cli.main import app
from tidegate.config import Orphans
from tidegate.errors import SourceUnavailable
from tidegate.lake import control
from tidegate.lake.bronze import prewrites
from tidegate.lake.files import LakeFiles
from tidegate.lake.people.questions import NewQuestions
from tidegate.pump.parked import Parked
from tidegate.tables.prewrites_table import PREWRITES, PrewriteState
from tidegate.tidb.records.enclosed import payloads_of
from tidegate.tidb.records.mvcc import NOTHING
from tidegate.tidb.records.pairing import UnansweredPrewrite
from tidegate.tidb.records.payload import Binlog, BinlogType, binlog_of

SECOND = 1000 << 18
BEGAN, CAME = 100 * SECOND, 150 * SECOND


class World:
    """A Pump to which two prewrites came that garbage collection has passed."""

    def __init__(self, folder: Path, policy: Orphans = Orphans.PARK) -> None:
        self.folder, self.lake, self.policy = folder, LakeFiles(str(folder / "lake")), policy
        self.counter, self.fates = Counter(SECOND), Fates({BEGAN: NOTHING, BEGAN + 1: NOTHING})
        self.fates.collected_ts = 10_000 * SECOND
        self.words = Parked(self.lake, "one", policy, lambda key: "d.t" if key == b"k" else "")
        self.file = folder / "shop.yaml"
        self.file.write_text(
            f"pipeline: test\nlake: {{path: {self.lake.root}}}\nsources: {{one: {{conn_id: x, flavour: tidb,"
            " listen: ['unix:/p']}}\ntables: {include: ['d.*']}\nxa: {orphans: ask}\n".replace("}}\nt", "}}\nt")
        )

    def run(self, **more: object):
        return running(pump_run(self.folder, self.counter, self.fates, words=self.words, **more))

    def write(self) -> None:
        client = Client(f"unix:{self.folder}/p.sock")
        client.write(encode.binlog(BinlogType.PREWRITE, CAME - SECOND, key=b"o"))
        client.write(encode.binlog(BinlogType.COMMIT, CAME - SECOND, CAME))
        client.write(encode.binlog(BinlogType.PREWRITE, BEGAN, key=b"k"))
        client.write(encode.binlog(BinlogType.PREWRITE, BEGAN + 1, key=b"j"))
        self.counter.floor = 1000 * SECOND
        client.close()

    def rows(self) -> dict[int, prewrites.Prewrite]:
        if not control.exists(self.lake, PREWRITES):
            return {}
        return {one.start_ts: one for one in prewrites.standing(self.lake, 1 << 62).get("one", ())}

    def says(self, *words: str) -> str:
        told = CliRunner().invoke(app, ["prewrites", str(self.file), *words])
        assert told.exit_code == 0, told.output
        return told.output

    def answers(self) -> dict[int, Binlog]:
        binlogs = [binlog_of(one) for segment in landed_segments(self.folder / "lake") for one in payloads_of(segment)]
        kinds = (BinlogType.COMMIT, BinlogType.ROLLBACK)
        return {one.start_ts: one for one in binlogs if one.tp in kinds and not one.is_fake}

    def until(self, met: Callable[[], bool]) -> None:
        """While TiDB's timestamps go on."""

        def looked() -> bool:
            self.counter.floor = (self.counter.floor or 0) + SECOND
            return met()

        until(looked)

    @property
    def resolved(self) -> int:
        return landed_segments(self.folder / "lake")[-1].resolved_ts


def test_a_person_decides_what_tidb_cannot_tell(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.run():
        world.write()
        world.until(lambda: len(world.rows()) == 2)
        assert {one.state for one in world.rows().values()} == {PrewriteState.PARKED}
        assert (world.rows()[BEGAN].tables, world.rows()[BEGAN + 1].tables) == (("d.t",), ())
        asked = NewQuestions({})
        asked.open(world.lake.root, {})
        assert asked.look() == {"tables": ["one"]}
        assert asked.look() is None
        listed = world.says()
        assert f"parked  one  tidb {BEGAN}  " in listed
        assert "d.t" in listed
        assert BEGAN not in world.answers()
        assert world.resolved == CAME
        assert "its Pump goes on with that" in world.says("--commit", f"tidb {BEGAN}")
        world.until(lambda: BEGAN in world.answers())
        assert world.resolved == CAME
    assert BEGAN + 1 not in world.answers()
    world.says("--rollback", f"one tidb {BEGAN + 1} {BEGAN + 1}")
    with world.run():  # another run finds what was decided while none was there
        world.until(lambda: world.resolved > 1000 * SECOND)
    commit, rollback = world.answers()[BEGAN], world.answers()[BEGAN + 1]
    assert (commit.tp, commit.commit_ts, rollback.tp) == (BinlogType.COMMIT, CAME + 1, BinlogType.ROLLBACK)
    assert {one.start_ts: one.state for one in world.rows().values()} == {
        BEGAN: PrewriteState.COMMITTED,
        BEGAN + 1: PrewriteState.ROLLED_BACK,
    }


@pytest.mark.parametrize(
    ("policy", "tp"), [(Orphans.ROLLBACK, BinlogType.ROLLBACK), (Orphans.COMMIT, BinlogType.COMMIT)]
)
def test_the_pipeline_file_decides_where_it_says_so(tmp_path: Path, policy: Orphans, tp: BinlogType) -> None:
    world = World(tmp_path, policy)
    with world.run():
        world.write()
        world.until(lambda: {BEGAN, BEGAN + 1} <= world.answers().keys())
    assert {world.answers()[one].tp for one in (BEGAN, BEGAN + 1)} == {tp}
    assert {one.decided_by for one in world.rows().values()} == {f"xa.orphans: {policy}"}


def test_nobody_is_asked_while_tidb_may_still_tell(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fates.clear()  # it doesn't answer
    with world.run():
        world.write()
        world.until(lambda: any(one.max_commit_ts > 1000 * SECOND for one in landed_segments(tmp_path / "lake")))
        with pytest.raises(SourceUnavailable):
            world.fates.fate(b"k", BEGAN)
        assert world.rows() == {}
        assert world.resolved == CAME


def test_two_pumps_give_one_answer_to_what_came_to_both(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    found: list[dict[int, int]] = []

    def pump(came_ts: int, meanwhile: Callable[[], None]) -> dict[int, int]:
        """Between its look at what stands and its own words the other one decides."""

        def table_of(_: bytes) -> str:
            meanwhile()
            return "d.t"

        lost = [UnansweredPrewrite(BEGAN, b"k", 0, BEGAN, came_ts)]
        return Parked(lake, "one", Orphans.COMMIT, table_of).decided(lost)

    def other() -> None:
        if not found:
            found.append(pump(CAME, lambda: None))

    mine = pump(CAME + 85, other)
    assert mine == found[0] == {BEGAN: CAME + 1}
    assert pump(CAME + 200, lambda: None) == mine


def test_an_older_one_that_comes_later_is_a_question_of_its_own(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    asked = NewQuestions({})
    asked.open(lake.root, {})
    for start_ts in (BEGAN, BEGAN - 1):
        Parked(lake, "one", Orphans.ASK, lambda _: "").decided([UnansweredPrewrite(start_ts, b"k", 0, start_ts, CAME)])
        assert asked.look() == {"tables": ["one"]}
        assert asked.look() is None
