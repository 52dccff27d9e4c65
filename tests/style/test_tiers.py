"""The gate and the nightly tests are all tests: none is in neither, and what the gate leaves out has a reason.

In:  tests/nightly.toml, the Makefile, the workflows.
Out: each rule about them that isn't so.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import parts, tiers

ROOT = Path(__file__).resolve().parents[2]


class Item:
    """A test by its name; what marks it is kept."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.marks: list[Any] = []

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark)


def nightly(*names: str, toml: tiers.Tiers, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    monkeypatch.setattr(tiers, "load", lambda: toml)
    items: Any = [Item(name) for name in names]
    tiers.mark(items)
    return {item.nodeid for item in items if item.marks}


def recipe(target: str) -> str:
    match = re.search(rf"^{target}:.*\n\t(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def test_test_all_chooses_nothing_and_the_gate_leaves_out_what_is_nightly_alone() -> None:
    everything, gate = recipe("test-all"), recipe("test")
    assert " -m " not in everything
    assert " -k " not in everything
    assert gate.replace(' -m "not nightly"', "") == everything


def test_every_test_runs_each_night() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text())["jobs"]
    runs = [entry["run"] for entry in jobs["long"]["strategy"]["matrix"]["include"]]
    assert "test-all" in runs


def test_a_pull_requests_machines_run_all_parts_of_the_gate() -> None:
    job = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())["jobs"]["whole"]
    parts_run = [parts.parsed(text) for text in job["strategy"]["matrix"]["part"]]
    files = list(range(13))
    assert sorted(file for part in parts_run for file in part.take(files)) == files
    assert parts.parsed("").take(files) == files


@pytest.mark.parametrize("text", ["0/4", "5/4", "2", "a/b", "1/0", "-1/2"])
def test_a_part_that_there_is_not_runs_nothing(text: str) -> None:
    with pytest.raises(pytest.UsageError, match=parts.VARIABLE):
        parts.parsed(text)


def test_each_entry_has_a_reason() -> None:
    for entries in tiers.load():
        assert all(len(entry.why) > 20 for entry in entries)


def test_a_case_of_both_servers_is_in_the_gate_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"t/{file}.py::test_x[{server}]" for file in ("a", "b", "c") for server in ("mariadb", "mysql9")]
    alone = ["t/a.py::test_y[mysql9-auto]", "t/a.py::test_y[mariadb-merge]", "t/a.py::test_z[mysql]"]
    toml = tiers.Tiers((), (tiers.Entry("t/b.py", "both"),), (tiers.Entry("t/c.py::test_x", "mysql"),))
    assert nightly(*names, *alone, toml=toml, monkeypatch=monkeypatch) == {
        "t/a.py::test_x[mysql9]",
        "t/c.py::test_x[mariadb]",
    }


def test_an_entry_names_a_folder_a_file_a_test_or_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        "t/f/a.py::x",
        "t/f2/a.py::x",
        "t/b.py::x[1]",
        "t/b.py::xy",
        "t/c.py::x[a-1]",
        "t/c.py::x[b-1]",
        "t/c.py::x",
    ]
    toml = tiers.Tiers(
        tuple(tiers.Entry(name, "why") for name in ("t/f", "t/b.py::x", "t/c.py::x[a-*]")),
        (),
        (),
    )
    assert nightly(*names, toml=toml, monkeypatch=monkeypatch) == {"t/f/a.py::x", "t/b.py::x[1]", "t/c.py::x[a-1]"}


def test_an_entry_that_matches_no_test_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "load", lambda: tiers.Tiers((tiers.Entry("t/a.py::old_name", "why"),), (), ()))
    items: Any = [Item("t/a.py::new_name")]
    assert tiers.mark(items) == [], "not all files were collected"
    monkeypatch.setattr(tiers, "_files", lambda: {"t/a.py"})
    assert tiers.mark(items) == ["t/a.py::old_name"]


def test_a_case_of_a_test_whose_files_arent_here_is_no_old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = tuple(tiers.Entry(f"t/a.py::{name}[case]", "why") for name in ("absent", "old"))
    monkeypatch.setattr(tiers, "load", lambda: tiers.Tiers(entries, (), ()))
    monkeypatch.setattr(tiers, "_files", lambda: {"t/a.py"})
    items: Any = [Item("t/a.py::absent[NOTSET]"), Item("t/a.py::old[other]")]
    assert tiers.mark(items) == ["t/a.py::old[case]"]
    assert not any(item.marks for item in items)


def test_each_entry_matches_a_test(request: pytest.FixtureRequest) -> None:
    """For a run that collected all tests, as `make test` does."""
    assert request.config.stash[tiers.UNMATCHED] == []
