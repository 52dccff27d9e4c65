"""SIGKILL while maintain forgets and packs a changelog, and while a group reads it: no change is lost, none comes anew.

In:  a changelog of old and young windows; a process that is killed at a point, or ends.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from spark_jobs.maintain_steps.keep_changelogs import keep_changelogs
from tests.support.forks import exit_code
from tests.unit.changelog.test_table import ORDERS, append, maintenance, publish, stamp, stamps_of
from tidegate.changelog.reading import ChangePlace, changes_after
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.limits import CONTROL_PACKED_FILES_MIN
from tidegate.query.subscription import Batch, Options, Subscription
from tidegate.tables.subscriptions_table import SUBSCRIPTIONS

OLD = [50.0, 45.0, 40.0]
YOUNG = [20 - number for number in range(CONTROL_PACKED_FILES_MIN + 3)]
NAME = "shop.Orders 2"


@pytest.fixture
def lake(tmp_path: Path) -> LakeFiles:
    made = LakeFiles(str(tmp_path / "lake"))
    for days in [*OLD, *YOUNG]:
        append(made, stamp(days), stamp(days))
    publish(made)
    return made


def maintains(root: str, point: str) -> None:
    os.environ["TIDEGATE_FAILPOINT"] = point
    keep_changelogs(maintenance(LakeFiles(root)))


# Forgetting is one commit; packing a file and a commit, then a checkpoint.
@pytest.mark.parametrize(
    "point",
    [
        "delta_before_commit:1",
        "delta_after_commit:1",
        "store_after_link:2",
        "delta_before_commit:2",
        "delta_after_commit:2",
    ],
)
def test_maintain_killed_anywhere_leaves_what_readers_need_and_the_next_run_ends_it(
    lake: LakeFiles, point: str
) -> None:
    young = [stamp(days) for days in YOUNG]
    assert exit_code(maintains, lake.root, point) == -signal.SIGKILL

    def check() -> None:
        reader = ChangePlace(stamp(OLD[-1]), "one", -1, 0)
        rows = [at for piece in changes_after(lake, ORDERS, reader, stamp(0)) for at in piece["commit_ts"].to_pylist()]
        assert rows == young
        assert set(stamps_of(lake)) >= {stamp(OLD[-1]), *young}

    check()
    assert exit_code(maintains, lake.root, "") == 0
    check()
    assert stamps_of(lake) == [stamp(OLD[-1]), *young]
    assert len(lake.log(ORDERS.path).state().files) == 1


def reads(root: str, out: str, point: str) -> None:
    """A group's reader as `tidegate tail` is; a batch is a line of a file."""
    os.environ["TIDEGATE_FAILPOINT"] = point

    def write(batch: Batch) -> None:
        with Path(out).open("a") as file:
            file.write(json.dumps(batch.rows["commit_ts"].to_pylist()) + "\n")

    Subscription(LakeFiles(root), NAME, Options(group="mail", over_gaps=True)).run(write, follow=False)


@pytest.mark.parametrize("point", ["delta_before_commit:2", "store_before_link:2", "delta_after_commit:2"])
def test_a_group_killed_anywhere_has_every_change_and_again_only_what_was_not_saved(
    lake: LakeFiles, tmp_path: Path, point: str
) -> None:
    out = tmp_path / "out"
    assert exit_code(reads, lake.root, str(out), point) == -signal.SIGKILL
    assert exit_code(reads, lake.root, str(out), "") == 0
    batches = [json.loads(line) for line in out.read_text().splitlines()]
    seen = [at for batch in batches for at in batch]
    assert sorted(set(seen)) == [stamp(days) for days in [*OLD, *YOUNG]]
    assert len(seen) - len(set(seen)) in (0, len(batches[0])), "what comes again is the batch whose place wasn't saved"
    assert control.read(lake, SUBSCRIPTIONS)["reader_group"].unique().to_pylist() == ["mail"]


def keeps(root: str, out: str, killed_at: int) -> None:
    """Who keeps the place in one step with what it makes of a batch, and begins there."""
    kept = json.loads(Path(out).read_text()) if Path(out).exists() else {"place": None, "seen": []}
    after = ChangePlace(*kept["place"]) if kept["place"] else ChangePlace()

    def write(batch: Batch) -> None:
        seen = kept["seen"] + batch.rows["commit_ts"].to_pylist()
        place = [batch.place.commit_ts, batch.place.source, batch.place.seq, batch.place.ordinal]
        if len(seen) >= killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        Path(out + ".new").write_text(json.dumps({"place": place, "seen": seen}))
        Path(out + ".new").replace(out)
        kept.update(seen=seen)

    Subscription(LakeFiles(root), NAME, Options(after=after, over_gaps=True)).run(write, follow=False)


def test_who_keeps_the_place_with_its_results_has_each_change_once(lake: LakeFiles, tmp_path: Path) -> None:
    out, wanted = tmp_path / "out", [stamp(days) for days in [*OLD, *YOUNG]]
    for killed_at in (1, 3, 8, len(wanted)):
        assert exit_code(keeps, lake.root, str(out), killed_at) == -signal.SIGKILL
    assert exit_code(keeps, lake.root, str(out), 1000) == 0
    assert json.loads(out.read_text())["seen"] == wanted
