"""How the code and the papers read never gets worse: each figure is at most the one that ratchet.toml records.

In:  measures.py's figures; ratchet.toml.
Out: the figure that grew, with the places that cost most.
"""

from __future__ import annotations

import ast
import gc
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.style import measures

RECORDED = tomllib.loads(Path(__file__).with_name("ratchet.toml").read_text())


@pytest.fixture(scope="module", autouse=True)
def _sources_are_forgotten() -> Iterator[None]:
    """Millions of nodes, which every collection of the tests behind these would look through."""
    gc.disable()
    yield
    measures.sources.cache_clear()
    gc.enable()


@pytest.mark.parametrize("name", measures.MEASURES)
def test_a_figure_is_at_most_what_is_recorded(name: str) -> None:
    figure, places = measures.MEASURES[name]()
    most = RECORDED["most"][name]
    said = f"{name} is {figure}, and {most} at most: read tests/style/ratchet.toml"
    assert figure <= most, "\n".join((said, *places))


def test_only_what_is_measured_is_recorded() -> None:
    assert RECORDED["most"].keys() == RECORDED["aim"].keys() == measures.MEASURES.keys()


def test_sentences_and_their_words_are_counted() -> None:
    """The measures can fail."""
    text = "What it does. It ends.\n\nIn:  a file, e.g. one\n     with lines\nOut: rows. Of these one.\n- By name"
    assert measures.sentences(text) == [
        *("What it does.", "It ends.", "a file, e.g. one with lines", "rows.", "Of these one.", "By name")
    ]
    page = "# A title\n\nSay `one two` [three](x.md).\n\n| a | b c |\n|---|---|\n\n```sh\nnot this\n```\n"
    assert measures.words(measures.prose(page)) == ["say", "code", "three", "a", "b", "c"]
    inner = "[x for a in b for x in a if any(y for y in x)]"
    assert len([*measures.deep(ast.parse(inner), 0)]) == 1
    assert not [*measures.deep(ast.parse("[x for a in b for x in a]"), 0)]
