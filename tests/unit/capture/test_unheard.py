"""A Pump that nothing comes from is named, with the DAG that captures it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tidegate.capture.unheard import unheard
from tidegate.config import Pipeline, parse
from tidegate.lake.figures.status import SourceStatus

PUMP = "{{conn_id: tidb, flavour: tidb, listen: ['127.0.0.1:82{0}'], pd: ['http://pd:2379'], advertise: 'here:82{0}'}}"


def pipeline(tmp_path: Path) -> Pipeline:
    return parse(
        f"pipeline: shop\nlake: {{path: {tmp_path}}}\nsources:\n  one: {PUMP.format(50)}\n  two: {PUMP.format(51)}\n"
        "  other: {conn_id: other, flavour: mariadb}\ntables: {include: ['*.*']}\n",
        where="shop.yaml",
    )


def heard(source: str, at: float) -> SourceStatus:
    return SourceStatus(source, 1, 1, 1, 1, 1, "node", 1, "", heard_at=at)


def test_a_pump_whose_new_dag_is_paused_is_named_with_it(tmp_path: Path) -> None:
    one = heard("one", 999.0)
    both = {"one": one, "other": heard("other", 0.0), "two": heard("two", 990.0)}
    assert unheard(pipeline(tmp_path), both, 1000) == {}
    found = unheard(pipeline(tmp_path), {"one": one, "two": heard("two", 400.0)}, 1000)
    assert found.keys() == {"two"}
    assert "nothing came from it for 10 min" in found["two"]
    assert "shop__capture_two" in found["two"]
    assert "nothing came from this Pump yet" in unheard(pipeline(tmp_path), {"one": one}, 1000)["two"]
    late = replace(one, heard_at=0.0)
    assert "that is shop__capture;" in unheard(pipeline(tmp_path), {"one": late}, 1000)["one"]


def test_before_anything_is_captured_nobody_is_missed(tmp_path: Path) -> None:
    assert unheard(pipeline(tmp_path), {}, 1000) == {}
