"""Patterns of the pipeline file: where their halves part, and what thousands of them cost."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tidegate.config.table_keys import table_patterns
from tidegate.config.table_keys.table_patterns import Patterns, as_read, compile_pattern, compiled, matches


@pytest.mark.parametrize(
    ("pattern", "halves"),
    [
        ("shop.orders", ("shop", "orders")),
        ("*.*", (".*", ".*")),
        ("shop.*", ("shop", ".*")),
        ("shop..*_log", ("shop", ".*_log")),
        (r"a\.b.t", (r"a\.b", "t")),
        (".*_[02].t", (".*_[02]", "t")),
        (".*.t", (".*", "t")),
        (".*..*", (".*", ".*")),
        (".*x.*", (".*x", ".*")),
        (r"[a.]+.t\.u", ("[a.]+", r"t\.u")),
        (r"[]a.]+.t", ("[]a.]+", "t")),
        ("((a|b).c|d).t", ("((a|b).c|d)", "t")),
        ("s.{2}.t", ("s.{2}", "t")),
    ],
)
def test_halves_part_at_the_first_dot_that_is_no_part_of_the_databases_expression(
    pattern: str, halves: tuple[str, str]
) -> None:
    assert tuple(half.pattern for half in compile_pattern(pattern)) == halves


@pytest.mark.parametrize("pattern", ["shop", ".t", "shop.", ".*", r"shop\.t", "[a.b]", "(a.b)"])
def test_a_pattern_without_such_a_dot_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=re.escape("must be database.table")):
        compile_pattern(pattern)


def test_a_dot_is_of_any_character_that_a_name_may_have() -> None:
    for pattern in ("*.*", "shop.*", "sh.*.two.lines", ".*.two.*", "shop..*_new"):
        assert matches([pattern], "shop", "two\nlines") is (pattern != "shop..*_new")
    assert matches(["shop..*_new"], "shop", "two\nlines_new")
    assert matches(["*.t"], "two\nlines", "t")


def test_two_thousand_names_are_compiled_once_and_none_is_searched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f"shop.t{number}" for number in range(2_000))
    calls = []

    def counted(*given: Any) -> re.Pattern[str]:
        calls.append(given)
        return re.compile(*given)

    compile_pattern.cache_clear()
    monkeypatch.setattr(table_patterns, "re", type("re", (), {"compile": staticmethod(counted), "error": re.error}))
    assert all(matches(names, "shop", f"t{number}") for number in range(2_000))
    assert not matches(names, "shop", "t2000")
    assert not matches(names, "other", "t1")
    assert len(calls) == 4_000
    assert not compiled(names)._others


def test_what_was_asked_once_is_known_and_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = Patterns(["shop.t.*", "shop.[ab]", r"s\w+.same", "sh.p.u"])
    asked = [("shop", f"t{number}") for number in range(100)]
    assert all(patterns.match(name) for name in asked)
    found = [name for name in (("shop", "a"), ("shop", "c"), ("six", "same"), ("sh.p", "u")) if patterns.match(name)]
    assert found == [("shop", "a"), ("six", "same")]
    monkeypatch.setattr(Patterns, "_searched", lambda *_: pytest.fail("asked again"))
    assert all(patterns.match(name) for name in asked)
    monkeypatch.undo()
    monkeypatch.setattr(table_patterns, "_ANSWERS_MAX", 100)
    for number in range(1_000):
        patterns.match(("shop", f"u{number}"))
        assert len(patterns._answers) <= 104


def test_people_see_where_a_pattern_is_divided() -> None:
    assert as_read("shop_.*") == "shop_.* is read as database `shop_`, table `*`"
    assert as_read("shop_.*.*").endswith("database `shop_.*`, table `*`")
