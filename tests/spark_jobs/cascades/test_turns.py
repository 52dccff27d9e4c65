"""Who is written when, of tables that foreign keys tie unseen, and who isn't when one of them fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from spark_jobs.cascades import turns
from spark_jobs.cascades.turns import write_in_turns
from spark_jobs.positional.writer import Outcome
from spark_jobs.window.made import GivenBack, TableToWrite
from spark_jobs.window.plan import TablePlan, TableWriter
from spark_jobs.window.shape.cascading import CascadeGraph
from spark_jobs.window.window import TableWindow
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.table_names import Physical

BUSY = LakeUnavailable("the store is busy", where="d.g", remedy="wait")
WRONG = LakeRefused("a value doesn't fit", where="d.g", remedy="look")


class _Names:
    def logical_name(self, database: str, table: str) -> str:
        return f"{database}.{table}"

    def keeps(self, *_: str) -> bool:
        return True


class _App:
    """Foreign keys child -> parent, as an Application knows them."""

    names = _Names()

    def __init__(self, keys: Sequence[tuple[str, str]]) -> None:
        self.graph = CascadeGraph(children={"s": {}}, parents={"s": {}} if keys else {})
        for child, parent in keys:
            self.graph.children["s"].setdefault(("d", parent), set()).add(("d", child))
            self.graph.parents["s"].setdefault(("d", child), set()).add(("d", parent))


def _work(name: str, links: Sequence[str] = ()) -> TableToWrite:
    writer = TableWriter.LINKED if links else TableWriter.POSITIONAL
    plan = TablePlan(writer=writer, links=frozenset(f"d.{link}" for link in links))
    return TableToWrite(TableWindow(f"d.{name}", "d", name, False, 0, {Physical("s", "d", name)}), plan)


def _written(
    monkeypatch: pytest.MonkeyPatch,
    keys: Sequence[tuple[str, str]],
    works: Sequence[TableToWrite],
    fails: Mapping[str, BaseException] = {},
) -> tuple[list[str], dict[str, str]]:
    """The turns as words, and who catches up with whom."""
    app: Any = _App(keys)
    monkeypatch.setattr(turns, "cascade_graph", lambda app: app.graph)
    monkeypatch.setattr("spark_jobs.window.shape.cascading.cascade_graph", lambda app: app.graph)
    made = list[str]()

    def write(ready: Sequence[TableToWrite]) -> dict[str, Outcome]:
        made.append("".join(sorted(work.entry.table for work in ready)))
        return {work.name: fails.get(work.entry.table, 1) for work in ready}

    _, along = write_in_turns(app, works, write)
    return made, along


CHAIN = (("m", "a"), ("g", "m"), ("h", "g"))
WORKS = [_work(name) for name in "amghx"]


@pytest.mark.parametrize(
    ("keys", "fails", "made", "along"),
    [
        ((), {}, ["aghmx"], {}),
        (CHAIN[:1], {}, ["aghmx"], {}),
        (CHAIN, {}, ["ahx", "g", "m"], {}),
        (CHAIN, {"g": BUSY}, ["ahx", "g", ""], {}),
        (CHAIN, {"h": BUSY}, ["ahx", "", ""], {}),
        (CHAIN, {"h": WRONG}, ["ahx", "g", "m"], {}),
        (CHAIN, {"x": BUSY}, ["ahx", "g", "m"], {}),
        (CHAIN, {"h": GivenBack("")}, ["ahx", "", ""], {"d.g": "d.h", "d.m": "d.g"}),
        ((*CHAIN, ("m", "h")), {}, ["ax", "ghm"], {}),
    ],
)
def test_what_hangs_on_a_tables_rows_goes_before_it(
    monkeypatch: pytest.MonkeyPatch,
    keys: Sequence[tuple[str, str]],
    fails: Mapping[str, BaseException],
    made: list[str],
    along: dict[str, str],
) -> None:
    assert _written(monkeypatch, keys, WORKS, fails) == (made, along)


def test_tables_that_are_written_as_one_wait_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    works = [_work("m", "x"), _work("g"), _work("x", "m"), _work("h")]
    made, along = _written(monkeypatch, CHAIN, works, {"g": GivenBack("")})
    assert made == ["h", "g", ""]
    assert along == {"d.m": "d.g", "d.x": "d.g"}
