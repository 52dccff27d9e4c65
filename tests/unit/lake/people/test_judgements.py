"""Persons' answers about a place in a log: the last one counts, whatever the clocks of their machines say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidegate.lake.control import append
from tidegate.lake.files import LakeFiles
from tidegate.lake.people import judgements
from tidegate.standing.standing import Place
from tidegate.tables import JUDGEMENTS


def test_an_answer_counts_behind_one_of_a_clock_that_is_ahead(tmp_path: Path) -> None:
    lake, place = LakeFiles(str(tmp_path)), Place("s", "d", "t", "b.000001", 300, 30)
    ahead = {"source": "s", "file": "b.000001", "pos": 300, "commit_ts": 30, "tables": ["d.t"], "reason": "why"}
    append(lake, JUDGEMENTS, [{**ahead, "judged_by": "ann", "judged_at": datetime.now(UTC) + timedelta(hours=1)}])
    for names, said in (([], ()), (["d.u"], (("d", "u"),)), (["d.t"], (("d", "t"),))):
        judgements.record(lake, {place: "why"}, names, "bob")
        assert judgements.read(lake)["s"]["b.000001", 300, 30] == said
