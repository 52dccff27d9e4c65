"""The tests that only `make test-all` runs, and why: tests/nightly.toml, as the marker `nightly`.

In:  tests/nightly.toml: tests by name with a reason; what the gate runs on both servers, or on MySQL.
Out: mark(): marks the collected items, and says which entries match none. tests/style/test_tiers.py allows no such
     entry: a renamed test would be back in the gate unseen.

`make test` is the gate, `-m "not nightly"`. `make test-all` chooses nothing, so each test is in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final, NamedTuple

import pytest

from tests.support.own_server import ROOT

UNMATCHED: Final = pytest.StashKey[list[str]]()
FILE: Final = ROOT / "tests" / "nightly.toml"
MARKER: Final = "nightly"
# pytest gives a test whose cases are files that aren't here (the recorded corpus) one case, which it skips.
_NO_CASES: Final = "[NOTSET]"
_MARIADB: Final = "mariadb"
_MYSQL: Final = ("mysql9", "mysql")


class Entry(NamedTuple):
    """tests: a folder, a file, file::test, or file::test[case], where `*` is any text."""

    tests: str
    why: str


class Tiers(NamedTuple):
    """entries: what is nightly; both: what is in the gate on both servers; mysql: what is there on MySQL."""

    entries: tuple[Entry, ...]
    both: tuple[Entry, ...]
    mysql: tuple[Entry, ...]


def load() -> Tiers:
    document = tomllib.loads(FILE.read_text())
    return Tiers(_entries(document["nightly"]), _entries(document["both"]), _entries(document["mysql"]))


def mark(items: Sequence[pytest.Item]) -> list[str]:
    """Entries that match no test, or have no effect; [] where not all test files were collected."""
    tiers = load()
    names = {item.nodeid for item in items}
    matched: set[str] = set()
    for item in items:
        why = _match(item.nodeid, tiers.entries, matched) or _on_another_server(item.nodeid, names, tiers, matched)
        if why:
            item.add_marker(pytest.mark.nightly(why))
    without_cases = {name.removesuffix(_NO_CASES) for name in names if name.endswith(_NO_CASES)}
    matched |= {entry.tests for entries in tiers for entry in entries if entry.tests.partition("[")[0] in without_cases}
    unmatched = sorted(entry.tests for entries in tiers for entry in entries if entry.tests not in matched)
    return unmatched if _files() <= {name.split("::")[0] for name in names} else []


def _files() -> set[str]:
    """All test files, by their paths in the checkout. The controller of pytest-xdist collects none, its workers all."""
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}


def _entries(groups: Iterable[Mapping[str, Any]]) -> tuple[Entry, ...]:
    return tuple(Entry(name, group["why"]) for group in groups for name in group["tests"])


@cache
def _by_place(entries: tuple[Entry, ...]) -> Mapping[str, list[Entry]]:
    """By what stands before the case: a look at each entry for each of 8,000 tests took each worker half a second."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.tests.partition("[")[0], []).append(entry)
    return found


def _places(nodeid: str) -> Iterator[str]:
    """The test without its case, its file, its folders."""
    name = nodeid.partition("[")[0]
    yield name
    path = name.partition("::")[0]
    while path:
        yield path
        path = path.rpartition("/")[0]


def _match(nodeid: str, entries: tuple[Entry, ...], matched: set[str]) -> str:
    """The reason of an entry that names this test; "" without."""
    why = ""
    for entry in (entry for place in _places(nodeid) for entry in _by_place(entries).get(place, ())):
        if _named(nodeid, entry.tests):
            matched.add(entry.tests)
            why = why or entry.why
    return why


def _named(nodeid: str, tests: str) -> bool:
    name, bracket, case = nodeid.partition("[")
    wanted, cases, wanted_case = tests.partition("[")
    if cases:
        return name == wanted and bool(bracket) and fnmatchcase(case[:-1], wanted_case[:-1].replace("[", "[[]"))
    return name == wanted or name.startswith((f"{wanted}::", f"{wanted}/"))


def _on_another_server(nodeid: str, names: set[str], tiers: Tiers, matched: set[str]) -> str:
    """A case that there is on both servers, and else alike, is in the gate on one of them."""
    name, _, case = nodeid.partition("[")
    words = case[:-1].split("-")
    for place, word in enumerate(words):
        others = _MYSQL if word == _MARIADB else (_MARIADB,) if word in _MYSQL else ()
        for other in others:
            twin = "-".join([*words[:place], other, *words[place + 1 :]])
            if f"{name}[{twin}]" in names:
                return _left_to(word, nodeid, tiers, matched)
    return ""


def _left_to(server: str, nodeid: str, tiers: Tiers, matched: set[str]) -> str:
    if _match(nodeid, tiers.both, matched):
        return ""
    by_mysql = bool(_match(nodeid, tiers.mysql, matched))
    return "" if by_mysql == (server in _MYSQL) else "in the gate on the other server"
